"""The job `osu` on real Slurm over real MPI: with a stand-in of its programs, and with those of the pinned source."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from generator.catalog import vm_size
from generator.definition.model.definition import Job
from generator.render import jobs
from tests.bed import parts
from tests.bed.cloud import Cloud
from tests.bed.sources import blob_or_skip
from tests.jobs.running import plan_with

PROGRAMS = ("osu_bw", "osu_latency")
STAND_IN = Path(__file__).with_name("osu_program.py")
UTILITIES = ("osu_util", "osu_util_mpi", "osu_util_graph", "osu_util_papi")
DEFINED = ("-DFIELD_WIDTH=18", "-DFLOAT_PRECISION=2", '-DPACKAGE_VERSION="7.4"')
"""What its configure defines for these two programs, without CUDA and the like."""
SIZE = "Standard_HB120-96rs_v3"
"""As many cores as the nodes of this cluster have."""
SMALL: dict[str, str | int | bool] = {
    "MPI_MODULE": "", "BINARY": "/opt/osu/osu_bw", "MESSAGE_SIZE": "16K", "SWEEP_END": "16K", "ITERATIONS": "4",
    "GROUP_TIMEOUT_S": "200", "LATENCY_WARN_US": "1000000", "FLOOR_WARN": "0.000001",
}  # fmt: skip
"""The default, 64 messages of 4 MiB at once and that 1,000 times, takes minutes between two processes of a host."""


def judged(cluster: Cloud, nodes: int) -> dict[str, Any]:
    array = parts.node_array("hpc", vm_size(SIZE), max_nodes=4)
    plan = plan_with(Job(recipe="osu", partition="hpc", nodes=nodes, settings=SMALL), array)
    folder = cluster.shared / f"osu{len(list(cluster.shared.glob('osu*')))}"
    for path, file in jobs.render(plan).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    number = cluster.ok(f"cd {cluster.shared_inside}/{folder.name}/jobs/osu && sbatch --parsable job.sbatch").strip()
    cluster.finish(number)
    record: dict[str, Any] = json.loads((folder / f"jobs/runs/osu-{number}/run.json").read_text(encoding="utf-8"))
    return record


def check(record: dict[str, Any]) -> None:
    """Up to three nodes are judged by floors alone, which are below whatever this host does; both curves are whole."""
    assert record["verdict"] == "pass", record
    found = {each["check"]: each for each in record["checks"]}
    names = [each["name"] for each in record["nodes"]]
    for kind, unit in (("latency", "us"), ("bandwidth", "GB/s")):
        pairs = {frozenset(name.split()[2].split(",")) for name in found if name.startswith(f"{kind} pair ")}
        assert pairs == {frozenset(pair) for pair in itertools.combinations(names, 2)}
        for each in (found[name] for name in found if name.startswith(f"{kind} pair ")):
            assert (each["verdict"], each["unit"]) == ("pass", unit)
            assert each["value"] > 0
    curves = {each["name"]: each["points"] for each in record["series"]}
    assert curves.keys() == set(PROGRAMS)
    for points in curves.values():
        assert [x for x, _ in points] == [1 << power for power in range(15)]
    assert all(y > 0 for _, y in curves["osu_latency"]), "a bandwidth may be rounded to nothing on a busy host"


def test_stand_ins_send_real_messages(mpi_cluster: Cloud) -> None:
    folder = mpi_cluster.folder / "opt/osu"
    folder.mkdir(exist_ok=True)
    text = f"#!{Path(sys.executable).resolve()} -IS\n{STAND_IN.read_text(encoding='utf-8')}"
    for name in PROGRAMS:
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    check(judged(mpi_cluster, nodes=3))


def test_the_real_programs_as_the_pinned_source_makes_them(mpi_cluster: Cloud, tmp_path: Path) -> None:
    source = blob_or_skip("osu-micro-benchmarks-7.4.tar")
    if shutil.which("mpicc") is None:
        pytest.skip("mpicc is not installed (libopenmpi-dev)")
    with tarfile.open(fileobj=io.BytesIO(source)) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = mpi_cluster.folder / "opt/osu"
    folder.mkdir(exist_ok=True)
    compile_ = ["mpicc", "-O1", "-w", *DEFINED, "-I", "c/util"]
    subprocess.run([*compile_, "-c", *(f"c/util/{name}.c" for name in UTILITIES)], cwd=tmp_path, check=True)
    objects = [f"{name}.o" for name in UTILITIES]
    for name in PROGRAMS:
        (folder / name).unlink(missing_ok=True)
        words = ["-o", str(folder / name), f"c/mpi/pt2pt/standard/{name}.c", *objects, "-lm"]
        subprocess.run([*compile_, *words], cwd=tmp_path, check=True)
    check(judged(mpi_cluster, nodes=2))
