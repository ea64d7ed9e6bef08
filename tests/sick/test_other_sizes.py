"""Faults of AMD GPUs and of CPU sizes: what docs/node-health.md promises for them, on running Slurm.

Some nodes of the cluster are VMs of these sizes meanwhile.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping

import pytest

from generator import catalog
from tests.bed.scripts.amd import MI300X, STARTED, AmdGpus
from tests.bed.scripts.node import HANGS
from tests.bed.scripts.rocm import copy_tool
from tests.bed.sick import SickCluster, SickNode
from tests.bed.sick.node import HEALTH
from tests.bed.sick.table import rows
from tests.bed.slurm import hardware
from tests.bed.slurm.cluster import FAKES
from tests.projects.test_health_stream import INVALID, shown

HB = "Standard_HB176rs_v4"
NAMES = ("n1", "n2", "n3", "n4")
DEEP_CONF, HEALTH_CONF = "etc/cycleforge/nhc/deep.conf", "etc/cycleforge/health.conf"
AT = "amdgpu 0004:00:00.0: amdgpu: "


def runs_deep(node: SickNode, check: str) -> None:
    """The deep checks of a node are this line of what was converged."""
    conf = node.root / DEEP_CONF
    kept = [line for line in conf.read_text().splitlines() if "checks.sh" in line or f"cycleforge {check} " in line]
    assert len(kept) == 2, kept
    conf.write_text("\n".join([*kept, ""]))
    settings = node.root / HEALTH_CONF
    settings.write_text(settings.read_text().replace("deep_s=0\n", "deep_s=300\n"))


class AmdNode:
    """A node of the cluster whose GPUs are AMD's."""

    def __init__(self, node: SickNode) -> None:
        self.node, self.gpus = node, AmdGpus(node)

    def plant(self) -> None:
        """GPUs, and what the ROCm images bring; rccl-tests print and end as nccl-tests do, from which they are made."""
        self.gpus.heal()
        copy_tool(self.node.root)
        tests = self.node.root / "opt/rccl-tests/all_reduce_perf"
        tests.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FAKES / "all_reduce_perf", tests)
        self.node.kernel(*STARTED)

    def heal(self) -> None:
        """Every fault has ended; what the checks have written stays."""
        self.node.heal()
        self.plant()

    def log(self, *lines: str) -> None:
        self.node.kernel(*lines)

    def reboot(self) -> None:
        self.node.reboot(before_boot=self.heal)

    def new_vm(self) -> None:
        self.node.new_vm()
        self.plant()


Break = Callable[[AmdNode], None]
FAULTS: dict[str, Break] = {
    "amd-gpu-gone": lambda amd: amd.gpus.lose(5),
    "amd-gpu-not-served": lambda amd: amd.gpus.serve(7),
    "amd-smi-crashes": lambda amd: amd.node.fake("rocm-smi", "echo 'Traceback (most recent call last):'; exit 1"),
    "amd-smi-hangs": lambda amd: amd.node.fake("rocm-smi", HANGS),
    "amd-driver-late": lambda amd: amd.gpus.unload_driver(uptime_s=100),
    "amd-driver-missing": lambda amd: amd.gpus.unload_driver(uptime_s=1020),
    "amd-errors-counted": lambda amd: amd.gpus.errors(3, "umc", 2),
    "amd-link-missing": lambda amd: amd.gpus.lose_link(6, 2),
    "amd-fatal-error": lambda amd: amd.log(
        "amdgpu 0007:00:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!"
    ),
    "amd-memory-error": lambda amd: amd.log(
        f"{AT}socket: 2, die: 0, 1 new uncorrectable hardware errors detected in umc block"
    ),
    "amd-reset-failed": lambda amd: amd.log(f"{AT}GPU reset begin!", f"{AT}GPU reset end with ret = -62"),
    "amd-bad-pages": lambda amd: amd.log(
        f"{AT}RAS records:300 exceed threshold:256, GPU will not be initialized. Replace this GPU"
    ),
    "amd-init-failed": lambda amd: amd.log(f"{AT}Fatal error during GPU init"),
    "amd-gpu-was-reset": lambda amd: amd.log(f"{AT}GPU reset begin!"),
    "amd-ring-late": lambda amd: amd.log(f"{AT}ring sdma0 timeout, but soft recovered"),
    "amd-hot": lambda amd: amd.gpus.temperature(2, 100),
}  # fmt: skip
"""By the id of the row. Where each line of the log is from is in generator/catalog/amd_messages.json."""
SLOW: dict[str, tuple[str, Break]] = {
    "amd-copies-slow": ("amd_copies", lambda amd: copy_tool(amd.node.root, to="47.9")),
    "amd-reduce-slow": ("rccl_all_reduce", lambda amd: amd.node.state("bus_gb_s", "313.90")),
    "amd-wrong-sums": ("rccl_all_reduce", lambda amd: amd.node.state("wrong_values", "3")),
    "amd-network-slow": ("ib_write", lambda amd: amd.node.state("ib_gbps.mlx5_ib3", "389.90")),
}
"""By the id of the row, the line of the deep checks and the fault."""


