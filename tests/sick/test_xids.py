"""Faults in the kernel's log: what drains, with which reason, and what leaves a node in service, on running Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.bed.sick import SickCluster, SickNode
from tests.bed.sick.node import HEALTH
from tests.bed.sick.table import rows

Break = Callable[[SickNode], None]
RECOVERY = "GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)"
PROGRAM = "pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS"


def contained(node: SickNode) -> None:
    """An error of the memory killed a program, and a row remap waits for the next reset."""
    node.xid(94, "pid=7, name=python3, Contained: FBHUB (0x2)")
    node.field(2, "remapped_rows.pending", "Yes")


FAULTS: dict[str, Break] = {
    "xid-reset": lambda node: node.xid(119, "pid=7, name=nvidia-smi, Timeout after 6s of waiting for RPC response"),
    "xid-reboot": lambda node: node.xid(151, "Key rotation error"),
    "xid-service": lambda node: node.xid(79),
    "xid-off-the-bus": lambda node: node.kernel("NVRM: GPU 0003:00:00.0: GPU has fallen off the bus."),
    "xid-recovery-action": lambda node: node.xid(154, RECOVERY),
    "sxid-fatal": lambda node: node.kernel(
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030, 0x00000000}",
    ),
    "xid-remap-pending": lambda node: contained(node),
    "xid-unknown": lambda node: node.xid(999, "x"),
}
"""By the id of the row. The lines are those of leptonai/gpud and NVSentinel's issues, the words of 154 driver 610's."""


@pytest.mark.fault("xid-reset", "xid-reboot", "xid-service", "xid-off-the-bus", "xid-recovery-action", "sxid-fatal",
                   "xid-remap-pending", "xid-unknown")  # fmt: skip
def test_a_fault_of_the_driver_drains_its_node_until_the_next_boot(sick: SickCluster) -> None:
    nodes = dict(zip(sick.nodes.values(), FAULTS, strict=True))
    for node, fault in nodes.items():
        FAULTS[fault](node)
    results, shown = sick.quick(), sick.states()
    for node, fault in nodes.items():
        row = rows()[fault]
        if not row.drained:
            assert (shown[node.name].state, results[node.name]["verdict"]) == ("idle", "warn"), fault
            continue
        assert shown[node.name].state == "drained", fault
        assert shown[node.name].reason.startswith(row.reason), (fault, shown[node.name].reason)
    jobs = {node: sick.submit("true", f"--nodelist={node.name}") for node in nodes}
    later = dict(list(nodes.items())[:4])
    for node in later:
        node.heal()  # the log forgets, the file of earlier runs does not
    assert {result["verdict"] for result in sick.quick(*(node.name for node in later)).values()} == {"fail"}
    for node, job in jobs.items():
        if rows()[nodes[node]].drained:
            assert sick.job(job)["JobState"] == "PENDING", nodes[node]
        else:
            assert sick.finish(job)["ExitCode"] == "0:0", nodes[node]
    reset, _, service, *_ = nodes
    for node in (reset, service):
        node.reboot()
    sick.quick(reset.name, service.name)
    assert sick.finish(jobs[reset])["ExitCode"] == "0:0", "a boot has reset the GPUs"
    assert sick.states()[service.name].state == "drained", "a boot is no other VM"
    assert sick.job(jobs[service])["JobState"] == "PENDING"
    repaired = next(node for node, fault in nodes.items() if fault == "sxid-fatal")
    repaired.ok(f"bash {HEALTH} repaired")
    assert repaired.quick()["verdict"] == "pass", "what the log has from before the repair does not fail again"
    assert sick.finish(jobs[repaired])["ExitCode"] == "0:0"


def gpu_xid(node: SickNode) -> list[tuple[str, str]]:
    return [(row["verdict"], row["detail"]) for row in node.result("quick")["checks"] if row["check"] == "gpu_xid"]


WAITS = 'until [[ -e "/mnt/sick/$(hostname)/state/go" ]]; do sleep 0.1; done'


@pytest.mark.fault("xid-storm", "xid-of-a-program", "xid-of-two-jobs", "xid-double-bit-again")
def test_jobs_and_boots_around_a_fault(sick: SickCluster) -> None:
    storm, program, again = sick["n1"], sick["n2"], sick["n3"]
    again.xid(48, "pid=7, name=python3, DBE (double bit error) detected")
    again.quick()
    assert "gpu_xid XID 48 ROBUST_CHANNEL_GPU_ECC_DBE on GPU 2" in sick.wait_state("n3", "drained").reason
    again.reboot()
    again.quick()
    sick.wait_state("n3", "idle")
    jobs = [sick.submit(WAITS, f"--nodelist={node.name}", "--gpus=8") for node in (storm, program)]
    for job in jobs:
        sick.wait_job(job, "RUNNING")
    for _ in range(140):
        storm.xid(95, "pid=7, name=python3, Uncontained: LTC TAG (0x2,0x0)")
    program.xid(31, PROGRAM)
    program.xid(13, "pid=4711, name=python3, Graphics SM Warp Exception")
    for node in (storm, program):
        node.state("go")
    again.xid(48, "pid=7, name=python3, DBE (double bit error) detected")
    again.quick()
    assert {sick.finish(job)["ExitCode"] for job in jobs} == {"0:0"}
    storm_shown = sick.wait_state("n1", "drained")
    assert storm_shown.reason.startswith(rows()["xid-storm"].reason), storm_shown
    sick.wait_state("n2", "idle")
    assert gpu_xid(program) == [("pass", "only programs failed: XID 31 on GPU 2, 1 times, XID 13 on GPU 2, 1 times")]
    second_time = sick.wait_state("n3", "drained")
    assert second_time.reason.startswith(rows()["xid-double-bit-again"].reason), second_time
    assert "again within 168 h" in again.result("quick")["reason"]
    program.forget("go")
    second = sick.submit(WAITS, "--nodelist=n2", "--gpus=8")
    sick.wait_job(second, "RUNNING")
    time.sleep(1)  # lines of one second are one event
    program.xid(31, PROGRAM)
    program.state("go")
    assert sick.finish(second)["ExitCode"] == "0:0"
    sick.wait_state("n2", "idle")
    assert gpu_xid(program)[0][0] == "warn"
    assert f"programs of jobs {jobs[1]} and {second} failed on it" in gpu_xid(program)[0][1]
