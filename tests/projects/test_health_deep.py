"""Bandwidth checks and the gate of the prolog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bed import perftest
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import H100, HANGS
from tests.projects.conftest import MakeNode


@pytest.fixture
def plain(make_node: MakeNode) -> Healthy:
    """A node on which no deep checks have run."""
    return healthy(make_node("slurm_nhc"))


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    """A node whose definition wants them; `tools` gives it what they call."""
    return healthy(make_node("slurm_nhc"), deep_s=300)


MATRIX = """Running the test.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2
 0     1026.28   VALUE     1026.20

SUM of the test 3078.1
"""
NCCL = "# Out of bounds values : {wrong} OK\\n# Avg bus bandwidth    : {value}\\n"
# The server listens where the script looks for it; the client prints the table of perftest.
IB_WRITE = """
device="" port="" peer=""
while (($# > 0)); do
    case "$1" in
        -d) device="$2"; shift ;;
        -p) port="$2"; shift ;;
        -s | -x | -D | -q) shift ;;
        --help) echo '      --use_cuda=<cuda device id>'; exit 1 ;;
        localhost) peer=yes ;;
    esac
    shift
done
if [[ -z "$peer" ]]; then
    printf '   0: 00000000:%04X 00000000:0000 0A 00000000:00000000\\n' "$port" >>"$CYCLEFORGE_ROOT/proc/net/tcp"
    echo $$ >>"$FAKE_STATE/servers"
    exec sleep 600