@pytest.fixture(scope="module")
def whole_amd(whole_sick: SickCluster) -> Iterator[dict[str, AmdNode]]:
    """Some nodes get VMs with AMD GPUs, and at the end those that they had."""
    whole_sick.each(lambda node: node.becomes(MI300X), *NAMES)
    yield {name: AmdNode(whole_sick[name]) for name in NAMES}
    whole_sick.each(lambda node: node.becomes(hardware.VM_SIZE), *NAMES)


@pytest.fixture
def amd(whole_amd: dict[str, AmdNode], sick: SickCluster) -> dict[str, AmdNode]:
    """The nodes with AMD GPUs, healthy; `sick` has restored the rest."""
    for node in whole_amd.values():
        node.plant()
    return whole_amd


def _fall_ill(sick: SickCluster, nodes: Mapping[str, AmdNode]) -> str:
    """Drained with the row's reason, and no job starts; or idle, and the job runs. One of the jobs that wait stays."""
    shown = sick.states()
    for fault, amd in nodes.items():
        row, state = rows()[fault], shown[amd.node.name]
        assert state.state == ("drained" if row.drained else "idle"), (fault, state, amd.node.result("quick"))
        assert state.reason.startswith(row.reason), (fault, state.reason)
    jobs = {fault: sick.submit("true", f"--nodelist={amd.node.name}") for fault, amd in nodes.items()}
    for fault, job in jobs.items():
        if not rows()[fault].drained:
            assert sick.finish(job)["ExitCode"] == "0:0", fault
    waiting = [fault for fault in jobs if rows()[fault].drained]
    assert {fault: sick.job(jobs[fault])["JobState"] for fault in waiting} == dict.fromkeys(waiting, "PENDING")
    if others := [jobs[fault] for fault in waiting[1:]]:
        sick.slurm("scancel", *others)  # each that runs costs an epilog
    return jobs[waiting[0]]


def _in_service(sick: SickCluster, nodes: Mapping[str, AmdNode], job: str) -> None:
    """Slurm gives them jobs again, as the one that has waited."""
    shown = sick.states()
    out = {fault: shown[amd.node.name] for fault, amd in nodes.items()}
    drained = [fault for fault, state in out.items() if state.state.startswith("drain")]
    assert not drained, [(out[fault], nodes[fault].node.result("quick")) for fault in drained]
    assert sick.finish(job)["ExitCode"] == "0:0"


RUNS_TO_RETURN = 3
"""A VM that takes the name of a drained one is tested again like any other: one run sees that, two have to pass."""
ENDS: dict[str, Callable[[AmdNode], None]] = {
    "after two passing quick runs": AmdNode.heal,
    "after a reboot": AmdNode.reboot,
    "on another VM, or by a person": AmdNode.new_vm,
    "stays in service, with a warning": AmdNode.heal,
}
"""What ends a drain, in the words of the table."""


@pytest.mark.parametrize("place", range(0, len(FAULTS), len(NAMES)))
@pytest.mark.fault(
    "amd-gpu-gone", "amd-gpu-not-served", "amd-smi-crashes", "amd-smi-hangs", "amd-driver-late", "amd-driver-missing",
    "amd-errors-counted", "amd-link-missing", "amd-fatal-error", "amd-memory-error", "amd-reset-failed",
    "amd-bad-pages", "amd-init-failed", "amd-gpu-was-reset", "amd-ring-late", "amd-hot",
)  # fmt: skip
def test_a_fault_keeps_jobs_away_until_what_the_table_says(
    sick: SickCluster, amd: dict[str, AmdNode], place: int
) -> None:
    nodes = dict(zip(list(FAULTS)[place : place + len(NAMES)], amd.values(), strict=True))
    for fault, node in nodes.items():
        FAULTS[fault](node)
    results = sick.quick(*NAMES)
    for fault, node in nodes.items():
        assert results[node.node.name]["verdict"] == ("fail" if rows()[fault].drained else "warn"), fault
    job = _fall_ill(sick, nodes)
    ends = {node.node.name: (ENDS[rows()[fault].resumed], node) for fault, node in nodes.items()}

    def end(node: SickNode) -> None:
        happens, one = ends[node.name]
        happens(one)

    sick.each(end, *NAMES)
    for _ in range(RUNS_TO_RETURN):
        shown = sick.states()
        if out := [name for name in NAMES if shown[name].state == "drained"]:
            sick.quick(*out)
    _in_service(sick, nodes, job)


