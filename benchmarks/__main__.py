"""Runs every benchmark, prints the table, and fails when a ratio is over its limit."""

from __future__ import annotations

import sys

from benchmarks.converge import converge_ratios
from benchmarks.health_pass import health_ratio, nhc_health_ratio
from benchmarks.processes import build_ratio, help_ratio
from benchmarks.scaling import partitions_ratio
from tests.cluster.engine import missing_source


def main() -> int:
    """0 when every ratio is within its limit."""
    ratios = []
    measures = [build_ratio, help_ratio, partitions_ratio, health_ratio]
    if reason := missing_source():
        print(f"skip  CPU time of a quick health pass by LBNL NHC: {reason}", flush=True)
    else:
        measures.append(nhc_health_ratio)
    for measure in measures:
        ratios.append(measure())
        print(ratios[-1].line(), flush=True)
    for ratio in converge_ratios():
        ratios.append(ratio)
        print(ratio.line(), flush=True)
    return 0 if all(ratio.is_within for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
