"""What the deep checks of a boot find, on running Slurm: against the floors of Standard_ND96isr_H100_v5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.bed.sick import SickCluster, SickNode
from tests.bed.sick.node import HEALTH
from tests.bed.sick.table import rows

Break = Callable[[SickNode], None]
REPAIRED = f"bash {HEALTH} repaired"
DEEP_CONF, HEALTH_CONF = "etc/cycleforge/nhc/deep.conf", "etc/cycleforge/health.conf"
OTHER_TOPOLOGY = '<system version="1">\n  <cpu numaid="3"/>\n</system>\n'


def _other_topology(node: SickNode) -> None:
    node.write("opt/microsoft/ndv4/topo.xml", OTHER_TOPOLOGY)
    node.write("etc/nccl.conf", "NCCL_TOPO_FILE=/opt/microsoft/ndv4/topo.xml\n")


HEALING: dict[str, tuple[str, Break]] = {
    "copy-slow": ("gpu_copy_to_device", lambda node: node.state("copy_gb_s", "40.00")),
    "peer-copy-slow": ("gpu_copy_peer", lambda node: node.state("peer_gb_s", "300.00")),
    "nccl-slow": ("nccl_all_reduce", lambda node: node.state("bus_gb_s", "455.00")),
    "loopback-slow": ("nccl_loopback", lambda node: node.state("loopback_gb_s", "39.50")),
    "gdr-slow": ("ib_write", lambda node: node.state("ib_gbps.mlx5_ib3", "350.00")),
    "topology-other": ("", _other_topology),
}
STAYING: dict[str, tuple[str, Break]] = {
    "nccl-wrong-sums": ("nccl_all_reduce", lambda node: node.state("wrong_values", "3")),
    "dcgm-isolate": ("gpu_diagnostic", lambda node: node.state("dcgmi.fail", "the memory of this GPU is faulty")),
}
"""What stands until somebody has repaired it: by the id of its row, the deep check and the fault."""
HARMLESS: dict[str, tuple[str, str, Break]] = {
    "gdr-without-cuda": ("ib_write", "not_measured", lambda node: node.state("ib_write_bw.no_cuda", "options")),
    "dcgm-skipped": ("gpu_diagnostic", "not_measured", lambda node: node.state("dcgmi.skip", "software")),
    "dcgm-without-engine": ("gpu_diagnostic", "not_measured", lambda node: node.state("dcgmi.exit", "235")),
    "copies-waived": ("gpu_copy_peer", "not_measured", lambda node: node.state("nvbandwidth.waived")),
    "nccl-not-loadable": ("nccl_all_reduce", "not_measured", lambda node: node.state("all_reduce_perf.loader")),
    "topology-missing": ("", "warn", lambda node: (node.root / "opt/microsoft/ndv5/topo.xml").unlink()),
}
"""What drains no node: the check, its verdict, the fault."""


@pytest.fixture
def deep_sick(sick: SickCluster) -> Iterator[SickCluster]:
    """Nodes that boot without deep checks, which would take longer than the tests, and are then told to run them."""
    kept = {
        (node, path): (node.root / path).read_text()
        for node in sick.nodes.values()
        for path in (DEEP_CONF, HEALTH_CONF)
    }
    for node in sick.nodes.values():
        node.write("kept.conf", kept[node, DEEP_CONF])
        node.write(HEALTH_CONF, kept[node, HEALTH_CONF].replace("deep_s=0\n", "deep_s=300\n"))
    yield sick
    for (node, path), text in kept.items():
        node.write(path, text)


def only(node: SickNode, check: str) -> None:
    """The deep checks of the node are this one: its own lines of what was converged."""
    lines = node.read("kept.conf").splitlines()
    wanted = ("checks.sh", "nccl_environment", f"cycleforge {check} ")
    node.write(DEEP_CONF, "\n".join(line for line in lines if any(word in line for word in wanted)) + "\n")


def deep(nodes: list[SickNode]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda node: node.deep(), nodes))


@pytest.mark.fault(
    "copy-slow", "peer-copy-slow", "nccl-slow", "loopback-slow", "gdr-slow", "topology-other", "nccl-wrong-sums",
    "dcgm-isolate",
)  # fmt: skip
def test_a_node_below_a_floor_takes_no_job_until_it_passes(deep_sick: SickCluster) -> None:
    sick = deep_sick
    faults = {**HEALING, **STAYING}
    nodes = dict(zip(sick.nodes.values(), faults, strict=True))
    measuring = [node for node, fault in nodes.items() if faults[fault][0]]
    for node, fault in nodes.items():
        check, breaks = faults[fault]
        if check:
            only(node, check)
        breaks(node)
    deep(measuring)
    sick.quick()
    shown = sick.states()
    for node, fault in nodes.items():
        assert shown[node.name].state == "drained", fault
        assert shown[node.name].reason.startswith(rows()[fault].reason), (fault, shown[node.name].reason)
    healed = [node for node, fault in nodes.items() if fault in HEALING]
    jobs = {node: sick.submit("true", f"--nodelist={node.name}") for node in nodes}
    assert {sick.job(job)["JobState"] for job in jobs.values()} == {"PENDING"}
    first, *rest = healed
    sick.slurm("scancel", *(jobs[node] for node in rest))  # each that runs costs an epilog
    for node in nodes:
        node.heal()
    by_hand, *others = measuring
    code, said = by_hand.health("deep", "now", timeout_s=300)
    assert code == 0, said
    assert shown[by_hand.name].state == "drained", "a person tests a node that jobs cannot reach"
    deep(others)
    for _ in range(3):
        sick.quick(*(name for name, row in sick.states().items() if row.state == "drained"))
    # The job has waited, and begins as soon as its node is back.
    assert sick.finish(jobs[first])["ExitCode"] == "0:0"
    sick.wait("they are idle", lambda: {sick.states()[node.name].state for node in healed} == {"idle"})
    assert {node.hook("prolog")[0] for node in healed} == {0}, "and every one lets a job in"
    for node, fault in nodes.items():
        if fault in STAYING:
            assert sick.states()[node.name].state == "drained", "a test that passes later does not take it back"
            assert sick.job(jobs[node])["JobState"] == "PENDING"
            node.ok(REPAIRED)
            assert sick.finish(jobs[node])["ExitCode"] == "0:0", "a person has said that it is good again"


@pytest.mark.fault(
    "gdr-without-cuda", "dcgm-skipped", "dcgm-without-engine", "copies-waived", "nccl-not-loadable", "topology-missing",
    "deep-not-measured",
)  # fmt: skip
def test_what_a_tool_cannot_do_drains_nothing_and_passes_nothing(deep_sick: SickCluster) -> None:
    sick = deep_sick
    nodes = dict(zip(list(sick.nodes.values())[: len(HARMLESS)], HARMLESS, strict=True))
    for node, fault in nodes.items():
        check, _, breaks = HARMLESS[fault]
        if check:
            only(node, check)
        breaks(node)
    strict = sick["n8"]
    strict.write(HEALTH_CONF, strict.read(HEALTH_CONF).replace("unmeasured=report", "unmeasured=drain"))
    only(strict, "nccl_all_reduce")
    strict.state("all_reduce_perf.loader")
    deep([strict, *(node for node, fault in nodes.items() if HARMLESS[fault][0])])
    sick.quick("n8", *(node.name for node in nodes))
    for node, fault in nodes.items():
        check, verdict, _ = HARMLESS[fault]
        assert not rows()[fault].drained
        kind, name = ("deep", check) if check else ("quick", "nccl_topology")
        assert node.verdict(name, kind) == verdict, (fault, node.result(kind))
        assert sick.states()[node.name].state == "idle", fault
    state = sick.states()["n8"]
    assert (state.state, state.reason.startswith(rows()["deep-not-measured"].reason)) == ("drained", True), state
    job = sick.submit("true", "--nodelist=n8")
    strict.heal()
    deep([strict])
    assert sick.job(job)["JobState"] == "PENDING"
    sick.quick("n8")
    sick.quick("n8")
    assert sick.finish(job)["ExitCode"] == "0:0"
    gdr = next(node for node, fault in nodes.items() if fault == "gdr-without-cuda")
    assert gdr.verdict("ib_write_host", "deep") == "no_baseline", "host memory, under its own name"


HANGS = 'touch "${FAKE_STATE}/measuring"; exec sleep 3600'


@pytest.mark.fault("deep-run-killed")
def test_a_boot_whose_deep_run_was_killed_takes_no_job_until_it_is_made_up_for(deep_sick: SickCluster) -> None:
    sick, node = deep_sick, deep_sick["n1"]
    conf, tool = node.read(HEALTH_CONF), node.disk / "bin/nvbandwidth"
    whole = tool.read_bytes()
    node.write(HEALTH_CONF, conf.replace("unmeasured=report", "unmeasured=drain"))
    only(node, "gpu_copy_to_device")
    node.write("proc/sys/kernel/random/boot_id", f"{uuid4()}\n")
    try:
        node.fake("nvbandwidth", HANGS)
        node.ok(
            'rm "${FAKE_STATE}/active/slurmd.service"\n'
            "setsid bash /opt/cycleforge/slurm_nhc/health.sh deep boot >/dev/null 2>&1 & run=$!\n"
            'until [[ -e "${FAKE_STATE}/measuring" ]]; do kill -0 "${run}" || exit 1; sleep 0.1; done\n'
            'kill -KILL -- "-${run}"; wait "${run}" || true\n'
            'echo active >"${FAKE_STATE}/active/slurmd.service"'
        )
        tool.write_bytes(whole)
        job = sick.submit("echo ran", "--nodelist=n1")
        state = sick.wait_state("n1", "drained")
        assert state.reason.startswith(rows()["deep-run-killed"].reason), state
        assert sick.output(job) == ""
        sick.slurm("scancel", job)
        assert node.health("deep", "idle", timeout_s=300)[0] == 0
        assert sick.states()["n1"].state == "idle", node.result("deep")
        assert sick.finish(sick.submit("true", "--nodelist=n1"))["ExitCode"] == "0:0"
    finally:
        tool.write_bytes(whole)
        node.write(HEALTH_CONF, conf)
