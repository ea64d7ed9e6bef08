"""What a node must have before Slurm takes it: the memory that azslurm announces, and every MIG slice.

The guest is this host, seen as a VM whose guest has as much of the nominal memory as one of ND96amsr_A100_v4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from generator import catalog
from generator.catalog.sizes import VmSize
from generator.plan.mig import MigPlan
from generator.plan.real_memory import real_memory_mib, withheld_percent
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of

HERE_MIB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
"""What slurmd reports, as `slurmd -C` does."""
A100 = catalog.vm_size("Standard_ND96amsr_A100_v4")
POOLS = [Pool("plain", 2), Pool("cloud", 2), Pool("slices", 1)]
REFUSED, TAKEN = POOLS[0].node_names
TOLERATED, TOO_LOW = POOLS[1].node_names
(SLICED,) = POOLS[2].node_names
MIG = """
slurm:
  healthagent: false
  partitions: [{name: slices, vm_size: Standard_NC48ads_A100_v4, max_nodes: 1, mig_profile: 3g.40gb, default: true}]
"""


def like_the_a100() -> VmSize:
    assert A100.memory_gib is not None
    assert A100.lowest_guest_memory_mib is not None
    share = A100.lowest_guest_memory_mib / (A100.memory_gib * 1024)
    return VmSize("Standard_Here", known=True, memory_gib=HERE_MIB / 1024 / share, guest_memory_mib=HERE_MIB)


def memory_mib(percent: int | None) -> int:
    size = like_the_a100()
    assert size.memory_gib is not None
    return real_memory_mib(size.memory_gib, percent)


def slices() -> MigPlan:
    planned = slurm_of(plan_from(MIG)).node_arrays[0].mig
    assert planned is not None
    return planned


def azure_conf() -> str:
    """Nodes of State=CLOUD, as azslurm writes them for us, and plain ones, of which Slurm demands everything.

    Plain nodes are what a static pool had with SuspendTime=-1; azslurm computes their memory by the same rule.
    """
    rows = [
        (REFUSED, "UNKNOWN", memory_mib(None), ""),
        (TAKEN, "UNKNOWN", memory_mib(withheld_percent(like_the_a100())), ""),
        (TOLERATED, "CLOUD", memory_mib(None), ""),
        (TOO_LOW, "CLOUD", HERE_MIB * 10 // 8, ""),
        (SLICED, "UNKNOWN", 500, f" Gres=gpu:{slices().slices}"),
    ]
    lines = [
        f"NodeName={name} Feature=cloud State={state} CPUs=2 RealMemory={memory}{gres}"
        for name, state, memory, gres in rows
    ]
    lines += [
        f"PartitionName={pool.name} Nodes={','.join(pool.node_names)} DefMemPerCPU=100 MaxTime=INFINITE State=UP"
        for pool in POOLS
    ]
    return "\n".join([*lines, ""])


def make_slices(cloud: Cloud, count: int) -> None:
    """The links of misc_ndv4 to device files of the driver."""
    cloud.ok(
        "mkdir -p /dev/cycleforge /dev/nvidia-caps; for ((n = 0; n < $1; n++)); do "
        'c=/dev/nvidia-caps/nvidia-cap$((n * 9 + 4)); [[ -e "$c" ]] || mknod -m 444 "$c" c 1 3; '
        'ln -sfn "$c" "/dev/cycleforge/mig$n"; done',
        str(count),
    )


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    # The letters of azslurm's row: cyclecloud-slurm 4.0.9, slurmcc/cli.py, _generate_gres_conf.
    gres = f"Nodename={SLICED} Name=gpu Count={slices().slices} File={slices().devices}\n"
    # Another parameter in place of config_overrides, with which Slurm believes whatever the file says.
    lines = ["SlurmdParameters=shutdown_on_reboot", "ResumeTimeout=120"]
    with running_cloud(POOLS, lines, {"azure.conf": azure_conf(), "gres.conf": gres}) as running:
        # slurmd waits 20 s for a device file, so this node begins while the others are looked at
        make_slices(running, slices().slices - 1)
        running.start(SLICED)
        yield running


def test_a_plain_node_with_less_than_azslurm_s_default_is_refused(cloud: Cloud) -> None:
    cloud.start(REFUSED)
    cloud.wait("it is drained", lambda: "Low RealMemory" in cloud.states()[REFUSED].reason)
    assert f"reported:{HERE_MIB} < 100.00% of configured:{memory_mib(None)}" in cloud.states()[REFUSED].reason


def test_with_what_the_guest_lacks_withheld_a_plain_node_takes_a_job(cloud: Cloud) -> None:
    cloud.start(TAKEN)
    cloud.wait_state(TAKEN, "idle")
    assert cloud.ok(f"srun --partition=plain --nodelist={TAKEN} --mem=0 hostname").strip() == TAKEN


def test_a_cloud_node_is_taken_with_nine_tenths(cloud: Cloud) -> None:
    assert cloud.ok(f"srun --partition=cloud --nodelist={TOLERATED} hostname").strip() == TOLERATED
    assert cloud.states()[TOLERATED].reason == ""
    assert int(cloud.node(TOLERATED)["RealMemory"]) > HERE_MIB, "and jobs are promised what is not there"


def test_a_cloud_node_with_less_is_refused(cloud: Cloud) -> None:
    cloud.slurm("scontrol", "update", f"NodeName={TOO_LOW}", "State=POWER_UP")
    cloud.wait("it is drained", lambda: "< 90.00% of configured" in cloud.states()[TOO_LOW].reason)


def test_without_every_slice_the_node_does_not_join(cloud: Cloud) -> None:
    log = cloud.folder / "log" / SLICED / "slurmd/slurmd.log"
    cloud.wait("slurmd ends", lambda: log.exists() and "mig3" in log.read_text() and SLICED not in cloud.vms())
    assert cloud.states()[SLICED].state != "idle"


def test_each_job_gets_a_slice_of_its_own(cloud: Cloud) -> None:
    make_slices(cloud, slices().slices)
    cloud.kill(SLICED)
    cloud.start(SLICED)
    cloud.wait_state(SLICED, "idle")
    assert slices().slices == 4
    both = [
        cloud.submit(
            "echo $SLURM_JOB_GPUS; while [[ ! -e /mnt/shared/go ]]; do sleep 0.1; done",
            "--partition=slices",
            "--gpus=1",
        )
        for _ in range(2)
    ]
    for number in both:
        cloud.wait_job(number, "RUNNING")
    cloud.wait("both say which", lambda: all(cloud.output(number) for number in both))
    assert {cloud.output(number).strip() for number in both} == {"0", "1"}
    (cloud.shared / "go").touch()
    for number in both:
        assert cloud.finish(number)["JobState"] == "COMPLETED"
    assert cloud.run("sbatch --partition=slices --gpus=5 --wrap=true").code != 0
