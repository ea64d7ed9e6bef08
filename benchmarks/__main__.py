"""Runs every benchmark, prints the table, and fails when a ratio is over its limit."""

from __future__ import annotations

import sys

from benchmarks.processes import build_ratio, help_ratio
from benchmarks.scaling import partitions_ratio


def main() -> int:
    """0 when every ratio is within its limit."""
    ratios = []
    for measure in (build_ratio, help_ratio, partitions_ratio):
        ratios.append(measure())
        print(ratios[-1].line(), flush=True)
    return 0 if all(ratio.is_within for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
