"""The report for machines: everything that the text says and more, under stable keys."""

from __future__ import annotations

from msgspec import to_builtins

from .. import catalog
from ..results.hostlist import compress
from .ages import utc
from .assess import STATES, Assessment, Node
from .findings import Class
from .fleet import MIN_NODES, Deviation, plain
from .grouping import by_check, by_host

_LISTS: tuple[tuple[str, Class], ...] = (
    ("failures", "failure"),
    ("warnings", "warning"),
    ("not_measured", "unmeasured"),
    ("no_baseline", "no_baseline"),
)


def as_json(assessment: Assessment) -> dict[str, object]:
    gathered, allowed = assessment.gathered, catalog.health().fleet_statistics
    return {
        "ok": assessment.is_healthy and not gathered.has_errors,
        "reference_time": None if assessment.reference is None else utc(assessment.reference),
        "reference": "newest result" if assessment.wishes.now is None else "now",
        "alarms": to_builtins(gathered.alarms),
        "counts": {"nodes": len(assessment.nodes)} | {str(state): assessment.count(state) for state in STATES},
        "host_lists": {state: compress(assessment.named(state)) for state in STATES},
        "nodes": [_node(node, assessment) for node in assessment.nodes],
        "by_check": {
            name: [
                {
                    "check": row.check,
                    "vm_size": row.vm_size,
                    "nodes": row.host_list,
                    "count": len(row.nodes),
                    "of": row.of,
                    "text": row.words,
                }
                for row in by_check(assessment, sort)
            ]
            for name, sort in _LISTS
        },
        "by_physical_host": [
            {
                "physical_host": host.physical_host,
                "nodes": compress(host.nodes),
                "count": len(host.nodes),
                "of": host.of,
                "checks": list(host.checks),
            }
            for host in by_host(assessment)
        ],
        "fleet": {
            "suspect_percent_below_median": float(allowed.warn_percent_below_expected),
            "strong_percent_below_median": float(allowed.fail_percent_below_expected),
            "source": allowed.source,
            "min_nodes": MIN_NODES,
            "groups": [
                to_builtins(group) | {"median": None if group.median is None else plain(group.median)}
                for group in assessment.groups
            ],
        },
        "not_expected": compress(node.name for node in assessment.nodes if node.is_unexpected),
        "files": gathered.files,
        "superseded": gathered.superseded,
        "problems": [problem.as_json() for problem in gathered.problems],
    }


def _node(node: Node, assessment: Assessment) -> dict[str, object]:
    row: dict[str, object] = {
        "node": node.name,
        "state": node.state,
        "states": list(node.states),
        "vm_size": node.vm_size,
        "physical_host": node.physical_host,
        "expected": not node.is_unexpected if assessment.wishes.expect else None,
        "unreadable": list(node.unreadable),
        "stale": dict(node.stale),
        "results": {kind: _result(node, kind, assessment) for kind in node.results},
    }
    row |= {name: [finding.as_json() for finding in node.of(sort)] for name, sort in _LISTS}
    return row | {"suspect": [_deviation(each) for each in node.deviations]}


def _result(node: Node, kind: str, assessment: Assessment) -> dict[str, object]:
    loaded = node.results[kind]
    result = loaded.result
    return {
        "verdict": result.verdict,
        "time": result.time,
        "age_s": None if assessment.reference is None else int(assessment.reference - loaded.seconds),
        "engine": result.engine,
        "boot_id": result.boot_id,
        "duration_ms": result.duration_ms,
        "size_known": result.size_known,
        "reason": result.reason,
        "cure": result.cure,
        "checks": len(result.checks),
        "file": loaded.file,
    }


def _deviation(each: Deviation) -> dict[str, object]:
    return {
        "check": each.group.check,
        "value": each.value,
        "unit": each.group.unit,
        "median": plain(each.group.median),
        "nodes": each.group.nodes,
        "percent_below": round(float(each.percent_below), 2),
        "strong": each.strong,
    }
