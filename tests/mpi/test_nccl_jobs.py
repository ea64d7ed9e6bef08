"""The NCCL jobs as they are rendered, launched for real in each of the ways that they can be started."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from generator import catalog
from generator.render import jobs
from tests.bed import parts
from tests.bed.cloud import Cloud
from tests.jobs.running import job, plan_with
from tests.mpi.conftest import PATH

GIB = 1024**3
FIVE = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
BUSBW = "all_reduce=195,alltoall=24,sendrecv=24,194"
ENVIRONMENT = {
    "PATH": PATH, "FAKE_STATE": "/mnt/shared/faked", "FAKE_BUSBW": BUSBW,
    # One process for eight GPUs.
    "SET_TASKS_PER_NODE": "1",
}  # fmt: skip


class Jobs:
    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def folder(self, recipe: str, name: str, vm_size: str = "Standard_ND96amsr_A100_v4", nodes: int = 2) -> Path:
        hardware = catalog.vm_size(vm_size)
        plan = plan_with(job(recipe, nodes), parts.node_array("hpc", hardware, max_nodes=4))
        folder = self.cloud.shared / "jobs" / name
        for path, file in jobs.render(plan).items():
            place = self.cloud.shared / path
            target = folder / path.relative_to("jobs", recipe) if path.parts[1] == recipe else place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(0o755 if file.executable else 0o644)
        return folder

    def submit(self, folder: Path, *options: str, **environment: str) -> tuple[int, dict[str, Any]]:
        words = [f"{name}={value}" for name, value in (ENVIRONMENT | environment).items()]
        place = f"/mnt/shared/jobs/{folder.name}"
        command = ["env", *words, "sbatch", "--parsable", f"--chdir={place}", *options, f"{place}/job.sbatch"]
        number = self.cloud.ok(f"cd {place} && {shlex.join(command)}").strip()
        fields = self.cloud.finish(number)
        return int(fields["ExitCode"].split(":")[0]), self.record(folder, number)

    def record(self, folder: Path, run: str) -> dict[str, Any]:
        """The record of a run, which must be there in both places."""
        written = (folder / "results" / run / "run.json").read_text(encoding="utf-8")
        (shared,) = (self.cloud.shared / "jobs/runs").glob(f"*-{run}/run.json")
        assert shared.read_text(encoding="utf-8") == written
        found: dict[str, Any] = json.loads(written)
        return found


@pytest.fixture(scope="module")
def made(mpi_cluster: Cloud) -> Jobs:
    return Jobs(mpi_cluster)


def verdicts(record: dict[str, Any]) -> dict[str, str]:
    """Verdicts by check; the worst one of a name that is there several times is enough to see."""
    return {each["check"]: each["verdict"] for each in record["checks"]}


def check_sweep(record: dict[str, Any]) -> None:
    """Five collectives with PMIx, each from 512 MiB on; test_prove.py has them run."""
    found = verdicts(record)
    assert {name: found[name] for name in FIVE} == {
        "all_reduce": "pass",
        # Above a derived floor nothing is proven, and nothing was measured before.
        **dict.fromkeys(FIVE[1:], "no_baseline"),
    }
    assert record["verdict"] == "no_baseline"
    curves = {each["name"]: each for each in record["series"]}
    for name in FIVE:
        points = curves[f"busbw {name}"]["points"]
        assert [point[0] for point in points] == [1 << place for place in range(29, 34)]
        assert [point[1] for point in points] == sorted(point[1] for point in points)
        assert curves[f"busbw {name}"]["nodes"] == [each["name"] for each in record["nodes"]]
        assert found[f"{name} ranks"] == found[f"{name} sweep"] == found[f"{name} wrong_values"] == "pass"
    (judged,) = (each for each in record["checks"] if each["check"] == "all_gather")
    assert judged["detail"].startswith(f"algorithm RING, fabric infiniband, {8 * GIB} bytes, 16 ranks on 2 nodes; ")
    assert record["versions"]["nccl"] == "2.27.3+cuda12.9"
    assert {each["facts"]["kernel"] for each in record["nodes"]}


def test_one_collective_by_bare_mpirun_in_a_job(made: Jobs) -> None:
    folder = made.folder("nccl-allreduce", "mpirun")
    status, record = made.submit(folder, "--nodelist=emu-hpc-[2,4]", SET_LAUNCH="mpirun", SET_TASKS_PER_NODE="2")
    assert (status, verdicts(record)["all_reduce"]) == (0, "pass")
    (results,) = (folder / "results").iterdir()
    assert (results / "hosts").read_text(encoding="utf-8") == "emu-hpc-2 slots=2\nemu-hpc-4 slots=2\n"
    header = [line for line in (results / "all_reduce.log").read_text().splitlines() if line.startswith("#  Rank")]
    assert [line.split(" on ")[1].split()[0] for line in header] == ["emu-hpc-2"] * 8 + ["emu-hpc-4"] * 8


def test_bare_mpirun_without_slurm(made: Jobs) -> None:
    """From the login node, with ssh; Slurm is asked for nothing but the host file."""
    folder = made.folder("nccl-allreduce", "login")
    place = "cd /mnt/shared/jobs/login"
    listed = made.cloud.ok(f"{place}; ./hosts.sh --slots 1 --partition hpc")
    assert listed == "".join(f"emu-hpc-{number} slots=1\n" for number in (1, 2, 3, 4))
    made.cloud.ok(f"{place}; ./hosts.sh --slots 1 'emu-hpc-[3-4]' >hosts; rm -f /mnt/shared/ssh.calls")
    words = shlex.join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    done = made.cloud.run(f"{place}; env {words} FAKE_SLOW_NODE=emu-hpc-4 SET_HOSTFILE=hosts ./run.sh")
    assert done.code == 1, done.output
    (results,) = (folder / "results").iterdir()
    record = made.record(folder, results.name)
    assert results.name.startswith("mpirun-")
    assert [each["name"] for each in record["nodes"]] == ["emu-hpc-3", "emu-hpc-4"]
    assert verdicts(record)["all_reduce"] == record["verdict"] == "fail"
    assert verdicts(record)["all_reduce ranks"] == "pass"
    calls = (made.cloud.shared / "ssh.calls").read_text(encoding="utf-8")
    assert {line.split()[1] for line in calls.splitlines()} == {"emu-hpc-3", "emu-hpc-4"}


def test_rccl_on_mi300x(made: Jobs) -> None:
    folder = made.folder("nccl-allreduce", "rccl", "Standard_ND96isr_MI300X_v5", nodes=1)
    settings = dict(line.split("=", 1) for line in (folder / "nccl.env").read_text().splitlines())
    assert settings["HSA_NO_SCRATCH_RECLAIM"] == "1"
    assert settings["LD_LIBRARY_PATH_PREPEND"] == "/opt/rccl/lib"
    gpus = made.cloud.shared / "sys/class/kfd/kfd/topology/nodes"
    for number in range(10):
        (gpus / str(number)).mkdir(parents=True)
        # The first two are the processors. Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
        text = f"cpu_cores_count {48 if number < 2 else 0}\nsimd_count {0 if number < 2 else 1216}\n"
        (gpus / str(number) / "properties").write_text(text, encoding="utf-8")
    given = {"CF_SYS": "/mnt/shared/sys", "FAKE_BUSBW": "314", "FAKE_HALF_BYTES": "0", "FAKE_NCCL_VERSION": "2.22.3"}
    status, record = made.submit(folder, **given)
    assert (status, verdicts(record)["all_reduce"]) == (0, "pass")
    assert record["environment"]["HSA_NO_SCRATCH_RECLAIM"] == "1"
    assert record["environment"]["LD_LIBRARY_PATH"].startswith("/opt/rccl/lib")


def test_what_breaks_in_the_middle_never_passes(made: Jobs) -> None:
    """As the launch itself meets it; what a run makes of other outputs is tested with texts, in tests/jobs."""
    folder = made.folder("nccl-allreduce", "broken")
    for variables, said in (
        ({"FAKE_HANG_AT": "header", "SET_TIMEOUT_S": "2"}, "ran past 2 s"),
        ({"FAKE_WITHOUT_MPI": "1"}, "of them twice: separate tests"),
        # One rank dies twice, and the other waits for it.
        ({"FAKE_BAD_NODE": "emu-hpc-2", "SET_TIMEOUT_S": "60"}, "its launcher failed with exit status 1"),
    ):
        code, record = made.submit(folder, **variables)
        (bad,) = (each for each in record["checks"] if each["verdict"] != "pass")
        assert (code, bad["verdict"], said in bad["detail"]) == (2, "error", True), (variables, record)
