"""A node whose task hangs and cannot be ended: every job on several nodes ends in time, and names it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from generator.catalog import vm_size
from generator.files import assets
from generator.recipes import recipe, recipe_names
from tests.bed import parts
from tests.jobs.running import FAKES, JobFolder, a100_devices, job, job_folder, plan_with, write_aznhc
from tests.jobs.test_start_times import Start

NODES = ("hpc-1", "hpc-2", "hpc-3", "hpc-4")
ERROR = 2
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


def pairs(path: Path, name: str) -> JobFolder:
    array = parts.node_array("hpc", vm_size("Standard_HB120rs_v3"), max_nodes=16)
    plan = plan_with(job(name, len(NODES), MPI_MODULE=""), *([array] if name == "osu" else []))
    made = job_folder(path, plan, NODES)
    made.environment["PATH"] = f"{FAKES}/fabric:{made.environment['PATH']}"
    return made


PAIRS: dict[str, Callable[[Path], JobFolder]] = {
    "fabric-bisect": lambda path: pairs(path, "fabric-bisect"),
    "fabric-pairs": lambda path: pairs(path, "fabric-pairs"),
    "osu": lambda path: pairs(path, "osu"),
}
"""Jobs of steps on some of the nodes: test_fabric_pairs, test_fabric_bisect and test_osu have some that hang."""


def run(made: JobFolder, left_s: int, **environment: str) -> dict[str, Any]:
    done = made.run(SLURM_JOB_END_TIME=str(int(time.time()) + left_s), **environment)
    record: dict[str, Any] = json.loads(made.results("run.json"))
    return record | {"status": done.returncode, "said": done.stdout + done.stderr}


def changed(made: JobFolder, name: str, before: str, after: str) -> None:
    """Another figure in a script of the job, where it has that script and that figure."""
    place = made.library if name in ("collective.sh", "common.sh") else made.path
    if (script := place / name).exists():
        script.write_text(script.read_text().replace(before, after))


def all_at_once(names: Iterable[str], path: Path, run: Callable[[str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    names = list(names)
    for name in names:
        (path / name).mkdir()
    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(run, names), strict=True))


def test_the_node_is_named_before_the_job_ends(tmp_path: Path) -> None:
    def limited(name: str) -> dict[str, Any]:
        # Longer than what the other nodes need on a busy machine, and shorter than the job.
        made = MAKERS[name](tmp_path / name)
        changed(made, "collective.sh", "bounded 300 ", "bounded 40 ")
        changed(made, "run.sh", '"$((LINK_TIMEOUT_S * 2 + 60))"', "40")
        return run(made, 600, SET_TIMEOUT_S="40")

    records = all_at_once(MAKERS, tmp_path, limited)
    for name, record in records.items():
        bad = [check for check in record["checks"] if check["verdict"] in ("fail", "error") and check["nodes"]]
        if name == "node-performance":
            # Here no node has anything to measure with.
            bad = [check for check in bad if check["check"] == "complete"]
        assert {node for check in bad for node in check["nodes"]} == {"hpc-2"}, (name, record["said"])
        assert record["ended"] is not None
        assert "longer --time" not in record["said"], name
        assert record["status"] in (1, 2), (name, record["said"])


@pytest.mark.parametrize("slow", ["all", "hpc-3"])
def test_who_is_cut_off_by_the_end_of_the_job_is_not_named(tmp_path: Path, slow: str) -> None:
    def cut_off(name: str) -> dict[str, Any]:
        made = {**MAKERS, **PAIRS}[name](tmp_path / name)
        # So that it begins with the few seconds that it is given.
        changed(made, "common.sh", "LEAST_STEP_S=30", "LEAST_STEP_S=0")
        changed(made, "durations.sh", "seconds+=60", "seconds+=0")
        return run(made, BEFORE_END_S + 4, FAKE_HANGING="", FAKE_SLOW=slow, FAKE_SLOW_S="100")

    for name, record in all_at_once({**MAKERS, **PAIRS}, tmp_path, cut_off).items():
        named = [check for check in record["checks"] if check["verdict"] != "pass" and check["nodes"]]
        # Where no node has anything to measure with, those that have answered say so.
        named = [check for check in named if check["check"] != "none-of-this-name"]
        assert named == [], (name, record["said"])
        assert record["status"] == ERROR, (name, record["said"])
        assert "longer --time" in record["said"] + str(record["checks"]), name
        assert not re.search(r"ran past|after (600|2400|300) s", record["said"]), (name, record["said"])
        failed = JobFolder(tmp_path / name, {}).path.rglob("failed_nodes.txt")
        assert "".join(path.read_text() for path in failed) == ""


def test_no_node_is_asked_where_the_job_is_as_good_as_over(tmp_path: Path) -> None:
    records = all_at_once(
        {**MAKERS, **PAIRS}, tmp_path, lambda name: run({**MAKERS, **PAIRS}[name](tmp_path / name), BEFORE_END_S + 20)
    )
    for name, record in records.items():
        assert [check for check in record["checks"] if check["nodes"]] == [], (name, record["said"])
        assert (record["status"], "longer --time" in record["said"] + str(record["checks"])) == (ERROR, True), name


def test_a_task_that_ends_with_the_number_of_a_limit_was_not_cut_off(tmp_path: Path) -> None:
    made = folder(tmp_path, "smoke")
    script = made.path / "run.sh"
    script.write_text(
        script.read_text().replace("    keep_node_facts\n", '    [[ "$SLURMD_NODENAME" != hpc-2 ]] || exit 124\n')
    )
    record = run(made, BEFORE_END_S + 400, FAKE_HANGING="")
    bad = [check for check in record["checks"] if check["verdict"] != "pass"]
    assert [(check["verdict"], check["nodes"]) for check in bad] == [("fail", ["hpc-2"])]


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
