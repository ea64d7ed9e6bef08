"""`health.sh repaired` beside a quick run that is going, and with a Slurm that hesitates."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress

import pytest

from tests.bed.scripts.healthy import SCONTROL, healthy
from tests.bed.scripts.planned import Planned
from tests.projects.conftest import MakeNode

MOUNT = ("fail", "mount", "/shared is not mounted")


@pytest.fixture
def node(make_node: MakeNode) -> Planned:
    return Planned(healthy(make_node("slurm_nhc")))


def started(node: Planned, word: str) -> subprocess.Popen[bytes]:
    script = node.node.root / "opt/cycleforge/slurm_nhc/health.sh"
    return subprocess.Popen([str(node.node.bin / "bash"), str(script), word], env=node.node.environment(),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


def test_what_a_run_has_measured_before_the_repair_does_not_stand_after_it(node: Planned) -> None:
    node.says("quick", MOUNT)
    node.runs("quick")
    records = node.node.state / "planned.quick"
    text = records.read_text()
    node.node.fake("flock", f'exec {shutil.which("flock")} "$@"')
    records.unlink()
    os.mkfifo(records)
    quick = started(node, "quick")
    with records.open("w") as pipe:  # opens when the check reads
        repaired = started(node, "repaired")
        # It waits for the run, or has ended without waiting.
        while repaired.poll() is None and len(node.node.calls("flock")) < 2:
            time.sleep(0.02)
        with suppress(subprocess.TimeoutExpired):
            repaired.wait(timeout=1)
        pipe.write(text)
    assert (quick.wait(), repaired.wait()) == (0, 0)
    records.unlink()
    assert (node.state, node.standing()["state"]) == ("IDLE", "clear")


@pytest.mark.parametrize(("failing", "code"), [("show", 0), ("update", 0), ("always", 1)])
def test_slurm_that_does_not_answer_at_once_is_asked_again(node: Planned, failing: str, code: int) -> None:
    """`update`: the node was resumed meanwhile, which Slurm answers with `Invalid node state specified` and code 1.

    Source: SchedMD/slurm, src/slurmctld/node_mgr.c, update_node(): ESLURM_INVALID_NODE_STATE.
    """
    node.says("quick", MOUNT)
    node.runs("quick")
    once = {
        "show": 'if [[ "$1" == --oneliner && ! -e "$FAKE_STATE/once" ]]; then touch "$FAKE_STATE/once"; exit 1; fi\n',
        "update": 'if [[ "$1" == update ]]; then echo IDLE >"$FAKE_STATE/slurm_state"; exit 1; fi\n',
        "always": 'if [[ "$1" == update ]]; then exit 1; fi\n',
    }
    node.node.fake("scontrol", once[failing] + SCONTROL)
    output = node.runs("repaired", code=code)
    assert node.state == ("IDLE+DRAIN" if code else "IDLE")
    assert node.standing()["state"] == "clear", "in any case nothing stands, and the next quick run resumes the node"
    if code:
        assert "refused to resume the node, or did not answer; it is IDLE+DRAIN" in output
        node.node.fake("scontrol", SCONTROL)
        node.passes(1)
        assert node.state == "IDLE"
