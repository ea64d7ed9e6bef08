"""Drained nodes keep their VM until a person or the limit hands it back: Slurm 24.11, whose nodes come and go.

Slurm has SuspendExcStates since 23.02 (slurm-23.02:doc/man/man5/slurm.conf.5).
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator

import pytest

from generator.files import assets
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of
from tests.bed.slurm.newer import NEWER

POOL = Pool("gpu", 4, default=True)
NODES = POOL.node_names
DEFINITION = """
slurm: {idle_timeout_s: 60, partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4}]}
"""
REASON = "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs"
EVIDENCE = "CycleForge health: report the host to Azure and take another VM: gpu_xid XID 79"
HOURS = 24
RELEASE = 'CYCLEFORGE_ROOT="/mnt/shared/$1" bash /mnt/shared/release.sh run 2>&1'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cloud]:
    slurm = slurm_of(plan_from(DEFINITION))
    assert slurm.hand_back_h == HOURS
    with running_cloud([POOL], slurm.additional_config, release=NEWER) as cluster:
        for source in ("projects/slurm_nhc/specs/default/cluster-init/files/release.sh", "projects/_lib/cycleforge.sh"):
            shutil.copy(assets.root() / source, cluster.shared)
        yield cluster


def vms(cluster: Cloud) -> dict[str, str]:
    """Nodes whose VM exists, with what tells it from another VM of that name: its process."""
    return {name: (cluster.folder / "azure/vms" / name).read_text() for name in cluster.vms()}


def release(cluster: Cloud, scheduler: str, **hours: float) -> str:
    """One run on a scheduler that has known of these drains for so many hours; its output."""
    state = cluster.shared / scheduler / "var/lib/cycleforge/release"
    conf = cluster.shared / scheduler / "etc/cycleforge/release.conf"
    state.mkdir(parents=True, exist_ok=True)
    conf.parent.mkdir(parents=True, exist_ok=True)
    conf.write_text(f"hours={HOURS}\n")
    for name, age in hours.items():
        (state / name).write_text(f"{int(time.time() - age * 3600)} 0\n")
    return cluster.ok(RELEASE, scheduler)


@pytest.mark.fault("drain-kept", "drain-handed-back", "drain-with-evidence", "drain-with-keep-alive")
def test_a_drained_node_is_kept_handed_back_after_the_limit_and_comes_back_new(cluster: Cloud) -> None:
    ours, idle, theirs, kept = NODES
    # Drained first: SuspendTime is two seconds, and none of them may be idle for as long before.
    for name, reason in ((ours, REASON), (theirs, "disk 3 is sick"), (kept, REASON)):
        cluster.drain(name, reason)
    for name in NODES:
        cluster.slurm("scontrol", "update", f"NodeName={name}", "State=POWER_UP")
    drained = {"IDLE", "CLOUD", "DRAIN"}
    cluster.wait("they are up", lambda: all(cluster.flags(name) == drained for name in (ours, theirs, kept)))
    cluster.wait("the idle node is suspended", lambda: f"suspend {idle}" in cluster.calls())
    cluster.wait("its name is free", lambda: "POWERED_DOWN" in cluster.flags(idle))
    # Whatever would have taken the idle one would have taken them: they have been idle for as long.
    assert cluster.vms() == {ours, theirs, kept}
    assert [cluster.states()[name].reason for name in (ours, theirs, kept)] == [REASON, "disk 3 is sick", REASON]

    # The fault of the fourth one is for Azure to hear of.
    evidence = idle
    cluster.drain(evidence, EVIDENCE)
    cluster.slurm("scontrol", "update", f"NodeName={evidence}", "State=POWER_UP")
    cluster.wait("it is up", lambda: cluster.flags(evidence) == drained)
    said = release(cluster, "scheduler-1")
    assert re.search(rf"{ours}: drained for 0\.\d h; handed back in 2[34]\.\d h unless it heals", said)
    assert theirs not in said
    # KeepAlive of CycleCloud, as azslurmd 4.0.9 writes it (slurmcc/allocation.py).
    cluster.slurm("scontrol", "update", f"SuspendExcNodes+={kept}")
    calls, before = len(cluster.calls()), vms(cluster)
    first = release(cluster, "scheduler-1", **dict.fromkeys(NODES, 25.0))
    second = release(cluster, "scheduler-2", **{ours: 25.0})
    assert f"{ours}: handed back after 25.0 h drained: {REASON}" in first
    assert f"{kept}: drained for 25.0 h; it is kept" in first
    assert f"{evidence}: drained for 25.0 h; the VM is the evidence: report it to Azure first; at once: " in first
    assert theirs not in first
    assert "handed back" not in second
    cluster.wait("its VM is deleted", lambda: ours not in cluster.vms())
    cluster.wait("its name is free", lambda: cluster.flags(ours) == {"IDLE", "CLOUD", "POWERED_DOWN"})
    assert "handed back" not in release(cluster, "scheduler-2")
    assert cluster.calls()[calls:] == [f"suspend {ours}"]
    others = {name: vm for name, vm in before.items() if name != ours}
    assert vms(cluster) == others
    assert set(others) == {theirs, kept, evidence}

    # The next job gets a node of that name, with another VM and without the drain.
    job = cluster.submit("sleep 600", f"--nodelist={ours}")
    cluster.wait(
        "its new VM has joined", lambda: cluster.flags(ours) in ({"MIXED", "CLOUD"}, {"ALLOCATED", "CLOUD"}), 60
    )
    assert vms(cluster) == {**others, ours: vms(cluster)[ours]}
    assert vms(cluster)[ours] != before[ours]
    cluster.slurm("scancel", job)
    assert all(cluster.flags(name) == drained for name in (theirs, kept, evidence))