@pytest.mark.fault("amd-copies-slow", "amd-reduce-slow", "amd-wrong-sums", "amd-network-slow")
def test_a_node_below_a_floor_takes_no_job_until_it_passes(sick: SickCluster, amd: dict[str, AmdNode]) -> None:
    nodes = dict(zip(SLOW, amd.values(), strict=True))
    for fault, node in nodes.items():
        line, breaks = SLOW[fault]
        runs_deep(node.node, line)
        breaks(node)
    sick.each(SickNode.deep, *NAMES)
    sick.quick(*NAMES)
    job = _fall_ill(sick, nodes)
    for node in nodes.values():
        node.heal()
    sick.each(SickNode.deep, *NAMES)
    wrong = nodes["amd-wrong-sums"].node
    assert sick.states()[wrong.name].state == "drained", "a test that passes later does not take it back"
    wrong.ok(f"bash {HEALTH} repaired")
    sick.quick(*NAMES)
    _in_service(sick, nodes, job)


class CpuNode:
    def __init__(self, node: SickNode) -> None:
        self.node, self.size = node, catalog.vm_size(node.vm_size)

    def heal(self) -> None:
        """Processors, memory, disks and the port as the size has them; STREAM is as fast as a healthy one."""
        node, size = self.node, self.size
        node.heal()
        threads = size.vcpus or 0
        node.write(
            "proc/cpuinfo",
            "".join(f"processor\t: {place}\nphysical id\t: {place * 2 // threads}\n\n" for place in range(threads)),
        )
        hardware.memory(node.root, size.guest_memory_kib or 0)
        for number in range(size.infiniband_nics, hardware.PORTS):
            shutil.rmtree(node.root / f"sys/class/infiniband/mlx5_ib{number}")
        for number in range(size.nvme_count or 0, hardware.DISKS):
            node.disk_gone(number)
        self.stream(shown())

    def stream(self, text: str) -> None:
        """docker runs STREAM in the container of the image, with this output."""
        self.node.fake("docker", f"""[[ "$1" == run ]] || exit 0\ncat <<'END'\n{text}\nEND""")


STREAM: dict[str, Callable[[CpuNode], None]] = {
    "stream-slow": lambda cpu: cpu.stream(shown(copy="665400.0")),
    "stream-wrong": lambda cpu: cpu.stream(shown(validation=INVALID)),
}


@pytest.fixture
def cpus(sick: SickCluster) -> Iterator[list[CpuNode]]:
    """Two nodes with InfiniBand and no GPUs."""
    names = ("n7", "n8")
    sick.each(lambda node: node.becomes(HB), *names)
    made = [CpuNode(sick[name]) for name in names]
    for cpu in made:
        cpu.heal()
        runs_deep(cpu.node, "cpu_stream")
    yield made
    sick.each(lambda node: node.becomes(hardware.VM_SIZE), *names)


@pytest.mark.fault("stream-slow", "stream-wrong")
def test_a_cpu_node_whose_memory_is_slow_or_wrong_takes_no_job(sick: SickCluster, cpus: list[CpuNode]) -> None:
    nodes, names = dict(zip(STREAM, cpus, strict=True)), [cpu.node.name for cpu in cpus]
    for fault, cpu in nodes.items():
        STREAM[fault](cpu)
    sick.each(SickNode.deep, *names)
    sick.quick(*names)
    shown_now = sick.states()
    jobs = {fault: sick.submit("true", f"--nodelist={cpu.node.name}") for fault, cpu in nodes.items()}
    for fault, cpu in nodes.items():
        state = shown_now[cpu.node.name]
        assert (state.state, state.reason[: len(rows()[fault].reason)]) == ("drained", rows()[fault].reason), state
        cpu.heal()
    sick.each(SickNode.deep, *names)
    slow, wrong = (nodes[fault].node for fault in STREAM)
    assert {sick.job(job)["JobState"] for job in jobs.values()} == {"PENDING"}
    assert {result["verdict"] for result in sick.quick(slow.name).values()} == {"pass"}
    assert sick.finish(jobs["stream-slow"])["ExitCode"] == "0:0"
    assert sick.states()[wrong.name].state == "drained", "a test that passes later does not take it back"
    wrong.ok(f"bash {HEALTH} repaired")
    assert sick.finish(jobs["stream-wrong"])["ExitCode"] == "0:0"
