"""Runs every benchmark, prints the table, and fails when a ratio is over its limit."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.processes import build_ratio, help_ratio
from benchmarks.scaling import partitions_ratio
from benchmarks.table import Ratio

SERIES = 3
"""Another program on the machine can only make a ratio worse, so one good series of three is the answer."""


def main() -> int:
    """0 when every ratio is within its limit."""
    verdicts = [_keeps_its_limit(measure) for measure in (build_ratio, help_ratio, partitions_ratio)]
    return 0 if all(verdicts) else 1


def _keeps_its_limit(measure: Callable[[], Ratio]) -> bool:
    for _ in range(SERIES):
        ratio = measure()
        print(ratio.line(), flush=True)
        if ratio.is_within:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