fi
value=VALUE
if [[ "$device" == mlx5_ib3 ]]; then value=ODD; fi
""" + perftest.shell(8388608, '"$value"')
# mpirun gives the ranks the variables after -x.
HAND_ON = 'while (($#)); do if [[ "$1" == -x && "$2" == *=* ]]; then export "$2"; fi; shift; done\n'
DIAGNOSTIC = (
    '{{"DCGM Diagnostic": {{"test_categories": [{{"category": "Deployment", "tests": [{{"name": "software", '
    '"results": [{{"entity_id": 0, "status": "{verdict}"}}], "test_summary": {{"status": "{verdict}"}}}}]}}]}}}}'
)


def tools(node: Healthy, copy: str = "26.10", bus: str = "231.5", wrong: str = "0", ib: str = "196.98",
          slow_ib: str = "", diagnostic: str = "Pass") -> None:  # fmt: skip
    """Bandwidth tools: `copy` GB/s from and to the host, 250.1 between GPUs, `bus` GB/s for all-reduce, `ib` Gb/s."""
    node.fake("nvbandwidth", f"case $2 in device_to_device*) value=250.1 ;; *) value={copy} ;; esac\n"
                             f'sed "s/VALUE/$value/" <<\'END\'\n{MATRIX}END\n', light=True)  # fmt: skip
    node.fake(
        "mpirun",
        f"{HAND_ON}(env; echo === end) >>\"$FAKE_STATE/mpirun.env\"; printf '{NCCL.format(value=bus, wrong=wrong)}'",
    )
    node.write("opt/nccl-tests/build/all_reduce_perf", "", 0o755)
    node.fake("ib_write_bw", IB_WRITE.replace("VALUE", ib).replace("ODD", slow_ib or ib))
    node.fake("dcgmi", f"printf '{DIAGNOSTIC.format(verdict=diagnostic)}'", light=True)
    (node.root / "proc/net").mkdir(exist_ok=True)
    node.forget()
    for trace in (node.state / "mpirun.env", node.root / "proc/net/tcp"):
        trace.unlink(missing_ok=True)


def deep(node: Healthy) -> dict[str, Any]:
    code, output = node.health("deep", "boot")
    assert code == 0, output
    return node.result("deep")


def values(node: Healthy) -> dict[str, str]:
    return {row["check"]: row["value"] for row in node.result("deep")["checks"]}


def test_deep_checks_of_a_healthy_node_pass(node: Healthy) -> None:
    tools(node)
    result = deep(node)
    assert result["verdict"] == "pass", result
    assert values(node) == {
        "boot_services": "",
        "gpu_copy_to_device": "26.10", "gpu_copy_from_device": "26.10", "gpu_copy_peer": "250.1",
        "nccl_all_reduce": "231.5", "nccl_loopback": "231.5", "gpu_diagnostic": "", "ib_write": "196.98",
    }  # fmt: skip
    assert node.health("gate") == (0, "")


def test_near_the_limit_is_a_warning(node: Healthy) -> None:
    node.only("boot_services", "gpu_copy_to_device", kind="deep")
    tools(node, copy="21.50")
    assert deep(node)["verdict"] == "warn"
    (row,) = [row for row in node.result("deep")["checks"] if row["check"] == "gpu_copy_to_device"]
    assert (row["verdict"], row["limit"]) == ("warn", "22.05")
    assert "near the limit of 21 GB/s" in row["detail"]


def test_the_slowest_gpu_is_named(node: Healthy) -> None:
    node.only("gpu_copy_to_device", kind="deep")
    tools(node, copy="9.5")
    deep(node)
    (row,) = [row for row in node.result("deep")["checks"] if row["check"] == "gpu_copy_to_device"]
    assert row["detail"] == "row 0, GPU 1"


IB_CASES = [
    ("180", "pass"), ("180.00", "pass"), ("179.99", "fail"), ("97.5", "fail"), ("1000.1", "pass"),
]  # fmt: skip


@pytest.mark.parametrize(("slow", "verdict"), IB_CASES)
def test_infiniband_is_judged_by_its_slowest_device_as_a_number(node: Healthy, slow: str, verdict: str) -> None:
    node.only("ib_write", kind="deep")
    tools(node, slow_ib=slow)
    deep(node)
    assert node.verdict("ib_write", "deep") == verdict
    if verdict == "fail":
        (row,) = [row for row in node.result("deep")["checks"] if row["check"] == "ib_write"]
        assert row["detail"] == "mlx5_ib3, slowest of 8"


def test_every_device_is_measured_on_a_port_and_with_the_gpu_of_its_own(node: Healthy) -> None:
    node.only("ib_write", kind="deep")
    tools(node)
    deep(node)
    servers = [call for call in node.calls("ib_write_bw") if not call.endswith(("localhost", "--help"))]
    assert len(servers) == 8
    for place in range(8):
        (call,) = [call for call in servers if f"-d mlx5_ib{place} " in call]
        assert f"--use_cuda={place} " in call
        assert call.endswith(f"-p {18510 + place}")


def test_a_server_that_does_not_start_is_not_measured(node: Healthy) -> None:
    node.only("ib_write", kind="deep")
    tools(node)
    node.fake("ib_write_bw", "echo \"unrecognized option '--use_cuda=0'\"; exit 1")
    deep(node)
    rows = [row for row in node.result("deep")["checks"] if row["check"] == "ib_write"]
    assert {row["verdict"] for row in rows} == {"not_measured"}
    assert "mlx5_ib0: ib_write_bw ended with exit code 1: unrecognized option" in rows[0]["detail"]


def test_a_device_that_hangs_leaves_no_server_behind(node: Healthy) -> None:
    node.only("ib_write", kind="deep")
    tools(node)
    node.fake("ib_write_bw", IB_WRITE.replace("value=VALUE", HANGS).replace("ODD", "1"))
    deep(node)
    rows = [row for row in node.result("deep")["checks"] if row["check"] == "ib_write"]
    late = [f"mlx5_ib{place}: ib_write_bw did not answer in time" for place in range(8)]
    assert [row["detail"] for row in rows] == late
    assert {row["verdict"] for row in rows} == {"fail"}
    servers = (node.state / "servers").read_text().split()
    assert len(servers) >= 8
    assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]


def test_loopback_switches_everything_but_infiniband_off(node: Healthy) -> None:
    node.only("nccl_environment", "nccl_all_reduce", "nccl_loopback", kind="deep")
    tools(node)
    deep(node)
    first, second = (node.state / "mpirun.env").read_text().split("=== end\n")[:2]
    for variable in ("NCCL_SHM_DISABLE=1", "NCCL_P2P_DISABLE=1"):
        assert variable not in first.splitlines()
        assert variable in second.splitlines()


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("printf '| Denylist | Pass |\\n| PCIe | Fail - GPU 3 |\\n'; exit 226", "fail"),
        (f"echo '{DIAGNOSTIC.format(verdict='Pass')}'", "pass"),
        (f"echo '{DIAGNOSTIC.format(verdict='Skip')}'", "not_measured"),
        ("echo 'Error: unable to establish a connection to the specified host: localhost'; exit 1", "not_measured"),
        ("exit 0", "not_measured"),
        (HANGS, "fail"),
    ],
)
def test_the_diagnostics_of_nvidia(node: Healthy, body: str, verdict: str) -> None:
    node.only("gpu_diagnostic", kind="deep")
    tools(node)
    node.fake("dcgmi", body)
    deep(node)
    assert node.verdict("gpu_diagnostic", "deep") == verdict


def test_deep_checks_read_the_smallest_number_as_a_number(node: Healthy) -> None:
    node.only("gpu_copy_to_device", kind="deep")
    tools(node, copy="9.5")
    deep(node)
    assert node.verdict("gpu_copy_to_device", "deep") == "fail"
    tools(node, copy="22.05")
    deep(node)
    assert node.verdict("gpu_copy_to_device", "deep") == "pass"
    tools(node, copy="100.2")
    deep(node)
    assert node.verdict("gpu_copy_to_device", "deep") == "pass"


@pytest.mark.parametrize(
    ("bus", "verdict"), [("228", "pass"), ("227.9", "fail"), ("99.0", "fail"), ("1002.5", "pass"), ("", "fail")]
)
def test_all_reduce_against_its_floor(node: Healthy, bus: str, verdict: str) -> None:
    node.only("nccl_environment", "nccl_all_reduce", kind="deep")
    tools(node, bus=bus)
    deep(node)
    assert node.verdict("nccl_all_reduce", "deep") == verdict
    assert len(node.calls("mpirun")) >= (1 if verdict == "pass" else 2), "a miss is measured again"


def test_wrong_sums_are_a_fault_however_fast(node: Healthy) -> None:
    node.only("nccl_environment", "nccl_all_reduce", kind="deep")
    tools(node, wrong="3", bus="500")
    assert deep(node)["verdict"] == "fail"
    assert node.verdict("nccl_all_reduce_wrong_values", "deep") == "fail"


def test_all_reduce_runs_under_the_variables_of_its_floor(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), H100, deep_s=300)
    node.only("nccl_environment", "nccl_all_reduce", "nccl_loopback", kind="deep")
    tools(node, bus="470")
    deep(node)
    variables = (node.state / "mpirun.env").read_text().splitlines()
    assert "NCCL_MIN_NCHANNELS=32" in variables
    assert "mpirun -np 8 --map-by ppr:8:node --bind-to none" in node.calls("mpirun")[0]
    assert "-b 16G -e 16G" in node.calls("mpirun")[0]
    assert "-b 500M -e 1G" in node.calls("mpirun")[1]


def test_missing_tools_are_not_measured(plain: Healthy) -> None:
    node = plain
    node.attribute("cycleforge.health.deep_s", "300")
    node.ok("20-health.sh")
    converged = node.result("deep")
    again = deep(node)
    assert converged["verdict"] == again["verdict"] == "incomplete", "the converge itself runs them"
    assert converged["checks"] == again["checks"]
    asked = {row["verdict"] for row in node.result("deep")["checks"] if row["check"] != "boot_services"}
    assert asked == {"not_measured"}
    assert node.reason() == ""


def test_a_size_without_floors_has_no_baseline(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), "Standard_ND128isr_GB300_v6", deep_s=300)
    node.only("nccl_environment", "nccl_all_reduce", kind="deep")
    tools(node)
    deep(node)
    assert node.verdict("nccl_all_reduce", "deep") == "no_baseline"


def test_a_failed_deep_check_refuses_the_first_job_and_drains(node: Healthy) -> None:
    node.only("gpu_copy_to_device", kind="deep")
    tools(node, copy="9.5")
    deep(node)
    assert node.calls("scontrol") == [], "Slurm is not up yet"
    code, _ = node.health("gate")
    assert code == 3
    assert node.reason().startswith("CycleForge health: deep_checks (gpu_copy_to_device 9.5 GB/s, at least 21 GB/s")
    assert node.quick()["verdict"] == "fail"


def test_a_controller_that_hangs_opens_no_gate(node: Healthy) -> None:
    node.only("gpu_copy_to_device", kind="deep")
    tools(node, copy="9.5")
    deep(node)
    node.fake("scontrol", HANGS)
    node.forget()
    assert node.health("gate")[0] == 3
    granted = node.limits_s("scontrol")
    assert granted
    assert sum(granted) < 5, "the prolog ends it after 6 s"


def test_the_verdict_of_an_earlier_boot_counts_until_deep_checks_pass(node: Healthy) -> None:
    node.only("gpu_copy_to_device", kind="deep")
    tools(node, copy="9.5")
    deep(node)
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    assert node.health("gate")[0] == 3, "the boot proves nothing"
    tools(node)
    deep(node)
    assert node.health("gate")[0] == 0
    assert node.quick()["verdict"] == "pass"


def test_the_gate_is_open_without_deep_checks(plain: Healthy) -> None:
    assert plain.health("gate") == (0, "")
