"""The report of a cluster beside reading the same files as JSON, which is the least that any report has to do.

Both run in one process on the results of 200 nodes, quick and deep, with the checks that an ND96isr_H100_v5 has; a few
nodes fail, warn, are slow or could not be measured. CPU time without Python's collector of cycles, which the command
switches off, too; of alternating rounds the one with the middle ratio.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.beside_json import middle_round
from benchmarks.table import Ratio
from generator.health import findings
from generator.health.assess import Wishes, assess
from generator.health.gather import gather
from generator.health.text import Report
from generator.results import units
from tests.health import results
from tests.health.results import check

NODES, ROUNDS, LIMIT = 200, 60, 3.0
QUICK, DEEP = 36, 14
"""Records of a quick and of a deep run on that size."""


def report_ratio() -> Ratio:
    """Reading, judging and printing beside `json.loads` of every file."""
    with tempfile.TemporaryDirectory() as name:
        folder = _cluster(Path(name))
        files = sorted(folder.iterdir())
        text = _report(folder)
        if f"{NODES} nodes" not in text or "FAILURES" not in text:
            raise RuntimeError(f"no report of these nodes: {text[:500]}")
        ours, least = middle_round(lambda: _report(folder), _forget, files, ROUNDS)
    return Ratio(f"health report of {NODES} nodes", ours, f"the same {len(files)} files as JSON", least, LIMIT)


def _report(folder: Path) -> str:
    return Report(assess(gather([str(folder)]), Wishes())).text()


def _forget() -> None:
    """What a report remembers while it runs; the command makes one report in a process."""
    findings.number.cache_clear()
    units.is_rate.cache_clear()


def _cluster(folder: Path) -> Path:
    for number in range(1, NODES + 1):
        name, host = f"hpc-{number}", f"AMS07-{number // 2:03d}"
        quick = [_inventory(place, number) for place in range(QUICK)]
        deep = [_bandwidth(place, number) for place in range(DEEP)]
        fails = number % 40 == 0
        both = (
            results.result(name, "quick", *quick, physical_host=host, verdict="fail" if fails else "pass",
                   reason="a port is down" if fails else ""),
            results.result(name, "deep", *deep, physical_host=host,
                           verdict="incomplete" if number % 50 == 0 else "pass"),
        )  # fmt: skip
        for each in both:
            (folder / f"{name}.{each['kind']}.json").write_text(results.as_on_a_node(each))
    return folder


def _inventory(place: int, number: int) -> dict[str, Any]:
    if place == 7 and number % 40 == 0:
        return check("ib_port_7", "fail", value="7", relation="ge", limit="8", unit="ports", detail="mlx5_ib5 DOWN")
    if place == 9 and number % 25 == 0:
        return check("temperature", "warn", value="94", relation="le", limit="93", unit="Celsius", detail="GPU 5")
    if place == 11:
        return check("hottest_gpu", value=f"{40 + number * 7919 % 311 / 10:.1f}", unit="Celsius", detail="GPU 2")
    return check(f"inventory_{place}", value="8", relation="eq", limit="8", unit="GPUs", detail="of this VM size")


def _bandwidth(place: int, number: int) -> dict[str, Any]:
    if place == 3 and number % 50 == 0:
        return check("bandwidth_3", "not_measured", detail="nvbandwidth did not answer in time")
    value = f"{470 + place + (number * 7919 % 1000) / 1000 - (40 if number % 33 == 0 and place == 0 else 0):.3f}"
    return check(f"bandwidth_{place}", value=value, relation="ge", limit="420", unit="GB/s", detail="GPU 3")
