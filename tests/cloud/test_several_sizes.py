"""Several VM sizes in one partition on real Slurm: README's own lines create nodes, jobs get the size they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from generator import pipeline
from generator.plan.deployment import Plan
from generator.plan.nodes import NodeArrayPlan
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of

CPU, GPU = "Standard_D4ads_v5", "Standard_NC4as_T4_v3"
CPU_NODE, GPU_NODE = "emu-mixed-d4ads-v5-1", "emu-mixed-nc4as-t4-v3-1"
DEFINITION = f"""
slurm:
  cluster_name: emu
  idle_timeout_s: 60
  partitions: [{{name: mixed, vm_sizes: [{CPU}, {GPU}], max_nodes: 2}}]
jobs: {{validation: []}}
"""
HERE = 'sudo() { "$@"; }\n'
"""The lines run as root."""


@cache
def planned() -> Plan:
    return plan_from(DEFINITION)


def mixed() -> NodeArrayPlan:
    return slurm_of(planned()).node_arrays[0]


def lines_of_the_readme() -> str:
    """What README tells the administrator to type on the scheduler; memory is that of this host, not of an Azure VM."""
    readme = pipeline.render(planned(), Path())[PurePosixPath("README.md")].content.decode()
    block = next(each for each in re.findall(r"```bash\n(.*?)```", readme, re.DOTALL) if "scontrol create" in each)
    return HERE + re.sub(r"RealMemory=\d+", "RealMemory=1000", block.replace("/sched/emu/", "/etc/slurm/"))


def azure_conf() -> str:
    """What `azslurm partitions` prints of the node array; no node, because slurmctld has none yet.

    Source: Azure/cyclecloud-slurm 4.0.9, azure-slurm/slurmcc/cli.py, _dynamic_partition.
    """
    return f"Nodeset=mixedns Feature={mixed().dynamic_feature}\nPartitionName=mixed Nodes=mixedns Default=YES\n"


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    pools = [Pool(name, 2, feature="x") for name in ("mixed-d4ads-v5", "mixed-nc4as-t4-v3")]
    files = {"azure.conf": azure_conf(), "gres.conf": ""}
    with running_cloud(pools, slurm_of(planned()).additional_config, files) as cloud:
        for size in mixed().sizes:
            gres = f" gres=gpu:{size.hardware.gpu_count}" if size.hardware.gpu_count else ""
            for number in range(1, size.max_nodes + 1):
                # Of the row in gres.conf the installer makes the first word of --conf.
                # Source: Azure/cyclecloud-slurm 4.0.9, azure-slurm-install/install.py, get_gres_count and setup_slurmd
                conf = f"{gres} Feature={mixed().dynamic_feature},{size.hardware.name}"
                cloud.options(f"{size.name_start}{number}", "-b", "-Z", "--conf", conf)
        assert "Invalid feature specification" in cloud.run(f"sbatch -C {CPU} --wrap hostname").output
        cloud.ok(lines_of_the_readme())
        yield cloud


def test_the_lines_create_every_node_once(cloud: Cloud) -> None:
    shown = cloud.ok("sinfo -h -N -p mixed -o '%N %f %c %G'").splitlines()
    assert shown == [
        f"{CPU_NODE} dyn-mixed,{CPU} 4 (null)",
        f"emu-mixed-d4ads-v5-2 dyn-mixed,{CPU} 4 (null)",
        f"{GPU_NODE} dyn-mixed,{GPU} 4 gpu:1",
        f"emu-mixed-nc4as-t4-v3-2 dyn-mixed,{GPU} 4 gpu:1",
    ]
    rows = (cloud.folder / "etc/gres.conf").read_text()
    cloud.ok(lines_of_the_readme())
    assert cloud.ok("sinfo -h -N -p mixed -o '%N %f %c %G'").splitlines() == shown
    assert (cloud.folder / "etc/gres.conf").read_text() == rows
    assert rows.count("Nodename=") == 1


def test_a_job_gets_the_size_that_it_names(cloud: Cloud) -> None:
    before = len(cloud.calls())
    assert cloud.ok(f"srun --constraint={GPU} --gpus=1 bash -c 'hostname; echo $CUDA_VISIBLE_DEVICES'").split() == [
        GPU_NODE,
        "0",
    ]
    assert cloud.ok(f"srun --constraint={CPU} hostname").split() == [CPU_NODE]
    # Not the VMs that run now: on a busy machine the first node may be idle long enough to be deleted already.
    started = [call for call in cloud.calls()[before:] if call.startswith("resume ")]
    assert started == [f"resume {GPU_NODE}", f"resume {CPU_NODE}"]
    cloud.wait("idle nodes are deleted", lambda: cloud.vms() == set())


def test_a_job_that_names_none_gets_the_first_size(cloud: Cloud) -> None:
    assert cloud.ok("srun hostname").split() == [CPU_NODE]


def test_nodes_outlive_a_restart_of_slurmctld(cloud: Cloud) -> None:
    before = cloud.ok("sinfo -h -N -p mixed -o '%N %f %c %G'")
    cloud.stop_controller()
    cloud.start_controller()
    assert cloud.ok("sinfo -h -N -p mixed -o '%N %f %c %G'") == before
    assert cloud.ok(f"srun --constraint={GPU} --gpus=1 hostname").split() == [GPU_NODE]
