"""A node whose task hangs and cannot be ended: every job on several nodes ends in time, and names it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from generator.files import assets
from generator.recipes import recipe, recipe_names
from tests.jobs.running import FAKES, JobFolder, a100_devices, job, job_folder, plan_with, write_aznhc
from tests.jobs.test_start_times import Start

NODES = ("hpc-1", "hpc-2", "hpc-3", "hpc-4")
BEFORE_END_S = 90
"""As in common.sh."""


def folder(path: Path, name: str) -> JobFolder:
    made = job_folder(path, plan_with(job(name, len(NODES))), NODES)
    made.environment |= a100_devices(path) | {
        "FAKE_HANGING": "hpc-2", "FAKE_AT_ONCE": "1", "SET_AZNHC_DIR": str(path / "aznhc"),
    }  # fmt: skip
    write_aznhc(path / "aznhc")
    return made


def start_times(path: Path) -> JobFolder:
    started = Start(path)
    (path / "image.sqsh").write_text("squash")
    started.folder.environment |= {
        "FAKE_HANGING": "hpc-2", "SET_TESTS": "containers", "SET_IMAGE": str(path / "image.sqsh"),
    }  # fmt: skip
    return started.folder


def storage(path: Path) -> JobFolder:
    made = folder(path, "storage")
    (made.path / "mounts.tsv").write_text("/data\tlustre\trw\t-\t-\n")
    (path / "proc").mkdir()
    (path / "proc/mounts").write_text("x /data lustre rw 0 0\n")
    made.environment |= {"CF_ROOT": str(path)}
    return made


def node_performance(path: Path) -> JobFolder:
    made = folder(path, "node-performance")
    made.environment |= {"SET_TESTS": "none-of-this-name"}
    return made


def fabric_links(path: Path) -> JobFolder:
    made = folder(path, "fabric-links")
    made.environment |= {
        "PATH": f"{FAKES}/fabric:{made.environment['PATH']}", "SET_LOOPBACK": "none", "SET_MPI_MODULE": "",
    }  # fmt: skip
    return made


MAKERS: dict[str, Callable[[Path], JobFolder]] = {
    "fabric-links": fabric_links,
    "nccl-allreduce": lambda path: folder(path, "nccl-allreduce"),
    "nccl-sweep": lambda path: folder(path, "nccl-sweep"),
    "node-health": lambda path: folder(path, "node-health"),
    "node-performance": node_performance,
    "smoke": lambda path: folder(path, "smoke"),
    "start-times": start_times,
    "storage": storage,
}
PAIRS = ("fabric-bisect", "fabric-pairs", "osu")
"""Jobs of steps on some of the nodes: test_fabric_pairs, test_fabric_bisect and test_osu have some that hang."""


def run(made: JobFolder) -> dict[str, Any]:
    # The job's own time limit is near, and those of its steps are longer. What the other nodes do takes a second.
    end = str(int(time.time()) + BEFORE_END_S + 40)
    done = made.run(SLURM_JOB_END_TIME=end)
    record: dict[str, Any] = json.loads(made.results("run.json"))
    return record | {"status": done.returncode, "said": done.stdout + done.stderr}


def test_the_node_is_named_before_the_job_ends(tmp_path: Path) -> None:
    for name in MAKERS:
        (tmp_path / name).mkdir()
    with ThreadPoolExecutor(len(MAKERS)) as pool:
        records = dict(zip(MAKERS, pool.map(lambda name: run(MAKERS[name](tmp_path / name)), MAKERS), strict=True))
    for name, record in records.items():
        bad = [check for check in record["checks"] if check["verdict"] in ("fail", "error") and check["nodes"]]
        if name == "node-performance":
            # Here no node has anything to measure with.
            bad = [check for check in bad if check["check"] == "complete"]
        assert {node for check in bad for node in check["nodes"]} == {"hpc-2"}, (name, record["said"])
        assert record["ended"] is not None
        assert record["status"] in (1, 2), (name, record["said"])


def test_every_job_on_several_nodes_is_here() -> None:
    own = {name for name in recipe_names("validation") if not (found := recipe(name)) or not found.trains}
    assert own == {*MAKERS, *PAIRS}


def test_no_step_of_a_validation_job_is_without_a_limit() -> None:
    root = assets.folder("recipes")
    scripts = [path for name in (*MAKERS, *PAIRS) for path in (root / name).glob("*.sh")]
    scripts += [root / "lib" / f"{name}.sh" for name in ("collective", "fabric", "records", "node-gate", "common")]
    starts = re.compile(r'\b(?:srun|by_mpirun|"\$\(command -v mpirun\)") (?:--[a-z]|"\$\{(?!limit)|"\$\{options)')
    for path in scripts:
        for line in path.read_text().replace("\\\n", " ").splitlines():
            if line.lstrip().startswith("#") or "--help" in line or not starts.search(line):
                continue
            assert re.search(r"\bbounded \S+ |by_mpirun (300|\"\$\{TIMEOUT_S\}\") ", line), (path, line)


@pytest.mark.parametrize(
    ("end", "limit"), [("", "40"), ("1000", "10"), ("1100", "40"), ("995", "5"), ("10", "1"), ("tomorrow", "40")]
)
def test_a_limit_leaves_time_for_a_verdict(end: str, limit: str) -> None:
    common = assets.folder("recipes") / "lib/common.sh"
    script = f"""
        eval "$(sed -n '/^readonly BEFORE_END_S/,/^# need_time/p' '{common}')"
        printf() {{ builtin printf -v now 900; }}
        timeout() {{ echo "$2"; }}
        SLURM_JOB_END_TIME='{end}' bounded 40 true
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == limit
