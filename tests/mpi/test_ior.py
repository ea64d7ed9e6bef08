"""The job `storage` on real Slurm with real IOR and mdtest; test_prove.py has it run with fio."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from generator.definition.model.definition import Job
from generator.render import jobs
from tests.bed.cloud import Cloud
from tests.jobs.running import plan_with
from tests.mpi.conftest import PATH

IOR = os.environ.get("IOR_BINARY") or shutil.which("ior")
"""Debian has no package of it."""
NODES = {"emu-hpc-1", "emu-hpc-2", "emu-hpc-3", "emu-hpc-4"}


def run(cluster: Cloud, recipe: str, mounts: str = "", **settings: str) -> dict[str, Any]:
    """The record of a job as it is rendered, on all four nodes, submitted from the shared file system."""
    plan = plan_with(Job(recipe=recipe, partition="hpc", nodes=len(NODES)))
    for path, file in jobs.render(plan).items():
        target = cluster.shared / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    if mounts:
        (cluster.shared / "jobs" / recipe / "mounts.tsv").write_text(mounts, encoding="utf-8")
    exports = ",".join(f"{name if name == 'CF_ROOT' else f'SET_{name}'}={value}" for name, value in settings.items())
    inside = f"{cluster.shared_inside}/jobs/{recipe}"
    environment = f"PATH={PATH} FAKE_STATE={cluster.shared_inside}/faked"
    cluster.run(f"cd {inside} && env {environment} sbatch --wait '--export=ALL,{exports}' job.sbatch", timeout_s=300)
    results = settings.get("RESULTS_DIR", "results")
    (record,) = (cluster.shared / "jobs" / recipe / results).glob("*/run.json")
    return json.loads(record.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.mark.skipif(IOR is None, reason="no IOR: build hpc/ior with this machine's MPI and name it in IOR_BINARY")
def test_real_ior_and_mdtest_measure_all_clients(mpi_cluster: Cloud) -> None:
    """Two processes on each node, started with PMIx; what both print is read whole."""
    assert IOR is not None
    inside, folder = mpi_cluster.shared_inside, mpi_cluster.shared / "ior"
    folder.mkdir()
    for program in (Path(IOR), Path(IOR).with_name("mdtest")):
        shutil.copy(program, folder)
    mounts = mpi_cluster.shared / "ior/proc/mounts"
    mounts.parent.mkdir()
    mounts.write_text(f"server:/x {inside} nfs4 rw 0 0\n", encoding="utf-8")
    small = {"CLIENT_JOBS": "2", "CLIENT_MIB": "2", "METADATA_FILES": "20", "RESULTS_DIR": "ior"}
    settings = {**small, "IOR_BINARY": f"{inside}/ior/ior", "CF_ROOT": f"{inside}/ior", "STAGE_PATH": f"{inside}/jobs"}
    record = run(mpi_cluster, "storage", f"#path\n{inside}\tnfs\trw\t0.1\ttier\n", **settings)
    found = {check["check"]: check for check in record["checks"]}
    for way in ("write", "read"):
        assert found[f"{way} {inside}"]["verdict"] == "pass", record
        assert "4 clients, ior" in found[f"{way} {inside}"]["detail"]
    assert "mdtest: creation " in found[f"metadata {inside}"]["detail"]
