"""Where the folders are that the generator reads: beside the package in a checkout, inside it in a wheel."""

from functools import cache
from pathlib import Path


@cache
def root() -> Path:
    """The folder that holds `bicep_templates/`, `bootstrap/`, `cluster_defs/`, `projects/` and `recipes/`."""
    package = Path(__file__).resolve().parents[1]
    packed = package / "_assets"
    return packed if packed.is_dir() else package.parent


def folder(name: str) -> Path:
    return root() / name
