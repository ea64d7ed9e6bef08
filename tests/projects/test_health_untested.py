"""A boot whose deep run has come to no verdict: it is made up for, and where so defined no job starts before."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Literal

import pytest

from tests.bed.scripts.healthy import healthy
from tests.bed.scripts.planned import Planned
from tests.projects.conftest import MakeNode

CONF = "etc/cycleforge/health.conf"
REASON = "CycleForge health: deep_checks (no verdict since this boot: not tested)"
Policy = Literal["report", "drain"]


@pytest.fixture
def node(make_node: MakeNode) -> Planned:
    """Deep checks are on, at boot and once a day, and this boot has run them."""
    return Planned(healthy(make_node("slurm_nhc"), deep_s=100))


def defined(node: Planned, **keys: str) -> None:
    """What the definition says in place of its defaults."""
    lines = dict(line.split("=", 1) for line in node.node.read(CONF).splitlines())
    node.node.write(CONF, "".join(f"{key}={value}\n" for key, value in (lines | keys).items()))


def slurmd(node: Planned, state: str) -> None:
    (node.node.state / "active/slurmd.service").write_text(f"{state}\n")


def killed_at_boot(node: Planned) -> None:
    """Another boot, whose deep run is killed, with all it has started, while a check measures; then slurmd starts."""
    node.reboot("boot-2")
    slurmd(node, "inactive")
    pipe = node.node.state / "planned.deep"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    script = node.node.root / "opt/cycleforge/slurm_nhc/health.sh"
    run = subprocess.Popen([str(node.node.bin / "bash"), str(script), "deep", "boot"], env=node.node.environment(),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    while True:
        assert run.poll() is None, "it has ended before its check"
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
            continue
        break
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    os.close(end)
    pipe.unlink()
    slurmd(node, "active")


@pytest.mark.parametrize("idle_deep_h", ["24", "0"])
def test_where_unmeasured_drains_no_job_starts_before_the_run_is_made_up_for(node: Planned, idle_deep_h: str) -> None:
    defined(node, unmeasured="drain", idle_deep_h=idle_deep_h)
    node.runs("deep", "boot")
    node.runs("gate")
    killed_at_boot(node)
    node.runs("gate", code=3)
    assert (node.state, node.reason) == ("IDLE+DRAIN", REASON)
    node.passes(3)
    assert (node.state, node.reason) == ("IDLE+DRAIN", REASON), "no quick run stands in for it"
    node.runs("deep", "idle")
    assert (node.state, node.standing()) == ("IDLE", {})
    node.runs("gate")


def test_the_first_quick_run_drains_such_a_node_before_a_job_comes(node: Planned) -> None:
    defined(node, unmeasured="drain")
    killed_at_boot(node)
    slurmd(node, "inactive")
    node.passes(1)
    assert node.state == "IDLE", "slurmd waits for the deep checks, which may be going on"
    slurmd(node, "activating")
    node.passes(1)
    assert node.reason == REASON
    assert node.node.result("quick")["reason"] == REASON.removeprefix("CycleForge health: ")


def test_where_unmeasured_is_reported_the_node_works_and_is_tested_when_it_is_idle(node: Planned) -> None:
    node.runs("deep", "boot")
    killed_at_boot(node)
    before = node.node.result("deep")["boot_id"]
    node.runs("gate")
    node.passes(1)
    assert (node.state, before) == ("IDLE", "boot-1"), "the report sees no result of this boot"
    node.runs("deep", "idle")
    assert node.node.result("deep")["boot_id"] == "boot-2"
    (node.node.root / "var/lib/cycleforge/health/deep.json").write_text("kept")
    node.runs("deep", "idle")
    assert (node.node.root / "var/lib/cycleforge/health/deep.json").read_text() == "kept", "once a day is enough"


@pytest.mark.parametrize("found", ["pass", "warn", "fail", "not_measured"])
def test_every_verdict_is_one(node: Planned, found: str) -> None:
    defined(node, unmeasured="drain")
    killed_at_boot(node)
    node.passes(1)
    node.says("deep", ("pass", "gpu_copy_peer", ""), (found, "nccl_all_reduce", "as planned"))
    node.runs("deep", "idle")
    sick = found in ("fail", "not_measured")
    assert node.state == ("IDLE+DRAIN" if sick else "IDLE")
    node.runs("gate", code=3 if sick else 0)
    assert "not tested" not in node.standing().get("reason", "")


@pytest.mark.parametrize("keys", [{"deep_s": "0"}, {"unmeasured": "report"}])
def test_nothing_is_owed_where_the_definition_wants_nothing(node: Planned, keys: dict[str, str]) -> None:
    defined(node, **({"unmeasured": "drain"} | keys))
    node.reboot("boot-2")
    slurmd(node, "active")
    node.passes(1)
    node.runs("gate")
    assert node.standing() == {}


def test_a_boot_whose_run_never_began_owes_it_too(node: Planned) -> None:
    defined(node, unmeasured="drain")
    node.reboot("boot-2")
    node.runs("gate", code=3)
    node.boots("boot-3")
    node.runs("gate")
