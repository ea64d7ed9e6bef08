"""Without the sources of pyxis and enroot: real srun, slurmd and slurmstepd read the files that the project writes.

A stand-in, compiled here, has pyxis' name, its option, and its need of a folder before slurmd starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.containers.cluster import Cluster, Part, place, running
from tests.bed.containers.toolchain import small_toolchain
from tests.bed.machines.overlay import Bind, Machine, overlay_machine
from tests.bed.machines.roots import node_root
from tests.bed.scripts.pyxis import PLUGIN, PLUGSTACK

STANDIN = Path(__file__).with_name("standin.c")
COMPILE = "mkdir -p /opt/pyxis; tcc -Wall -Werror -shared -o /opt/pyxis/spank_pyxis.so /standin/standin.c"
RUN = """
set -euo pipefail
export CYCLECLOUD_PROJECT_NAME=pyxis_enroot CYCLECLOUD_SPEC_PATH=/mnt/cluster-init/pyxis_enroot/default
export SYSTEMD_OFFLINE=1
bash "${CYCLECLOUD_SPEC_PATH}/scripts/10-enroot.sh"
"""


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A node of the slurm project's with a small compiler, not booted."""
    with overlay_machine(node_root(), small_toolchain(), binds=[Bind(STANDIN.parent, "/standin")]) as made:
        made.ok(COMPILE)
        made.write("/etc/slurm/slurm.conf", "ClusterName=c\nSlurmctldHost=localhost\n")
        made.write("/etc/slurm/plugstack.conf", PLUGSTACK)
        made.write("/etc/slurm/plugstack.conf.d/pyxis.conf", PLUGIN)
        place(made)
        yield made


def option(machine: Machine) -> int:
    """How often srun lists the option."""
    return machine.ok("srun --help 2>&1").count("--container-image=")


def test_srun_reads_what_the_project_makes_of_the_slurm_projects_files(machine: Machine) -> None:
    output = machine.ok(RUN)
    assert "pyxis plug-in: required line, /opt/pyxis/spank_pyxis.so: loads" in output
    assert "container check: srun has --container-image" in output
    assert machine.read("/etc/slurm/plugstack.conf.d/pyxis.conf") == PLUGIN.replace("/mnt/", "/tmp/") + "\n"
    assert option(machine) == 1


def test_srun_reads_the_line_and_the_list_that_were_missing(machine: Machine) -> None:
    machine.ok("rm /etc/slurm/plugstack.conf /etc/slurm/plugstack.conf.d/pyxis.conf")
    assert option(machine) == 0
    machine.ok(RUN)
    assert option(machine) == 1


def test_a_line_of_ours_without_its_library_would_stop_every_srun(machine: Machine) -> None:
    """Why a line is written only for a plug-in that loads, and a required one that does not stops the converge."""
    other = COMPILE.replace("tcc", "tcc -DOTHER_RELEASE")
    for damage in ("rm /opt/pyxis/spank_pyxis.so", "echo garbage >/opt/pyxis/spank_pyxis.so", other):
        machine.ok(damage)
        assert machine.run("srun --help").code == 1
        result = machine.run(RUN)
        assert result.code != 0
        assert "every job would fail" in result.output
    assert "Incompatible Slurm plugin" in result.output
    machine.ok("rm /etc/slurm/plugstack.conf.d/pyxis.conf")
    assert "pyxis.conf: no plug-in that Slurm loads" in machine.ok(RUN)
    assert option(machine) == 0


def test_two_lines_are_found_where_slurm_finds_them(machine: Machine) -> None:
    """Also in a file that a killed install left; srun itself only mutters here and crashes after the job with pyxis."""
    machine.write("/etc/slurm/plugstack.conf.d/pyxis.conf.tmp", PLUGIN)
    assert "provided by both spank_pyxis.so and spank_pyxis.so" in machine.ok("srun --help 2>&1")
    result = machine.run(RUN)
    assert result.code != 0
    assert "loads spank_pyxis.so 2 times" in result.output


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A scheduler without our project and a node with it, running."""
    parts = {"scheduler": Part("scheduler", controller=True), "node1": Part("execute", layers=(small_toolchain(),))}
    with running(parts, {}) as made:
        made["node1"].machine.write("/standin/standin.c", STANDIN.read_bytes())
        made["node1"].ok(COMPILE)
        made["node1"].machine.write("/etc/slurm/plugstack.conf", PLUGSTACK)
        made["node1"].machine.write("/etc/slurm/plugstack.conf.d/pyxis.conf", PLUGIN)
        made["node1"].converge()
        made.start_services()
        yield made


UNTIL_FAILED = """
for ((i = 0; i < 100; i++)); do
    if systemctl is-failed --quiet slurmd; then break; fi
    sleep 0.1
done
systemctl is-failed slurmd
"""
JOB = "srun --container-image=image.sqsh true 2>&1"
SAYS = "stand-in: image.sqsh with runtime_path=/nvme/enroot/enroot-runtime"


def test_the_first_job_after_boot_finds_the_plugin_and_its_folder(cluster: Cluster) -> None:
    node = cluster["node1"]
    assert SAYS in node.ok(JOB)
    cluster.wait_idle()
    node.reboot()
    cluster.wait_idle()
    assert SAYS in node.ok(JOB)
    assert "enroot folders: 6 of 6 created" in node.journal("cycleforge-enroot"), (
        "/nvme was empty before slurmd started"
    )


def test_without_the_boot_unit_slurmd_does_not_even_start(cluster: Cluster) -> None:
    """What the test above would show if the folders came late."""
    node = cluster["node1"]
    drop_in = "/etc/systemd/system/slurmd.service.d/20-cycleforge-pyxis_enroot.conf"
    node.ok(f"systemctl --quiet disable cycleforge-enroot; mv {drop_in} /root/drop-in")
    cluster.wait_idle()
    node.reboot()
    try:
        state = node.machine.run(UNTIL_FAILED)
        assert state.output.strip() == "failed", node.journal("slurmd")
    finally:
        node.ok(f"mv /root/drop-in {drop_in}; systemctl --quiet enable cycleforge-enroot; systemctl daemon-reload")
        node.ok("systemctl reset-failed slurmd; systemctl start slurmd")
    cluster.wait_idle()
    assert SAYS in node.ok(JOB)
