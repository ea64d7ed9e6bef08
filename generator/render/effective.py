"""`effective.yaml`: the plan as YAML, in the order of the declarations."""

from __future__ import annotations

from typing import Any

from ..files.file import File, text

HEADER = "# The definition with all defaults, and everything that follows from it. Written by cycleforge build.\n"


def yaml_file(value: dict[str, Any]) -> File:
    """YAML without aliases and without line folding, so that a diff shows one line per changed value."""
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Plain(dumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return text(
        HEADER
        + yaml.dump(value, Dumper=Plain, sort_keys=False, allow_unicode=True, width=100000, default_flow_style=False)
    )
