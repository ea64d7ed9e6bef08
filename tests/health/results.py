"""Results as slurm_nhc writes them, for the tests of `cycleforge health`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

H100, A100 = "standard_nd96isr_h100_v5", "standard_nd96asr_v4"
NOON = "2026-11-21T12:00:00Z"


def check(name: str, verdict: str = "pass", **fields: str) -> dict[str, Any]:
    """One check; fields that are not given are empty, as on the nodes."""
    return {
        "check": name,
        "verdict": verdict,
        "value": "",
        "relation": "",
        "limit": "",
        "unit": "",
        "detail": "",
    } | fields


def gpus(value: str = "8") -> dict[str, Any]:
    """The number of GPUs, judged against eight."""
    return check("gpu_count", "pass" if value == "8" else "fail", value=value, relation="eq", limit="8", unit="GPUs")


def reduce(value: str, limit: str = "420") -> dict[str, Any]:
    """The NCCL all-reduce of a node that passes its floor."""
    return check("nccl_all_reduce", value=value, relation="ge", limit=limit, unit="GB/s", detail="message 16G")


def result(node: object = "hpc-1", kind: str = "quick", *checks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A result; by default one that passes."""
    return {
        "format": 1,
        "node": node,
        "vm_size": H100,
        "size_known": True,
        "kind": kind,
        "engine": "nhc 1.4.3-9c4a38c",
        "boot_id": "8a6b1c9e",
        "physical_host": "",
        "time": NOON,
        "duration_ms": 412,
        "verdict": "pass",
        "reason": "",
        "checks": list(checks) or [gpus()],
    } | fields


def text(value: object) -> str:
    """As JSON."""
    return json.dumps(value, indent=2)


def as_on_a_node(value: dict[str, Any]) -> str:
    """As JSON in the layout of results.sh of slurm_nhc: a line per check, which begins and ends as there."""
    head = json.dumps({key: member for key, member in value.items() if key != "checks"})[:-1]
    return head + ',\n  "checks": [\n    ' + ",\n    ".join(map(json.dumps, value["checks"])) + "\n  ]\n}\n"


def write(folder: Path, *results: dict[str, Any]) -> Path:
    """Write results under the names that the nodes give them."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in results:
        (folder / f"{each['node']}.{each['kind']}.json").write_text(text(each))
    return folder


def pair(node: str, bandwidth: str = "472.5", **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both results of a healthy node."""
    return result(node, "quick", **fields), result(node, "deep", reduce(bandwidth), **fields)
