"""The shipped definitions, checked and rendered as `cycleforge build` does it, with none of their variables set."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from generator import pipeline
from generator.files import assets
from generator.files.file import Files
from generator.pipeline import Checked

NAMES = ("gpt3-h100", "hpc-lab", "llm-a100", "minimal", "mpt-h100", "reference")


def path_of(name: str) -> Path:
    return assets.folder("cluster_defs") / f"{name}.yaml"


@cache
def checked(name: str) -> Checked:
    path = path_of(name)
    return pipeline.check(path.read_bytes(), str(path), {}, path.parent)


@cache
def rendered(name: str) -> Files:
    plan = checked(name).plan
    assert plan is not None, checked(name).problems
    return pipeline.render(plan, path_of(name).parent)


def write(files: Files, folder: Path) -> None:
    """The rendered files on disk, for the programs that check them."""
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
