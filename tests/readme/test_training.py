"""The training part of each shipped definition's README, typed as it stands, ends in a verdict of every job."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from generator.plan.deployment import Plan
from generator.plan.jobs import JobPlan
from tests.definitions import build
from tests.jobs.running import FAKES
from tests.jobs.training_logs import composer_log, megatron_line, straggler_line

SMALL = {
    "SET_DATASET_LAST_INDEX": "2 1",
    "SET_DATASET_FILES": "5",
    "SET_DATASET_FILES_PER_CHUNK": "2",
    "SET_DOWNLOADS_PER_5_MINUTES": "0",
    "SET_WORKERS_PER_NODE": "1",
    "SET_CHUNKS": "1",
    "SET_IMPORT_SCRATCH_GB": "0",
}
"""Of a corpus that is there in an instant: what a person may give to try the steps."""
BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)


def trainings(plan: Plan) -> list[JobPlan]:
    return [job for job in plan.jobs if job.kind == "training"]


def planned(name: str) -> Plan:
    plan = build.checked(name).plan
    assert plan is not None
    return plan


def training_part(name: str) -> str:
    readme = build.rendered(name)[PurePosixPath("README.md")].content.decode()
    return readme.split("\n## Train\n")[1].split("\n## ")[0]


def log_of(job: JobPlan, settings: dict[str, str]) -> str:
    """Of a run that reaches what was published for its model and GPU."""
    if "TENSOR_PARALLEL" not in settings:
        rows = [row for table in job.tables for row in table.rows if row[0] == "tokens_per_gpu"]
        gpus = job.nodes * int(settings["GPUS_PER_NODE"])
        return composer_log(24, tokens=float(min(rows, key=lambda row: abs(int(row[1]) - gpus))[2]))
    peak, last = float(settings["GPU_PEAK_TFLOPS"]), int(settings["ITERATIONS"])
    return "".join(
        megatron_line(number, last, f"{9 - 4 * number / last:.6E}", 100.0, tflops=0.5 * peak)
        + straggler_line(395.0, 0, fastest=1)
        for number in range(10, last + 1, 10)
    )


class Cluster:
    """A home folder with the deployment's jobs, in a world whose mount points are below `root`."""

    def __init__(self, name: str, root: Path) -> None:
        self.root = root
        plan = planned(name)
        mounts = {mount.path for mount in plan.all_mounts} | {
            dict(job.settings)["NVME_MOUNT"] for job in trainings(plan)
        }
        self.mounts = re.compile(rf"(?<![\w/.])(?={'|'.join(sorted(mounts - {''}))})(?=/)")
        jobs = {path: file for path, file in build.rendered(name).items() if path.parts[0] == "jobs"}
        wanted = {"lib", *(job.name for job in trainings(plan))}
        build.write({path: file for path, file in jobs.items() if path.parts[1] in wanted}, root)
        for path in root.glob("jobs/*/settings.env"):
            path.write_text(self.moved(path.read_text(encoding="utf-8")), encoding="utf-8")
        for folder in ("runs", "logs", *(mount.lstrip("/") for mount in mounts - {""})):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for job in trainings(plan):
            for step in job.steps:
                text = log_of(job, dict(job.settings) | dict(step.settings)) if step.script == "run.sh" else ""
                (root / "logs" / str(dict(step.options)["job-name"])).write_text(text, encoding="utf-8")

    def moved(self, text: str) -> str:
        return self.mounts.sub(str(self.root), text)

    def types(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{FAKES}/controller:{FAKES}:{os.environ['PATH']}"
        given = {"PATH": path, "HOME": str(self.root), "FAKE_LOG": f"{self.root}/srun.log", **environment}
        folders = {"FAKE_RUNS": f"{self.root}/runs", "FAKE_LOGS": f"{self.root}/logs"}
        return subprocess.run(
            ["bash", "-euc", self.moved(command)], cwd=self.root, env=SMALL | given | folders, capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    def submitted(self) -> list[tuple[str, str, str, str]]:
        """(id, folder, batch file, exit status) in the order of submission."""
        lines = (self.root / "runs/jobs.tsv").read_text(encoding="utf-8").splitlines()
        return [(row[0], row[1], row[2], row[3]) for row in (line.split("\t") for line in lines)]


@pytest.mark.parametrize("name", [name for name in build.NAMES if trainings(planned(name))])
def test_every_job_of_the_page_ends_in_a_verdict(name: str, tmp_path: Path) -> None:
    cluster = Cluster(name, tmp_path)
    blocks = BLOCK.findall(training_part(name))
    jobs = trainings(planned(name))
    assert len(blocks) == len(jobs)
    for block in blocks:
        ran = cluster.types(block)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    done = cluster.submitted()
    assert [(folder, file) for _, folder, file, _ in done] == [
        (job.name, step.file) for job in jobs for step in job.steps
    ]
    verdicts = {}
    for number, folder, file, status in done:
        (output,) = (tmp_path / "jobs" / folder).glob(f"*_{number}.out")
        assert status == "0", (folder, file, status, output.read_text(encoding="utf-8")[-2000:])
        record = tmp_path / "jobs" / folder / "results" / number / "run.json"
        if record.exists():
            verdicts[folder, file] = json.loads(record.read_text(encoding="utf-8"))["verdict"]
    runs = {(job.name, step.file) for job in jobs for step in job.steps if step.script == "run.sh"}
    assert set(verdicts) == runs
    assert set(verdicts.values()) == {"pass"}


@pytest.mark.parametrize("name", [name for name in build.NAMES if not trainings(planned(name))])
def test_a_page_without_training_says_so(name: str) -> None:
    assert "has no training jobs" in training_part(name)


def test_nothing_is_trained_behind_a_step_that_failed(tmp_path: Path) -> None:
    cluster = Cluster("gpt3-h100", tmp_path)
    (block,) = BLOCK.findall(training_part("gpt3-h100"))
    assert cluster.types(block, FAKE_MISSING="example_train_1.jsonl.zst").returncode == 0
    states = {file: status for _, _, file, status in cluster.submitted()}
    assert states.pop("10-setup.sbatch") == "0"
    assert states.pop("20-download.sbatch") == "2"
    assert set(states.values()) == {"DependencyNeverSatisfied"}
