"""The bed itself: nodes are healthy, faults stay on their node, boots and new VMs are what they say."""

from __future__ import annotations

from tests.bed.sick import SickCluster
from tests.bed.slurm.client import NodeState

VM_ID = "run/cycleforge/vm_id"
"""Where standing.sh keeps the answer of instance metadata."""


def test_healthy_nodes_pass_everything_and_take_jobs(sick: SickCluster) -> None:
    results = sick.quick("n1", "n2", "n3")
    assert {name: (result["verdict"], result["node"]) for name, result in results.items()} == {
        name: ("pass", name) for name in ("n1", "n2", "n3")
    }
    job = sick.submit("srun --nodes=2 sh -c 'echo $SLURMD_NODENAME; nvidia-smi -L | wc -l'", "--nodelist=n1,n2",
                      "--gpus-per-node=8", "--ntasks-per-node=1")  # fmt: skip
    assert sick.finish(job)["ExitCode"] == "0:0"
    assert sorted(sick.output(job).split()) == ["8", "8", "n1", "n2"]


def test_slurm_runs_the_real_hooks(sick: SickCluster) -> None:
    """The epilog of a job finds the fault that came while the job ran, and drains."""
    node = sick["n4"]
    job = sick.submit_held("--nodelist=n4")
    node.gpus(7)
    sick.release(job)
    assert sick.finish(job)["ExitCode"] == "0:0"
    assert node.result("quick")["verdict"] == "fail"
    reason = "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs (missing 0008:00:00)"
    assert sick.states()["n4"] == NodeState("drained", reason)


def test_a_reboot_keeps_the_disk_and_a_new_vm_does_not(sick: SickCluster) -> None:
    node = sick["n5"]
    first = node.quick()
    vm = node.read("sys/class/dmi/id/product_uuid")
    assert node.read(VM_ID) == vm, "instance metadata has told it"
    node.xid(79)
    node.reboot()
    assert node.read("state/kernel.log") == ""
    assert node.result("quick")["boot_id"] == first["boot_id"], "the file of the boot before is still there"
    second = node.quick()
    assert second["boot_id"] != first["boot_id"]
    assert second["physical_host"] == first["physical_host"] != ""
    node.new_vm()
    assert node.run('ls "${CYCLEFORGE_ROOT}/var/lib/cycleforge/health/quick.json"').code != 0
    assert node.quick()["physical_host"] != first["physical_host"]
    assert node.read("sys/class/dmi/id/product_uuid") == node.read(VM_ID) != vm
    assert sick.states()["n5"] == NodeState("idle", "")


def test_a_full_disk_is_a_file_system_of_its_own(sick: SickCluster) -> None:
    node, other = sick["n6"], sick["n7"]
    node.quick()
    node.fill_disk()
    assert "No space left" in node.run('echo x >"${CYCLEFORGE_ROOT}/var/lib/cycleforge/x"').output
    assert other.run('echo x >"${CYCLEFORGE_ROOT}/var/lib/cycleforge/x"').code == 0
    assert node.result("quick")["verdict"] == "pass"
    node.heal()
    assert node.run('echo x >"${CYCLEFORGE_ROOT}/var/lib/cycleforge/x"').code == 0
    assert node.result("quick")["verdict"] == "pass"


def test_whoever_joins_or_leaves_nobody_loses_the_scheduler(sick: SickCluster) -> None:
    """Addresses of the network stay: a node that talks to the old one of another waits half a minute for an answer."""

    def address(text: str) -> str:
        (line,) = text.splitlines()
        return line.split()[2]

    node, own = sick["n8"], "ip -br link show eth0"
    scheduler, before = address(sick.ok(own)), address(node.ok(own))
    ports = sick.ok("ip -br link show master eth0").splitlines()
    assert len(ports) == len(sick.nodes)
    assert scheduler not in {address(port) for port in ports}, "the bridge has the address of a port, which may go"
    node.reboot()
    assert (address(sick.ok(own)), address(node.ok(own))) == (scheduler, before)
