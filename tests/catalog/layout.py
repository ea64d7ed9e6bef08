"""How the catalogue's files are written, so that a change of one figure is a change of one line."""

from __future__ import annotations

import json
from typing import Any

TABLES = frozenset(
    {
        "amd_messages.json",
        "azure_failures.json",
        "cyclecloud_failures.json",
        "health_tests.json",
        "images.json",
        "models.json",
        "meters.json",
        "mpi.json",
        "nccl.json",
        "node_attributes.json",
        "node_benchmarks.json",
        "other_vm_sizes.json",
        "regions.json",
        "resource_names.json",
        "resource_types.json",
        "slurm_keys.json",
        "sources.json",
        "streams.json",
        "template_parameters.json",
        "training.json",
        "training_versions.json",
        "throughput.json",
        "what_if.json",
        "xids.json",
    }
)
"""Files of rows: a row is one line."""


def is_leaf(value: object) -> bool:
    """A scalar, an empty container, or a list of scalars, which is one figure."""
    if isinstance(value, dict):
        return not value
    return not (isinstance(value, list) and any(isinstance(item, dict | list) for item in value))


def written(content: Any, *, table: bool) -> str:
    """The file's text: keys sorted, two blanks per level; in a table every row and every list is one line."""
    if not table:
        return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return _rows(content, "") + "\n"


def _rows(value: Any, indent: str) -> str:
    if is_leaf(value) or (isinstance(value, dict) and indent and all(map(is_leaf, value.values()))):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{indent}  {_rows(item, indent + '  ')}" for item in value) + f"\n{indent}]"
    items = (f"{indent}  {json.dumps(key)}: {_rows(item, indent + '  ')}" for key, item in sorted(value.items()))
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"
