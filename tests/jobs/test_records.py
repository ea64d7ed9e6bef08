"""`run.json`: whatever ends a job leaves a whole record, and no secret is in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import catalog
from generator.recipes import recipe, recipe_names
from tests.bed import parts
from tests.jobs.running import JobFolder, job, job_folder, plan_with

KEYS = {
    "format", "job", "recipe", "run", "started", "ended", "cluster", "partition", "vm_size", "verdict", "summary",
    "nodes", "versions", "settings", "environment", "checks", "series",
}  # fmt: skip
HB = "Standard_HB176rs_v4"
PAGE = Path("docs/records.md").read_text(encoding="utf-8")
BEGIN = "set -euo pipefail; . ./library.sh; load_settings; new_results_folder; "


@pytest.fixture
def smoke(tmp_path: Path) -> JobFolder:
    return job_folder(tmp_path, plan_with(job("smoke")))


def started(folder: JobFolder, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", BEGIN + script],
        cwd=folder.path,
        env=folder.environment | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def record_of(folder: JobFolder) -> dict[str, Any]:
    text = folder.results("run.json")
    loaded: dict[str, Any] = json.loads(text)
    assert set(loaded) == KEYS
    assert not list((folder.path / "results").glob("*/*.partial"))
    return loaded


def test_a_run_leaves_its_record_in_both_places(smoke: JobFolder) -> None:
    assert smoke.run().returncode == 0
    record = record_of(smoke)
    assert (record["format"], record["job"], record["recipe"], record["run"]) == (1, "smoke", "smoke", "4711")
    assert (record["verdict"], record["summary"]) == ("pass", "2 of 2 nodes answered")
    assert record["started"] <= record["ended"]
    assert [node["name"] for node in record["nodes"]] == ["hpc-1", "hpc-2"]
    assert [each["nodes"] for each in record["checks"]] == [["hpc-1"], ["hpc-2"]]
    assert all(node["facts"]["kernel"] == os.uname().release for node in record["nodes"])
    assert record["settings"]["JOB"] == "smoke"
    assert record["versions"] == {"slurm": "22.05.8"}
    shared = smoke.path / "../runs/smoke-4711/run.json"
    assert shared.read_text(encoding="utf-8") == smoke.results("run.json")


def test_the_page_names_every_key(smoke: JobFolder) -> None:
    smoke.run()
    record = record_of(smoke)
    names = KEYS | set(record["checks"][0]) | set(record["nodes"][0])
    assert {name for name in names if f"`{name}`" not in PAGE} == set()


def test_a_node_tells_its_physical_host_and_drivers(smoke: JobFolder, tmp_path: Path) -> None:
    """Records of 512 bytes for the name and 2048 for the value (Linux, tools/hv/hv_kvp_daemon.c)."""
    root = tmp_path / "node"
    pool = root / "var/lib/hyperv/.kvp_pool_3"
    pool.parent.mkdir(parents=True)
    pairs = {"HostName": "BLZ22", "PhysicalHostNameFullyQualified": "BLZ22PrdApp07", "VirtualMachineName": "hpc-1"}
    pool.write_bytes(
        b"".join(key.encode().ljust(512, b"\0") + value.encode().ljust(2048, b"\0") for key, value in pairs.items())
    )
    (root / "sys/module/nvidia").mkdir(parents=True)
    (root / "sys/module/nvidia/version").write_text("580.126.20\n", encoding="utf-8")
    assert smoke.run(CF_ROOT=str(root)).returncode == 0
    for node in record_of(smoke)["nodes"]:
        assert (node["physical_host"], node["facts"]) == ("BLZ22PrdApp07", {"nvidia": "580.126.20"})


ENDS = {
    "exit 0": "the script ended with exit status 0 before its verdict",
    "exit 7": "the script ended with exit status 7 before its verdict",
    "false": "the script ended with exit status 1 before its verdict",
    'echo "${no_such_variable}"': "the script ended with exit status 1 before its verdict",
    "no_such_command": "the script ended with exit status 127 before its verdict",
    "require NO_SUCH_SETTING": "setting NO_SUCH_SETTING is empty; set it in settings.env",
    'record "${results}/checks.tsv" one pass 1 1 "" ""': "the script ended with exit status 0 before its verdict",
}


def test_a_script_that_ends_without_verdict_is_an_error(smoke: JobFolder) -> None:
    for number, (script, summary) in enumerate(ENDS.items()):
        smoke.environment["SLURM_JOB_ID"] = str(100 + number)
        started(smoke, script)
        record = json.loads((smoke.path / f"results/{100 + number}/run.json").read_text(encoding="utf-8"))
        assert (record["verdict"], record["summary"]) == ("error", summary), script
        assert record["ended"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_run_that_is_ended_from_outside_is_an_error(smoke: JobFolder, how: signal.Signals) -> None:
    """The time limit and scancel send SIGTERM to all processes of the job, then SIGKILL (scancel manual)."""
    process = subprocess.Popen(
        ["bash", "-c", BEGIN + "touch ready; sleep 1000"],
        cwd=smoke.path,
        env=smoke.environment,
        start_new_session=True,
        # Bash cannot trap what was ignored before it began, as SIGHUP is below nohup.
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL) if how is not signal.SIGKILL else None,
    )
    while not (smoke.path / "ready").exists():
        time.sleep(0.02)
        assert process.poll() is None
    while process.poll() is None:
        # Bash waits for the command it has just started, which did not get a signal that came before it.
        os.killpg(process.pid, how)
        time.sleep(0.2)
    record = record_of(smoke)
    assert record["verdict"] == "error"
    if how is signal.SIGKILL:
        assert record["ended"] is None
        assert record["summary"] == "the run did not come to its end"
    else:
        assert record["ended"]
        assert record["summary"] == f"ended by {how.name} before its verdict: the time limit, scancel or preemption"


def test_a_setting_is_no_variable_of_the_environment(tmp_path: Path) -> None:
    """NCCL_TEST_BINARY is a setting, NCCL_ALGO is not."""
    folder = job_folder(tmp_path, plan_with(job("nccl-allreduce")))
    started(folder, "load_nccl_env; conclude ok", NCCL_ALGO="Ring")
    record = record_of(folder)
    assert record["settings"]["NCCL_TEST_BINARY"]
    assert record["environment"]["NCCL_ALGO"] == "Ring"
    assert not set(record["settings"]) & set(record["environment"])


@pytest.fixture(scope="module")
def without_slurm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for path in Path("/usr/bin").iterdir():
        if path.name not in ("srun", "scontrol"):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize("name", recipe_names("validation"))
def test_a_job_that_cannot_begin_leaves_its_record(name: str, tmp_path: Path, without_slurm: Path) -> None:
    made_of = recipe(name)
    assert made_of
    hardware = catalog.vm_size(HB) if made_of.needs_no_gpu else parts.A100
    folder = job_folder(tmp_path, plan_with(job(name, 4), parts.node_array("hpc", hardware, max_nodes=16)))
    assert folder.run(PATH=str(without_slurm)).returncode != 0
    record = record_of(folder)
    assert record["verdict"] in ("error", "fail")
    assert record["ended"]


def test_what_may_be_a_secret_is_not_recorded(smoke: JobFolder) -> None:
    secrets = {
        "HF_TOKEN": "hf_0001",
        "NCCL_NET_PASSWORD": "s0002",
        "NCCL_HIDDEN_KEY": "s0003",
        "UCX_ADDRESS": "https://x.blob.core.windows.net/c?sv=1&sig=s0004",
        "NCCL_PROXY": "http://me:s0005@proxy:3128",
        "SET_SHARED_DIR": "/shared?sig=s0006",
        "NCCL_ALGO": "Ring",
    }
    smoke.run(**secrets)
    record = record_of(smoke)
    text = smoke.results("run.json")
    assert "hf_0001" not in text
    assert not [number for number in range(1, 7) if f"s000{number}" in text]
    assert record["environment"]["NCCL_ALGO"] == "Ring"
    assert record["environment"]["NCCL_PROXY"] == "(not recorded)"
    assert record["settings"]["SHARED_DIR"] == "(not recorded)"


TEXT = st.binary(max_size=30).map(lambda raw: raw.replace(b"\0", b""))


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=8))
def test_whatever_a_tool_prints_the_record_is_json(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[bytes, bytes, bytes]]
) -> None:
    """Bytes that are not UTF-8, control characters, quotes, numbers that are none."""
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "settings.env").write_text("JOB=x\n", encoding="utf-8")
    script = """. recipes/lib/records.sh; results="$1" run_started=0 run_summary=; requested_nodes() { :; }
        cd "$1"; shift
        while (($#)); do
            record checks.tsv "$1" pass "$2" "$3" "" ""; series s "" "" "" "$2" "$3"; shift 3
        done
        write_record pass ended"""
    flat = [part for row in rows for part in row]
    done = subprocess.run(
        [b"bash", b"-c", script.encode(), b"x", bytes(folder), *flat], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((folder / "run.json").read_bytes().decode("utf-8"))
    assert len(record["checks"]) == len(rows)
    assert all(
        len(point) == 2 and all(isinstance(each, int | float) for each in point)
        for each in record["series"]
        for point in each["points"]
    )


def test_a_figure_is_a_number_only_where_json_has_it(smoke: JobFolder) -> None:
    values = {
        "1": 1,
        "1.5e3": 1500,
        "-0.25": -0.25,
        "007": "007",
        "1.": "1.",
        "nan": "nan",
        "": None,
        "0x1f": "0x1f",
        "inf": "inf",
        "1e999": "1e999",
    }
    lines = "".join(f"record \"${{results}}/checks.tsv\" one pass '{value}' '' '' ''; " for value in values)
    started(smoke, lines + "conclude ok")
    assert [each["value"] for each in record_of(smoke)["checks"]] == list(values.values())


def test_what_a_run_made_for_itself_goes_with_it(smoke: JobFolder, tmp_path: Path) -> None:
    for number, script in enumerate(("conclude ok", "exit 3", "kill -TERM $$; sleep 1", "false")):
        smoke.environment["SLURM_JOB_ID"] = str(200 + number)
        (tmp_path / "made of us").mkdir()
        started(smoke, f"remove_at_end '{tmp_path}/made of us'; {script}")
        assert not (tmp_path / "made of us").exists(), script


def test_a_folder_of_runs_that_cannot_be_written_loses_no_verdict(smoke: JobFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = smoke.run(SET_RUNS_DIR=str(tmp_path / "file"))
    assert done.returncode == 0
    assert "could not be copied" in done.stdout
    assert record_of(smoke)["verdict"] == "pass"


def test_curves_are_grouped_by_name_and_nodes(smoke: JobFolder) -> None:
    points = "".join(f"series busbw GB/s bytes '' {point}; " for point in ("8 1.5", "16 2.5"))
    points += "series pair GB/s round a,b 1 180; series busbw GB/s bytes '' 32 nan; "
    started(smoke, points + 'record "${results}/checks.tsv" one pass 1 1 "" ""; conclude ok')
    assert record_of(smoke)["series"] == [
        {"name": "busbw", "unit": "GB/s", "x_unit": "bytes", "nodes": [], "points": [[8, 1.5], [16, 2.5]]},
        {"name": "pair", "unit": "GB/s", "x_unit": "round", "nodes": ["a", "b"], "points": [[1, 180]]},
    ]
