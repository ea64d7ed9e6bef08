"""A report measured beside reading the same files as JSON, which is the least that any report has to do.

CPU time in one process, without Python's collector of cycles, which the command switches off, too.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def middle_round(
    report: Callable[[], object], forget: Callable[[], object], files: Sequence[Path], rounds: int
) -> tuple[float, float]:
    """CPU seconds of the report and of reading its files, of the round with the middle ratio; the two alternate.

    `forget` empties what a report remembers while it runs: the command makes one report in a process.
    """
    pairs = [(_cpu_s(report, forget), _cpu_s(lambda: _loads(files))) for _ in range(rounds)]
    return sorted(pairs, key=lambda pair: pair[0] / pair[1])[rounds // 2]


def _loads(files: Sequence[Path]) -> list[Any]:
    return [json.loads(file.read_bytes()) for file in files]


def _cpu_s(run: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    before()
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        run()
        return time.process_time() - start
    finally:
        gc.enable()
