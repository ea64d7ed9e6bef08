"""Tournament and bisection for real: steps of Slurm with PMIx, MPI between nodes, one node or one adapter 15 % slower.

The noise is 5 %, uniform, and the same in every run of these tests; the cases that walk through files have others. On
healthy nodes nobody is named: the gate `pairs` of test_prove.py, and with noise tests/jobs/test_fabric_pairs.py.
"""

from __future__ import annotations

import json
from typing import Any

from generator.definition.model.definition import Job
from generator.render import jobs
from tests.bed.cloud import Cloud
from tests.jobs.running import plan_with

MODEL = "FAKE_BUSBW=200,FAKE_HALF_BYTES=0,FAKE_NOISE_PERCENT=5,FAKE_SEED=4,FAKE_SLOW_PERCENT=15"
SETTINGS: dict[str, str | int | bool] = {
    "MPI_MODULE": "",
    "TASKS_PER_NODE": "1",
    "CPUS_PER_TASK": "4",
    "CPU_BIND": "none",
    "ITERATIONS": "2",
    "GROUP_TIMEOUT_S": "30",
    "CONFIRMATIONS": "2",
}


def finished(cluster: Cloud, recipe: str, model: str, **settings: str) -> tuple[str, dict[str, Any]]:
    plan = plan_with(Job(recipe=recipe, partition="hpc", nodes=4, settings={**SETTINGS, **settings}))
    folder = cluster.shared / f"fabric{len(list(cluster.shared.glob('fabric*')))}"
    for path, file in jobs.render(plan).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    inside = f"{cluster.shared_inside}/{folder.name}/jobs/{recipe}"
    number = cluster.ok(f"cd {inside} && sbatch --parsable --export=ALL,{MODEL},{model} job.sbatch").strip()
    code = cluster.finish(number)["ExitCode"]
    record: dict[str, Any] = json.loads((folder / f"jobs/runs/{recipe}-{number}/run.json").read_text())
    return code, record


def bad(record: dict[str, Any], kind: str) -> set[str]:
    return {check["check"] for check in record["checks"] if f"{kind} " in check["check"] and check["verdict"] != "pass"}


def test_the_tournament_names_the_slow_node(mpi_cluster: Cloud) -> None:
    code, record = finished(mpi_cluster, "fabric-pairs", "FAKE_SLOW_NODE=emu-hpc-3")
    assert (code, record["verdict"]) == ("1:0", "fail"), record["summary"]
    assert bad(record, "pairs node") == {"pairs node emu-hpc-3"}
    pairs = {frozenset(series["nodes"]) for series in record["series"] if series["name"] == "pair bandwidth"}
    assert len(pairs) == 6
    assert len(record["nodes"]) == 4


def test_the_bisection_names_the_node_and_its_adapter(mpi_cluster: Cloud) -> None:
    code, record = finished(
        mpi_cluster,
        "fabric-bisect",
        "FAKE_SLOW_RAIL=emu-hpc-2:1",
        RAILS="mlx5_ib0 mlx5_ib1 mlx5_ib2",
        CONFIRMATIONS="3",
    )
    assert (code, record["verdict"]) == ("1:0", "fail"), record["summary"]
    assert bad(record, "rail") == {"rail mlx5_ib1"}
    assert bad(record, "node") == {"mlx5_ib1 node emu-hpc-2"}
