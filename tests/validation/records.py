"""Records of runs as `recipes/lib/records.sh` writes them (docs/records.md), for tests and measurements.

A cluster of any size: figures differ by a share that follows from names, so that the same call always gives the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

H100 = "Standard_ND96isr_H100_v5"


def noise(*names: object, percent: float = 2.0) -> float:
    """A factor within so many percent of 1, always the same for the same names."""
    share = crc32(" ".join(map(str, names)).encode()) / 2**32
    return 1 + (2 * share - 1) * percent / 100


def check(name: str, verdict: str = "pass", value: Any = None, expected: Any = None, unit: str = "",
          detail: str = "", source: str = "", nodes: Sequence[str] = ()) -> dict[str, Any]:  # fmt: skip
    """One entry of `checks`, its keys in the order of the jobs."""
    return {
        "check": name, "verdict": verdict, "value": value, "expected": expected,
        "unit": unit, "detail": detail, "source": source, "nodes": list(nodes),
    }  # fmt: skip


def series(
    name: str, unit: str, x_unit: str, nodes: Sequence[str], points: Iterable[Sequence[float]]
) -> dict[str, Any]:
    """One entry of `series`."""
    return {
        "name": name,
        "unit": unit,
        "x_unit": x_unit,
        "nodes": list(nodes),
        "points": [list(each) for each in points],
    }


def names(count: int, prefix: str = "gpu") -> list[str]:
    """Names of nodes."""
    return [f"{prefix}-{number}" for number in range(1, count + 1)]


def record(
    job: str = "smoke-gpu", run: int | str = 1, *checks: dict[str, Any], nodes: Sequence[str] = (), hosts: bool = True,
    **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """A whole record; its verdict is the worst of its checks unless `fields` has one."""
    order = ("pass", "warn", "no_baseline", "error", "fail")
    worst = max((each["verdict"] for each in checks), key=order.index, default="error")
    number = int(str(run).split("-")[0])
    value = {
        "format": 1, "job": job, "recipe": job.removesuffix("-gpu"), "run": str(run),
        "started": f"2026-11-{1 + number // 10 % 28:02d}T{8 + number % 10:02d}:00:00Z",
        "ended": f"2026-11-{1 + number // 10 % 28:02d}T{8 + number % 10:02d}:12:30Z",
        "cluster": "lab", "partition": "gpu", "vm_size": H100,
        "verdict": worst, "summary": f"{len(checks)} checks",
        "nodes": [node(name, place, hosts=hosts) for place, name in enumerate(nodes)],
        "versions": {"slurm": "25.05.5", "nccl": "2.28.3"},
        "settings": {"MESSAGE_SIZE": "16G", "TIMEOUT_S": "900"},
        "environment": {"NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_SOCKET_IFNAME": "eth0"},
        "checks": list(checks), "series": [],
    }  # fmt: skip
    return value | fields


def node(name: str, place: int, *, hosts: bool = True, driver: str = "570.133.20") -> dict[str, Any]:
    """One entry of `nodes`."""
    facts = {"nvidia": driver, "kernel": "6.8.0-1028-azure", "os": "Ubuntu 24.04.2 LTS"}
    return {"name": name, "physical_host": f"AMS07{place // 4:03d}" if hosts else "", "facts": facts}


def text_of(value: dict[str, Any]) -> str:
    """Laid out as the jobs do: an entry a line."""
    parts = []
    for key, each in value.items():
        if isinstance(each, list):
            rows = ",".join(f"\n    {json.dumps(row)}" for row in each)
            parts.append(f"  {json.dumps(key)}: [{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(each)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(folder: Path, *values: dict[str, Any]) -> Path:
    """Each record in its folder below the folder of all runs."""
    for value in values:
        place = folder / f"{value['job']}-{value['run']}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "run.json").write_text(text_of(value))
    return folder


# ---------------------------------------------------------------- whole jobs


def sweep(run: int, nodes: Sequence[str], *, slow: float = 1.0) -> dict[str, Any]:
    """Collectives over all sizes."""
    curves, checks = [], []
    for collective, top in (("all_reduce", 480.0), ("all_gather", 372.0), ("alltoall", 88.0)):
        points = [(2.0**power, round(top * slow * (1 / (1 + 2.0 ** (24 - power))) * noise(run, collective, power), 2))
                  for power in range(10, 35)]  # fmt: skip
        curves.append(series(f"busbw {collective}", "GB/s", "bytes", nodes, points))
        value, floor = points[-1][1], round(top * 0.95, 1)
        curves.append(series(f"floor {collective}", "GB/s", "bytes", [], [(points[-1][0], round(top * 0.8, 1))]))
        source = "published: https://learn.microsoft.com/azure/example" if collective == "all_reduce" else \
            f"derived: 0.95 x {top:g}"  # fmt: skip
        verdict = "pass" if value >= floor else "fail"
        checks.append(
            check(
                collective,
                verdict,
                value,
                floor,
                "GB/s",
                f"16G on {len(nodes)} nodes, NVLS",
                source,
            )
        )
    published = [(2.0**power, round(478 / (1 + 2.0 ** (23.6 - power)), 2)) for power in range(20, 35)]
    curves.append(series("published all_reduce", "GB/s", "bytes", [], published))
    summary = f"all_reduce {checks[0]['value']} GB/s at 16 GiB on {len(nodes)} nodes"
    return record("nccl-sweep-gpu", run, *checks, nodes=nodes, series=curves, summary=summary)


def pairs(run: int, nodes: Sequence[str], culprit: str = "") -> dict[str, Any]:
    """The tournament: rounds in which every node meets another one."""
    curves = []
    count = len(nodes)
    for number in range(count - 1):
        for place in range(count // 2):
            a = nodes[count - 1] if place == 0 else nodes[(number + place) % (count - 1)]
            b = nodes[(number - place) % (count - 1)]
            value = round(47.2 * noise(run, a, b) * (0.85 if culprit in (a, b) else 1), 2)
            curves.append(series("pair busbw", "GB/s", "round", [a, b], [(number + 1, value)]))
    found = [check("pairs", "fail", 40.1, 47.2, "GB/s", f"all {count - 1} pairs of it are slow", "median of all pairs",
                   [culprit])] if culprit else []  # fmt: skip
    every = check("all pairs", "pass", count * (count - 1) // 2, count * (count - 1) // 2, "pairs", "")
    summary = f"{culprit} is slow with every partner" if culprit else "no node is slower than the others"
    return record("fabric-pairs-gpu", run, every, *found, nodes=nodes, series=curves, summary=summary)


def performance(run: int, nodes: Sequence[str], slow: Sequence[str] = (), failed: Sequence[str] = ()) -> dict[str, Any]:
    """GEMM, memory, copies and temperatures of every node."""
    checks, curves = [], []
    for name, typical, unit in (
        ("gemm fp16", 710.0, "TFLOPS"), ("gemm bf16", 702.0, "TFLOPS"), ("gemm fp8", 1290.0, "TFLOPS"),
        ("hbm read", 2960.0, "GB/s"), ("host to device", 55.2, "GB/s"), ("peer copy", 378.0, "GB/s"),
        ("cpu stream triad", 651.0, "GB/s"), ("nvme raid read", 28.4, "GB/s"),
    ):  # fmt: skip
        for each in nodes:
            factor = (
                0.95
                if each in slow and name.startswith("gemm")
                else 0.82
                if each in failed and name == "hbm read"
                else 1
            )
            value, floor = round(typical * factor * noise(run, name, each, percent=1), 2), round(typical * 0.92, 1)
            verdict = "pass" if value >= floor else "fail"
            detail = "GPU 3 is the slowest" if verdict == "pass" else "GPU 5 is the slowest, 2 retired pages"
            checks.append(
                check(name, verdict, value, floor, unit, detail, "published: https://example.com/h100", [each])
            )
    for place, each in enumerate(nodes):
        hot = 9 if each in slow else 0
        rise = 31 + place % 5
        points = [(5 * step, round(38 + hot + rise * (1 - 0.82**step) + 2 * noise(each, step, percent=40), 1))
                  for step in range(60)]  # fmt: skip
        curves.append(series("gpu temperature", "C", "s", [each], points))
        drop = 160 if each in slow else 0
        clock = [(5 * step, round(1980 - (drop if step > 20 else 0) - 12 * noise(each, step, percent=90)))
                 for step in range(60)]  # fmt: skip
        curves.append(series("gpu clock", "MHz", "s", [each], clock))
    return record(
        "node-performance-gpu", run, *checks, nodes=nodes, series=curves, summary=f"{len(nodes)} nodes measured"
    )


def storage(run: int, nodes: Sequence[str]) -> dict[str, Any]:
    """fio and IOR on two mounts against what their tiers promise."""
    checks = []
    for mount, tier, clients in (("/data", 16000.0, len(nodes)), ("/data", 3200.0, 1), ("/shared", 1280.0, len(nodes))):
        for way in ("read", "write"):
            value = round(tier * 1.04 * noise(run, mount, way, clients, percent=6), 0)
            verdict = "pass" if value >= tier * 0.9 else "warn"
            checks.append(check(f"{mount} {way}, {clients} clients", verdict, value, tier, "MB/s",
                                "fio, 1 MiB blocks, direct", "derived: 128 TiB x 125 MB/s per TiB"))  # fmt: skip
    checks.append(check("/data create", "no_baseline", 41200, None, "files/s", "mdtest; nobody publishes a rate", ""))
    return record("storage-gpu", run, *checks, nodes=nodes, summary="2 mounts measured")


def smoke(run: int, nodes: Sequence[str], silent: Sequence[str] = ()) -> dict[str, Any]:
    """Every node answers, or not."""
    answers = {each: ("error", "did not answer") if each in silent else ("pass", "") for each in nodes}
    checks = [check(each, verdict, detail=words, nodes=[each]) for each, (verdict, words) in answers.items()]
    return record(
        "smoke-gpu", run, *checks, nodes=nodes, summary=f"{len(nodes) - len(silent)} of {len(nodes)} nodes answered"
    )


def proved(
    run: int, *gates: tuple[str, str, str], replace: Sequence[dict[str, str]] = (), **fields: Any
) -> dict[str, Any]:
    """A `prove.json`; a gate is its name, verdict and summary."""
    order = ("skipped", "pass", "warn", "no_baseline", "error", "fail")
    value = {
        "format": 1, "prove": f"p{run}", "level": "standard", "cluster": "lab", "partition": "gpu", "vm_size": H100,
        "started": "2026-11-15T08:00:00Z", "ended": "2026-11-15T12:40:00Z", "hours": 4.7, "gpu_hours": 601,
        "max_hours": 12, "max_gpu_hours": 1536,
        "verdict": max((verdict for _, verdict, _ in gates), key=order.index, default="error"),
        "nodes": names(16),
        "gates": [{"gate": gate, "job": f"{gate}-gpu", "verdict": verdict, "summary": summary,
                   "runs": [f"{gate}-gpu-{run}"]} for gate, verdict, summary in gates],
        "replace": list(replace),
    }  # fmt: skip
    return value | fields


def write_proof(folder: Path, value: dict[str, Any]) -> Path:
    """In the folder of all runs."""
    place = folder / f"prove-{value['prove']}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "prove.json").write_text(text_of(value))
    return folder


def proof(start: int, count: int = 16, *, sick: bool = True, slow: float = 1.0) -> list[dict[str, Any]]:
    """One round of the jobs on a cluster; with `sick`, one node fails, one is slow and one pair partner drags."""
    nodes = names(count)
    culprit, warm, bad = (nodes[6 % count], nodes[10 % count], nodes[2 % count]) if sick else ("", "", "")
    return [
        smoke(start, nodes),
        performance(start + 1, nodes, slow=[warm], failed=[bad]),
        pairs(start + 2, nodes, culprit),
        sweep(start + 3, nodes, slow=slow),
        storage(start + 4, nodes),
    ]
