"""Runs a rendered job folder with fakes of Slurm, NCCL, Megatron-LM and Azure on the PATH."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from pathlib import Path

from msgspec import structs

from generator.definition.model.definition import Job
from generator.files import assets
from generator.plan.deployment import Plan
from generator.plan.nodes import NodeArrayPlan
from generator.render import jobs
from tests.bed import parts
from tests.bed.plans import slurm_of

FAKES = Path(__file__).parent / "fakes"
LIBRARY = assets.folder("recipes") / "lib"
SOURCED = f'export JOBS_LIB={LIBRARY}\n. "${{JOBS_LIB}}/common.sh"\n'
"""Stands for `library.sh` where no build has written it."""
SHELL: dict[str, str] = {}
"""What the shell of the user adds to the environment of jobs: nothing, unless a test says so."""

AZNHC_GOOD = "SUCCESS:  nhc:  Health check passed\nHealth checks completed with exit code: 0.\n"


def a100_devices(folder: Path, inside: str | None = None) -> dict[str, str]:
    """Write what a node of the A100 size shows in /sys and /proc/meminfo, and with which environment it is read.

    `inside` is the folder's path on the node, where it has another one there.
    """
    sys = folder / "sys"
    for number in range(8):
        disk = sys / f"block/nvme{number}n1/device"
        disk.mkdir(parents=True)
        (disk / "model").write_text("Microsoft NVMe Direct Disk\n")
        port = sys / f"class/infiniband/mlx5_ib{number}/ports/1"
        (port / "counters").mkdir(parents=True)
        for name, value in (
            ("link_layer", "InfiniBand"),
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", "200 Gb/sec (4X HDR)"),
        ):
            (port / name).write_text(f"{value}\n")
    (folder / "meminfo").write_text("MemTotal:       1857830712 kB\n")
    place = inside or str(folder)
    return {
        "CF_SYS": f"{place}/sys", "CF_MEMINFO": f"{place}/meminfo", "FAKE_VM_SIZE": "Standard_ND96amsr_A100_v4",
        "SET_EXPECT_VCPUS": str(os.sysconf("SC_NPROCESSORS_ONLN")),
    }  # fmt: skip


def write_aznhc(folder: Path, said: str = AZNHC_GOOD) -> None:
    """The health checks of the image, which say that much."""
    folder.mkdir(parents=True)
    (folder / "run-health-checks.sh").write_text(f"cat <<'EOF'\n{said}EOF\n")


def plan_with(job: Job, *arrays: NodeArrayPlan) -> Plan:
    """A plan with one job, on A100 nodes and CPU nodes unless arrays are given, and Lustre at /data."""
    arrays = arrays or (parts.node_array("hpc", parts.A100, max_nodes=16), parts.node_array("htc"))
    plan = parts.minimal()
    slurm = structs.replace(slurm_of(plan), node_arrays=arrays)
    return parts.with_jobs(structs.replace(plan, mounts=(parts.lustre(),), slurm=slurm), job)


def job(recipe: str, nodes: int = 2, /, **settings: str | int | bool) -> Job:
    """A job as a definition has it, on the partition `hpc`."""
    return Job(recipe=recipe, partition="hpc", nodes=nodes, settings=settings)


def settings_of(plan: Plan) -> dict[str, str]:
    return dict(plan.jobs[0].settings)


@dataclasses.dataclass
class JobFolder:
    """A job folder on disk and the environment that Slurm would give its scripts."""

    path: Path
    environment: dict[str, str]

    def run(self, script: str = "run.sh", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [f"./{script}"],
            cwd=self.path,
            env=SHELL | self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def library(self) -> Path:
        """The folder that it shares with other jobs."""
        (found,) = (self.path.parent / "lib").iterdir()
        return found

    @property
    def log(self) -> str:
        path = Path(self.environment["FAKE_LOG"])
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def results(self, name: str) -> str:
        return (self.path / "results" / "4711" / name).read_text(encoding="utf-8")


def job_folder(tmp_path: Path, plan: Plan | None, nodes: tuple[str, ...] = ("hpc-1", "hpc-2")) -> JobFolder:
    """The rendered folder of the plan's only job; without a plan the one that is below `out` already."""
    root = tmp_path / "out"
    for path, file in (jobs.render(plan) if plan else {}).items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    environment = {
        "PATH": f"{FAKES}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "FAKE_LOG": str(tmp_path / "srun.log"),
        "FAKE_NODES": " ".join(nodes),
        "FAKE_NODE_COUNT": str(len(nodes)),
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": ",".join(nodes),
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_CPUS_ON_NODE": "64",
        "SET_SHARED_DIR": str(tmp_path),
        "SET_STAGE_PATH": str(tmp_path / "stage"),
        "SET_NVME_MOUNT": "",
        "SET_IMPORT_SCRATCH_GB": "0",
    }
    (tmp_path / "stage").mkdir(exist_ok=True)
    (folder,) = (path for path in (root / "jobs").iterdir() if path.name != "lib")
    return JobFolder(folder, environment)


def with_library(folder: Path) -> None:
    """Let scripts in a folder that no build has written find the library."""
    (folder / "library.sh").write_text(SOURCED, encoding="utf-8")


def imported(folder: JobFolder) -> JobFolder:
    """The folder after a set-up step that has imported its image."""
    images = Path(folder.environment["SET_STAGE_PATH"]) / "images"
    images.mkdir(parents=True, exist_ok=True)
    settings = (folder.path / "settings.env").read_text(encoding="utf-8")
    reference = next(line for line in settings.splitlines() if line.startswith("CONTAINER=")).split("=", 1)[1]
    name = re.sub(r"[^A-Za-z0-9._-]", "+", reference.strip("'").removeprefix("docker://"))
    (images / f"{name}.digest").write_text(f"sha256:{'a' * 64}\n", encoding="utf-8")
    (images / f"sha256-{'a' * 64}.sqsh").write_text("squash", encoding="utf-8")
    return folder
