"""`effective.yaml`: the plan as YAML, in the order of the declarations."""

from __future__ import annotations

from typing import Any

from ..files.file import File, text

HEADER = "# The definition with all defaults, and everything that follows from it. Written by cycleforge build.\n"


def yaml_file(value: dict[str, Any]) -> File:
    """The plan as plain data, with a line that says what it is; neither aliases nor folded lines, which hide a diff."""
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    without_aliases = type("WithoutAliases", (dumper,), {"ignore_aliases": lambda *_: True})
    return text(
        HEADER
        + yaml.dump(
            value, Dumper=without_aliases, sort_keys=False, allow_unicode=True, width=100_000, default_flow_style=False
        )
    )
