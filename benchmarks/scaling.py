"""A definition with many partitions: time grows linearly with their number, and with that of their problems."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.table import Ratio
from generator import pipeline
from generator.problems.text import as_json, render

FEW, MANY, ROUNDS = 50, 200, 5
PROBLEMS = 1000
PROBLEM_LIMIT = 3.0
"""So many bad partitions may take three times as long as good ones; with quadratic growth it was more than ten."""
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


def bad_definition(partitions: int) -> bytes:
    """A definition of which every partition is wrong: by turns a key, a size, a name, a type, or a secret value."""
    kinds = (
        "name: p{n}, vm_sise: Standard_D4ads_v5, max_nodes: 2",
        "name: p{n}, vm_size: Standard_D{n}bad_v5, max_nodes: 2",
        "name: P_{n}, vm_size: Standard_D4ads_v5, max_nodes: 2",
        "name: p{n}, vm_size: Standard_D4ads_v5, max_nodes: two",
        "name: p{n}, vm_size: '${{SIZE{n}}}', max_nodes: 2",
    )
    rows = "\n".join("    - {" + kinds[n % len(kinds)].format(n=n) + "}" for n in range(partitions))
    return f"name: many\nlocation: eastus\nslurm:\n  partitions:\n{rows}\n".encode()


def partitions_ratio() -> Ratio:
    """Seconds per partition with 200 partitions beside seconds per partition with 50, in one process."""
    _check_and_render(FEW)
    pairs = [(_check_and_render(MANY) / MANY, _check_and_render(FEW) / FEW) for _ in range(ROUNDS)]
    many, few = (min(column) for column in zip(*pairs, strict=True))
    return Ratio(f"check and render, per partition of {MANY}", many, f"per partition of {FEW}", few, LIMIT)


def bad_partitions_ratio() -> Ratio:
    """Seconds for 1,000 partitions that all have problems beside as many good ones, in one process."""
    _report(bad_definition(10))
    good_text, bad_text = definition(PROBLEMS), bad_definition(PROBLEMS)
    pairs = [(_report(bad_text), _report(good_text)) for _ in range(ROUNDS)]
    bad, good = (min(column) for column in zip(*pairs, strict=True))
    return Ratio(f"check and report {PROBLEMS:,} bad partitions", bad, f"{PROBLEMS:,} good ones", good, PROBLEM_LIMIT)


def _check_and_render(partitions: int) -> float:
    text = definition(partitions)
    start = time.perf_counter()
    checked = pipeline.check(text, "many.yaml", {}, Path())
    if checked.plan is None:
        raise RuntimeError(f"the definition has problems: {checked.problems[:3]}")
    pipeline.render(checked.plan, Path())
    return time.perf_counter() - start


def _report(text: bytes) -> float:
    env = {f"SIZE{number}": f"Standard_Hunter{number}_v5" for number in range(PROBLEMS)}
    start = time.perf_counter()
    checked = pipeline.check(text, "many.yaml", env, Path())
    render(checked.problems, checked.source)
    as_json(checked.problems, checked.source)
    return time.perf_counter() - start
