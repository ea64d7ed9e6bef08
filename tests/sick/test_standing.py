"""Drains that others set or lift, and what stands against a node meanwhile, on running Slurm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.bed.sick import SickCluster, SickNode
from tests.bed.sick.table import rows

SCONTROL = (
    '#!/usr/bin/env bash\n[[ ! -e "${FAKE_STATE:-/none}/slurm.silent" ]] || exit 1\nexec /usr/bin/scontrol "$@"\n'
)
"""As the real one, except where the network to the controller is gone: exit code 1 (SchedMD/slurm, src/scontrol)."""
OTHERS = """#!/usr/bin/env bash
[[ ! -e "/mnt/sick/${SLURMD_NODENAME}/state/others.$(basename "$(dirname "$0")" .d)" ]]
"""
"""A hook of another tool, which fails on nodes with such a file."""


def refused(sick: SickCluster, node: SickNode, fault: str, job: str) -> None:
    """The job did not run, and the node is drained with the reason of the table."""
    sick.wait("refused, or not", lambda: sick.output(job) != "" or sick.states()[node.name].state == "drained")
    assert sick.output(job) == ""
    assert sick.states()[node.name].reason.startswith(rows()[fault].reason), sick.states()[node.name]
    sick.slurm("scancel", job)


def passes(sick: SickCluster, nodes: Iterable[SickNode], times: int) -> None:
    for _ in range(times):
        assert {result["verdict"] for result in sick.quick(*(node.name for node in nodes)).values()} == {"pass"}


@pytest.mark.fault("resumed-by-healthagent", "resumed-unrepaired", "disk-full")
def test_whoever_resumes_a_sick_node_it_takes_no_job(sick: SickCluster) -> None:
    hidden, unrepaired, full = sick["n1"], sick["n2"], sick["n3"]
    hidden.healthagent(1)
    hidden.gpus(7)
    unrepaired.xid(167)
    full.fill_disk()
    full.gpus(7)
    for node in (hidden, unrepaired, full):
        assert node.health("quick")[0] == 0
    assert sick.states()["n1"].reason.startswith("Healthcheck failures")
    hidden.healthagent(0)
    for node in (unrepaired, full):
        sick.resume(node.name)
    assert {sick.states()[node.name].state for node in (hidden, unrepaired, full)} == {"idle"}
    jobs = {node: sick.submit("echo ran", f"--nodelist={node.name}") for node in (hidden, unrepaired, full)}
    refused(sick, hidden, "resumed-by-healthagent", jobs[hidden])
    refused(sick, unrepaired, "resumed-unrepaired", jobs[unrepaired])
    refused(sick, full, "disk-full", jobs[full])
    for node in (hidden, full):
        node.heal()
    unrepaired.reboot()
    passes(sick, jobs, 2)
    again = [sick.submit("true", f"--nodelist={node.name}") for node in jobs]
    assert {sick.finish(job)["ExitCode"] for job in again} == {"0:0"}


@pytest.fixture
def with_others(sick: SickCluster) -> Iterator[SickCluster]:
    """Every node has hooks of another tool, and n6 a scontrol that a test can silence."""
    sick["n6"].fake("scontrol", SCONTROL.split("\n", 1)[1])
    hooks = [sick.folder / f"etc/{kind}.d/90-others.sh" for kind in ("prolog", "epilog")]
    for hook in hooks:
        hook.write_text(OTHERS)
        hook.chmod(0o755)
    yield sick
    for path in (*hooks, sick["n6"].disk / "bin/scontrol"):
        path.unlink()


@pytest.mark.fault(
    "controller-silent", "epilog-failed", "prolog-failed", "replaced", "proven-bad", "drained-in-slurms-words"
)
def test_drains_by_hooks_and_by_others(with_others: SickCluster) -> None:
    sick = with_others
    silent, epilog, prolog, replaced, bad, by_hand = (sick[name] for name in ("n6", "n7", "n8", "n1", "n2", "n3"))
    epilog.state("others.epilog")
    prolog.state("others.prolog")
    sick.drain("n1", rows()["replaced"].reason + " old")
    sick.drain("n2", rows()["proven-bad"].reason + " collective: gpu_count 7 GPUs, expected 8")
    sick.drain("n3", rows()["drained-in-slurms-words"].reason)
    job = sick.submit_held("--nodelist=n6")
    silent.state("slurm.silent")
    silent.gpus(7)
    sick.release(job)
    for name in ("n7", "n8"):
        sick.submit("true", f"--nodelist={name}")
    for node, fault in ((epilog, "epilog-failed"), (prolog, "prolog-failed")):
        assert sick.wait_state(node.name, "drained").reason.startswith(rows()[fault].reason)
    assert sick.wait_state("n6", "drained").reason == "Epilog error"
    silent.forget("slurm.silent")
    silent.health("quick")
    assert sick.states()["n6"].reason.startswith(rows()["controller-silent"].reason)
    for node in (silent, epilog, prolog):
        node.heal()
    before = sick.states()
    passes(sick, (silent, epilog, prolog, replaced, bad, by_hand), 3)
    after = sick.states()
    assert {after[node.name].state for node in (silent, epilog)} == {"idle"}
    theirs = ("n1", "n2", "n3", "n8")
    assert {name: after[name] for name in theirs} == {name: before[name] for name in theirs}


@pytest.mark.fault("own-tools-broken", "own-check-missing")
def test_tools_of_ours_that_break_open_no_gate_and_pass_nothing(sick: SickCluster) -> None:
    broken, part = sick["n4"], sick["n5"]
    program, checks = (node.root / "opt/cycleforge/slurm_nhc" / name
                       for node, name in ((broken, "verdicts.sh"), (part, "checks-gpu.sh")))  # fmt: skip
    kept = {path: path.read_bytes() for path in (program, checks)}
    broken.gpus(7)
    broken.quick()
    program.write_text("if then (\n")
    checks.unlink()
    try:
        sick.resume("n4")
        job = sick.submit("echo ran", "--nodelist=n4")
        refused(sick, broken, "own-tools-broken", job)
        assert part.quick()["verdict"] == "incomplete"
        assert part.verdict("gpu_count") == "not_measured"
        assert sick.states()["n5"].state == "idle"
        assert not rows()["own-check-missing"].drained
        assert sick.finish(sick.submit("true", "--nodelist=n5"))["ExitCode"] == "0:0"
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
    broken.heal()
    passes(sick, [broken], 2)
    assert sick.states()["n4"].state == "drained", "Slurm has drained it, not we"
    sick.resume("n4")
    assert sick.finish(sick.submit("true", "--nodelist=n4"))["ExitCode"] == "0:0"
