"""A definition with 200 partitions: time grows linearly with their number."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.table import Ratio
from generator import pipeline

FEW, MANY, ROUNDS = 50, 200, 5
LIMIT = 1.5
"""Per partition, 200 may cost one and a half times as much as 50: linear growth gives 1, quadratic growth 4."""


def definition(partitions: int) -> bytes:
    """A definition with that many partitions of two sizes."""
    rows = "\n".join(
        f"    - {{name: p{number}, vm_size: {'Standard_ND96isr_H100_v5' if number % 2 else 'Standard_D4ads_v5'}, "
        f"max_nodes: 2, default: {'true' if number == 0 else 'false'}}}"
        for number in range(partitions)
    )
    return f"name: many\nlocation: eastus\nslurm:\n  partitions:\n{rows}\n".encode()


def partitions_ratio() -> Ratio:
    """Seconds per partition with 200 partitions beside seconds per partition with 50, in one process."""
    _check_and_render(FEW)
    pairs = [(_check_and_render(MANY) / MANY, _check_and_render(FEW) / FEW) for _ in range(ROUNDS)]
    many, few = (min(column) for column in zip(*pairs, strict=True))
    return Ratio(f"check and render, per partition of {MANY}", many, f"per partition of {FEW}", few, LIMIT)


def _check_and_render(partitions: int) -> float:
    text = definition(partitions)
    start = time.perf_counter()
    checked = pipeline.check(text, "many.yaml", {}, Path())
    if checked.plan is None:
        raise RuntimeError(f"the definition has problems: {checked.problems[:3]}")
    pipeline.render(checked.plan, Path())
    return time.perf_counter() - start
