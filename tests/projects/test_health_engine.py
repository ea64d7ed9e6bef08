"""The engine: LBNL NHC of the blob or of the image, the built-in runner, and what happens when it dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from generator.blobs.pins import pinned_of
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import HANGS
from tests.bed.sources import blob_or_skip
from tests.projects.conftest import MakeNode

NHC = next(iter(pinned_of("slurm_nhc")))
UNPACKED = "opt/cycleforge/slurm_nhc/nhc"


def nhc_source(target: Path) -> None:
    """LBNL NHC as pinned."""
    content = blob_or_skip(NHC)
    target.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", target], input=content, check=True)


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    return healthy(make_node("slurm_nhc"))


@pytest.fixture(params=["built in", "nhc", "nhc of the image"])
def engine(request: pytest.FixtureRequest, node: Healthy, tmp_path: Path) -> Healthy:
    """A node with each engine in turn."""
    if request.param != "built in":
        nhc_source(tmp_path / "nhc")
    if request.param == "nhc":
        shutil.copytree(tmp_path / "nhc", node.root / UNPACKED)
        node.write(f"{UNPACKED}.version", "1.4.3-9c4a38c\n")
    elif request.param == "nhc of the image":
        (node.root / "usr/sbin").mkdir(parents=True)
        shutil.copy(tmp_path / "nhc/nhc", node.root / "usr/sbin/nhc")
        shutil.copytree(tmp_path / "nhc/scripts", node.root / "etc/nhc/scripts")
        # Settings of the image's own runs; ours must not be touched by them.
        node.write("etc/default/nhc", "DETACHED_MODE=1\nMARK_OFFLINE=1\n")
    if request.param != "built in":
        for tool in ("logger", "sh", "id", "hostname"):
            node.fake(tool, "exit 0")
    node.engine = request.param
    return node


def test_a_healthy_node_passes_and_the_engine_is_named(engine: Healthy) -> None:
    result = engine.quick()
    assert result["verdict"] == "pass", result
    assert result["engine"].startswith(engine.engine)
    assert {row["verdict"] for row in result["checks"]} == {"pass"}


def test_all_faults_are_found_not_only_the_first(engine: Healthy) -> None:
    engine.set_gpus(engine.rows[:7], remap="{i}, Yes, No, 513")
    engine.lose_mount()
    result = engine.quick()
    failed = {row["check"] for row in result["checks"] if row["verdict"] == "fail"}
    assert failed == {"gpu_count", "gpu_remap_pending", "gpu_remap_uncorrectable", "mount"}
    assert engine.reason() == (
        "CycleForge health: report the host to Azure and take another VM: "
        "gpu_remap_uncorrectable 513 rows, at most 512 rows (GPU 0); gpu_remap_pending 1 rows, at most 0 rows (GPU 0); "
        "mount (/shared is not mounted); gpu_count 7 GPUs, expected 8 GPUs (missing 0008:00:00)"
    )
    assert [call for call in engine.calls("scontrol update") if "NHC:" in call] == []


# The engine is the process that the outermost timeout has started.
_KILL_THE_ENGINE = """
pid=$PPID
while ((pid > 1)); do
    parent="$(cut -d' ' -f4 /proc/$pid/stat)"
    if tr '\\0' ' ' <"/proc/$parent/cmdline" | grep -q 'timeout --kill-after=[^ ]* [0-9]* bash '; then
        kill -9 "$pid"
        exit
    fi
    pid="$parent"
done
"""


def test_every_line_has_a_record_when_the_engine_is_killed(engine: Healthy) -> None:
    """A check that kills the engine: itself and all that follow are not measured; what was measured stays."""
    engine.fake("nvidia-smi", _KILL_THE_ENGINE)
    code, _ = engine.health("quick")
    assert code == 0
    result = engine.result("quick")
    verdicts = {row["check"]: row["verdict"] for row in result["checks"]}
    assert verdicts["cpu_threads"] == "pass"
    assert result["verdict"] == "incomplete"
    configured = engine.read("etc/cycleforge/nhc/quick.conf").count("* || cycleforge ")
    assert len(result["checks"]) >= configured - 2, "lines after the kill have records too"
    assert verdicts["gpu_xid"] == "not_measured"


def test_a_hanging_tool_costs_its_limit_not_the_run(engine: Healthy) -> None:
    engine.fake("nvidia-smi", HANGS)
    engine.forget()
    code, output = engine.health("epilog")
    assert code == 0, output
    assert sum(engine.limits_s("nvidia-smi")) < 25, "the epilog ends it after 25 s"
    result = engine.result("quick")
    assert result["verdict"] == "incomplete"
    assert engine.reason() == ""
    (row,) = [row for row in result["checks"] if row["check"] == "nvidia_smi"]
    assert row["verdict"] == "not_measured"
    assert "nvidia-smi" in row["detail"]


def test_a_driver_that_hangs_is_asked_once(node: Healthy) -> None:
    """Three calls of 20 s each would outlast the interval."""
    node.fake("nvidia-smi", HANGS)
    node.health("quick")
    assert len(node.calls("nvidia-smi")) == 1


def test_a_tool_that_never_stops_printing_is_cut(engine: Healthy) -> None:
    engine.fake("nvidia-smi", "while :; do echo '0, 40, Enabled'; done")
    assert engine.health("epilog")[0] == 0
    assert engine.result("quick")["verdict"] == "fail"
    assert "nvidia_smi 141 exit code, expected 0 exit code (ended by signal 13" in engine.reason()


def test_an_unknown_check_is_not_measured(engine: Healthy) -> None:
    conf = engine.root / "etc/cycleforge/nhc/quick.conf"
    conf.write_text(conf.read_text() + "* || cycleforge gpu_quantum_state max=3\n")
    result = engine.quick()
    assert engine.verdict("gpu_quantum_state") == "not_measured"
    assert result["verdict"] == "incomplete"


SITE = "# of the site\n* || {line}\n"
SITE_CASES: list[tuple[str, str, str]] = [
    ("check_file_test -r /proc/version", "pass", ""),
    ("check_fs_mount_rw -f /not/mounted", "fail", "not mounted"),
    ("check_that_does_not_exist", "fail", "returned 127"),
]


@pytest.mark.parametrize(("line", "verdict", "words"), SITE_CASES)
def test_checks_of_the_site_run_in_nhc_as_they_stand(engine: Healthy, line: str, verdict: str, words: str) -> None:
    engine.write("sched/site.conf", SITE.format(line=line))
    engine.attribute("cycleforge.health.site_checks", "/sched/site.conf")
    engine.attribute("cycleforge.health.site_policy", "drain")
    engine.ok("20-health.sh")
    engine.quick()
    (row,) = [row for row in engine.result("quick")["checks"] if row["check"] == "site_checks"]
    if engine.engine == "built in":
        assert row["verdict"] == "not_measured"
        assert "needs LBNL NHC" in row["detail"]
        return
    assert row["verdict"] == verdict, row
    assert words in row["detail"]
    assert (engine.reason() != "") == (verdict == "fail")


def test_a_missing_file_of_site_checks_is_not_measured(engine: Healthy) -> None:
    engine.attribute("cycleforge.health.site_checks", "/sched/nowhere.conf")
    engine.ok("20-health.sh")
    engine.quick()
    assert engine.verdict("site_checks") == "not_measured"


def test_the_image_nhc_configuration_is_reported_and_drains_only_on_request(engine: Healthy) -> None:
    engine.write("etc/nhc/nhc.conf", "* || check_fs_mount_rw -f /data\n")
    engine.attribute("cycleforge.health.deep_s", "60")
    engine.ok("20-health.sh")
    assert engine.health("deep", "boot")[0] == 0
    rows = [row for row in engine.result("deep")["checks"] if row["check"] == "image_nhc"]
    if engine.engine != "nhc of the image":
        assert rows == []
        return
    assert rows[0]["verdict"] == "warn"
    engine.attribute("cycleforge.health.nhc", "drain")
    engine.ok("20-health.sh")
    assert engine.verdict("image_nhc", "deep") == "fail"


def test_an_idle_quick_run_starts_few_processes(engine: Healthy) -> None:
    """All GPUs in one call for the counters, one for row remaps, one for NVLink."""
    engine.quick()
    assert len(engine.calls("nvidia-smi")) == 3
    assert [call.split()[1] for call in engine.calls("systemctl")] == ["show"]


# ---------------------------------------------------------------- the blob


def offer_blob(node: Healthy, content: bytes) -> None:
    """The locker has a blob of this content under the pinned name."""
    (node.state / "blob").write_bytes(content)
    node.fake("jetpack", f'if [[ "$1" == download ]]; then cp "$FAKE_STATE/blob" "${{@: -1}}"; exit; fi\n{_JETPACK}')


_JETPACK = """
[[ "$1" == config ]] || exit 2
if [[ -e "$FAKE_STATE/attributes/$2" ]]; then cat "$FAKE_STATE/attributes/$2"; else printf '%s\\n' "$3"; fi
"""


def test_without_a_blob_the_built_in_runner_is_said(node: Healthy) -> None:
    output = node.ok("20-health.sh")
    assert "LBNL NHC is not on this node" in output
    assert "health engine: built in" in output


def test_a_blob_with_another_content_is_not_used(node: Healthy) -> None:
    offer_blob(node, b"not NHC")
    output = node.ok("20-health.sh")
    assert "does not have the pinned sha256" in output
    assert not (node.root / UNPACKED).exists()
    assert node.quick()["engine"] == "built in"


# ---------------------------------------------------------------- kills


def test_a_run_that_is_killed_at_any_moment_leaves_a_complete_result(node: Healthy) -> None:
    """The result of before stays whole, and the next run is a normal one."""
    node.quick()
    before = node.result("quick")
    script = node.root / "opt/cycleforge/slurm_nhc/health.sh"
    for delay in (0.02, 0.05, 0.1, 0.2, 0.3):
        process = subprocess.Popen([str(node.bin / "bash"), str(script), "quick"], env=node.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)  # fmt: skip
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert node.result("quick")["checks"] == before["checks"]
    assert node.quick()["verdict"] == "pass"
    leftovers = [path for path in node.files() if ".cycleforge." in path]
    assert leftovers == []


def test_rows_of_killed_runs_do_not_pile_up(node: Healthy) -> None:
    stale: list[Any] = [node.write(f"run/cycleforge/rows.quick.{name}", "old\n") for name in ("AAAAAA", "BBBBBB")]
    node.quick()
    assert not any(path.exists() for path in stale)
