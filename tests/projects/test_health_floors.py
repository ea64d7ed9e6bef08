"""Deep checks run in the environment of their floor, or under another name and without a floor."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from generator.files import assets
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import H100
from tests.projects.conftest import MakeNode
from tests.projects.test_health_deep import DIAGNOSTIC, IB_WRITE, MATRIX, deep, tools

_FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
H200 = "Standard_ND96isr_H200_v5"
GB300 = "Standard_ND128isr_GB300_v6"
# The image is there; what runs in the container are the fakes of the host, without their folder. Words and exit codes:
# docker(1), `docker image inspect`, `docker run` (125: docker's own error), `docker exec`.
DOCKER = """
case "$1" in
    image) echo sha256:0123 ;;
    run) echo 4567 ;;
    exec) shift 2
        if [[ "$1" == numactl ]]; then shift 5; fi
        program="${1##*/}"; shift
        IN_CONTAINER=yes exec "$program" "$@" ;;
    rm) ;;
    *) exit 125 ;;
esac
"""
NO_IMAGE = "echo 'Error response from daemon: No such image: mcr.microsoft.com/aznhc/aznhc-nv:latest' >&2; exit 1"
NO_DAEMON = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1"


@pytest.fixture
def h100(make_node: MakeNode) -> Healthy:
    node = healthy(make_node("slurm_nhc"), H100, deep_s=300)
    tools(node, copy="55", bus="470", ib="391")
    return node


@pytest.fixture
def h200(make_node: MakeNode) -> Healthy:
    node = healthy(make_node("slurm_nhc"), H200, deep_s=300)
    tools(node, copy="55", bus="470", ib="391")
    return node


def rows(node: Healthy, *checks: str) -> dict[str, dict[str, Any]]:
    """The records of a deep run of these checks, by name; of several with one name the first."""
    needs = ("nccl_environment",) if any(check.startswith("nccl_") for check in checks) else ()
    node.only(*needs, *checks, kind="deep")
    deep(node)
    found: dict[str, dict[str, Any]] = {}
    for row in node.result("deep")["checks"]:
        found.setdefault(row["check"], row)
    return found


def ranks(node: Healthy) -> list[list[str]]:
    """The variables of the ranks of each run."""
    return [text.splitlines() for text in (node.state / "mpirun.env").read_text().split("=== end\n")[:-1]]


# ---------------------------------------------------------------- NCCL


def test_the_ranks_have_the_variables_of_the_floor_and_no_others(h100: Healthy) -> None:
    """A variable of an administrator's shell, or of the jobs on the node, made it another test."""
    h100.write("etc/cycleforge/nccl.sh", "export NCCL_COLLNET_ENABLE=1\n")
    rows(h100, "nccl_all_reduce")
    (h100.state / "mpirun.env").unlink()
    code, said = h100.health("deep", "boot", NCCL_ALGO="Ring", SHARP_COLL_LOG_LEVEL="3")
    assert code == 0, said
    kept = [line for line in ranks(h100)[0] if line.startswith(("NCCL_", "UCX_", "SHARP_", "OMPI_", "CUDA_"))]
    assert sorted(kept) == [
        "CUDA_DEVICE_ORDER=PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING=1", "NCCL_MIN_NCHANNELS=32",
        "NCCL_SOCKET_IFNAME=eth0", "NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml",
    ]  # fmt: skip
    library = [line for line in ranks(h100)[0] if line.startswith("LD_LIBRARY_PATH=")]
    assert library[0].startswith("LD_LIBRARY_PATH=/usr/local/nccl-rdma-sharp-plugins/lib")


def test_any_of_the_tries_of_the_source_may_reach_the_floor(h100: Healthy) -> None:
    slow = 'echo x >>"$FAKE_STATE/tries"; n=$(wc -l <"$FAKE_STATE/tries"); value=455; ((n < 3)) || value=463.1\n'
    h100.fake("mpirun", slow + 'printf "# Avg bus bandwidth    : %s\\n" "$value"')
    row = rows(h100, "nccl_all_reduce")["nccl_all_reduce"]
    assert (row["verdict"], row["value"], row["limit"]) == ("pass", "463.1", "460")
    assert row["detail"] == "azhpc-ndv5, message 16G, attempt 3 of 10"


def test_a_miss_in_every_try_fails_with_the_best(h100: Healthy) -> None:
    slow = 'echo x >>"$FAKE_STATE/tries"; n=$(wc -l <"$FAKE_STATE/tries"); value=39.0; ((n != 4)) || value=39.9\n'
    h100.fake("mpirun", 'if [[ "$*" != *P2P_DISABLE* ]]; then value=470; else ' + slow + "fi\n"
                        'printf "# Avg bus bandwidth    : %s\\n" "$value"')  # fmt: skip
    row = rows(h100, "nccl_loopback")["nccl_loopback"]
    assert (row["verdict"], row["limit"], row["detail"]) == (
        "fail", "40", "azhpc-ndv5, message 500M to 1G, attempt 10 of 10",
    )  # fmt: skip
    assert row["value"] == "39.9"


@pytest.mark.parametrize("missing", ["opt/microsoft/ndv5-topo.xml", "usr/local/nccl-rdma-sharp-plugins/lib"])
def test_a_host_without_the_environment_is_measured_under_another_name(h100: Healthy, missing: str) -> None:
    path = h100.root / missing
    path.rmdir() if path.is_dir() else path.unlink()
    h100.write("etc/nccl.conf", "")
    found = rows(h100, "nccl_all_reduce")
    assert found["nccl_all_reduce"]["verdict"] == "not_measured"
    assert found["nccl_all_reduce"]["detail"] == f"/{missing} is not in this image"
    assert (found["nccl_all_reduce_host"]["verdict"], found["nccl_all_reduce_host"]["value"]) == ("no_baseline", "470")
    assert not [line for line in ranks(h100)[0] if line == f"NCCL_TOPO_FILE=/{missing}"]


def test_a_floor_of_the_container_is_measured_in_the_container(h200: Healthy) -> None:
    h200.fake("docker", DOCKER)
    found = rows(h200, "nccl_all_reduce", "nccl_loopback")
    assert (found["nccl_all_reduce"]["verdict"], found["nccl_all_reduce"]["limit"]) == ("pass", "431")
    assert "IN_CONTAINER=yes" in ranks(h200)[0]
    assert "NCCL_TOPO_FILE=" in ranks(h200)[0]
    assert "nccl_all_reduce_host" not in found
    (loopback,) = [found[name] for name in found if name.startswith("nccl_loopback")]
    assert (loopback["verdict"], loopback["value"]) == ("no_baseline", "470"), "no floor is published for H200"
    started = h200.calls("docker run")
    assert started
    assert all("--pull=never" in call for call in started), "a node is never asked to reach a registry"
    assert all(0 < int(call.split()[-1]) <= 300 for call in started), "one of a run that is killed ends with its time"
    assert len(h200.calls("docker rm")) == len(started)


@pytest.mark.parametrize(
    ("docker", "why"),
    [
        (None, "docker is not installed"),
        (NO_IMAGE, "is not on this image"),
        (NO_DAEMON, "Cannot connect to the Docker"),
    ],
)
def test_without_the_container_its_floor_judges_nothing(h200: Healthy, docker: str | None, why: str) -> None:
    if docker:
        h200.fake("docker", docker)
    tools(h200, copy="55", bus="300", ib="391")
    found = rows(h200, "nccl_all_reduce")
    assert found["nccl_all_reduce"]["verdict"] == "not_measured"
    assert why in found["nccl_all_reduce"]["detail"]
    assert (found["nccl_all_reduce_host"]["verdict"], found["nccl_all_reduce_host"]["value"]) == ("no_baseline", "300")
    assert h200.result("deep")["verdict"] == "incomplete"


def test_a_container_that_does_not_start_is_taken_away_again(h200: Healthy) -> None:
    fails = "echo 'docker: Error response from daemon: could not select device driver' >&2; exit 125"
    h200.fake("docker", DOCKER.replace("run) echo 4567 ;;", f"run) {fails} ;;"))
    assert "could not select device driver" in rows(h200, "nccl_all_reduce")["nccl_all_reduce"]["detail"]
    assert len(h200.calls("docker rm")) == len(h200.calls("docker run"))
    assert not any("IN_CONTAINER=yes" in variables for variables in ranks(h200)), "nothing runs where nothing started"


def test_a_size_without_floors_is_measured_for_comparison(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), GB300, deep_s=300)
    tools(node, bus="679.6")
    assert "cycleforge nccl_loopback" not in node.read("etc/cycleforge/nhc/deep.conf"), "no source runs it on Grace"
    found = rows(node, "nccl_all_reduce", "gpu_copy_peer", "ib_write")
    for check, value in (("nccl_all_reduce", "679.6"), ("gpu_copy_peer", "250.1"), ("ib_write", "196.98")):
        assert (found[check]["verdict"], found[check]["value"]) == ("no_baseline", value)


# ---------------------------------------------------------------- InfiniBand from GPU memory


def test_a_perftest_without_cuda_is_not_judged_by_the_floor_of_gpu_memory(h100: Healthy) -> None:
    """Before, its refusal of --use_cuda was all that the node said of eight devices."""
    plain = IB_WRITE.replace("--help) echo '      --use_cuda=<cuda device id>'; exit 1 ;;", "--help) exit 1 ;;")
    h100.fake("ib_write_bw", plain.replace("VALUE", "390").replace("ODD", "350"))
    found = rows(h100, "ib_write")
    assert found["ib_write"]["verdict"] == "not_measured"
    assert "cannot use GPU memory, and docker is not installed" in found["ib_write"]["detail"]
    assert (found["ib_write_host"]["verdict"], found["ib_write_host"]["value"]) == ("no_baseline", "350.00")
    servers = [call for call in h100.calls("ib_write_bw") if not call.endswith(("localhost", "--help"))]
    assert all("--use_cuda" not in call and "-q 2" in call for call in servers)


def test_the_container_measures_gpu_memory_where_the_host_cannot(h100: Healthy) -> None:
    help_line = "--help) echo '      --use_cuda=<cuda device id>'; exit 1 ;;"
    plain = IB_WRITE.replace(help_line, "--help) exit 1 ;;").replace("VALUE", "391").replace("ODD", "379.9")
    h100.fake("ib_write_bw", plain)
    h100.fake("docker", DOCKER)
    row = rows(h100, "ib_write")["ib_write"]
    assert (row["verdict"], row["value"], row["limit"]) == ("fail", "379.90", "380")
    assert [
        call for call in h100.calls("docker exec") if "/azure-nhc/bin/ib_write_bw" in call and "--use_cuda=3" in call
    ]


@pytest.mark.parametrize(
    ("help_text", "words"),
    [("--use_cuda=<id>", None), ("--use_cuda=<id>'; echo '  --use_cuda_dmabuf", "--use_cuda_dmabuf")],
)
def test_gpu_memory_needs_a_way_of_the_driver_into_it(h100: Healthy, help_text: str, words: str | None) -> None:
    shutil.rmtree(h100.root / "sys/module/nvidia_peermem")
    body = IB_WRITE.replace("echo '      --use_cuda=<cuda device id>'", f"echo '{help_text}'")
    h100.fake("ib_write_bw", body.replace("VALUE", "391").replace("ODD", "391"))
    found = rows(h100, "ib_write")
    if words:
        assert found["ib_write"]["verdict"] == "pass"
        assert all(words in call for call in h100.calls("ib_write_bw") if "--help" not in call)
    else:
        assert found["ib_write"]["verdict"] == "not_measured"
        assert "nvidia_peermem is not loaded" in found["ib_write"]["detail"]


# ---------------------------------------------------------------- copies


def test_the_clock_is_held_while_copies_are_measured(h100: Healthy) -> None:
    rows(h100, "gpu_copy_to_device")
    calls = [call for call in h100.calls() if call.startswith(("nvidia-smi -lgc", "nvidia-smi -rgc", "nvbandwidth -t"))]
    assert calls[:3] == ["nvidia-smi -lgc 2619", "nvbandwidth -t host_to_device_memcpy_ce -i 10", "nvidia-smi -rgc"]


def test_a_clock_that_cannot_be_held_judges_nothing(h100: Healthy) -> None:
    h100.fake("nvidia-smi", "if [[ $1 == -lgc ]]; then echo 'Insufficient Permissions'; exit 4; fi")
    found = rows(h100, "gpu_copy_to_device", "ib_write")
    assert found["gpu_copy_to_device"]["verdict"] == found["ib_write"]["verdict"] == "not_measured"
    assert "cannot be held at 2619 MHz" in found["gpu_copy_to_device"]["detail"]
    assert [call for call in h100.calls() if call.startswith(("nvbandwidth", "ib_write_bw -s"))] == []


@pytest.mark.parametrize(
    ("dcgmi", "verdict"),
    [
        (f"echo '{DIAGNOSTIC.format(verdict='Pass')}'", "pass"),
        (f"echo '{DIAGNOSTIC.format(verdict='Fail')}'; exit 226", "fail"),
        ("echo 'requested test \"nvbandwidth\" was not found'; exit 198", "not_measured"),
    ],
)
def test_without_nvbandwidth_dcgm_measures_under_another_name(h100: Healthy, dcgmi: str, verdict: str) -> None:
    h100.remove("nvbandwidth")
    h100.fake("dcgmi", dcgmi)
    found = rows(h100, "gpu_copy_to_device", "gpu_copy_peer")
    assert found["gpu_copy_peer"]["verdict"] == "not_measured"
    assert (
        "nvbandwidth is not on this image, and docker is not installed; see gpu_copy_dcgm"
        in (found["gpu_copy_peer"]["detail"])
    )
    assert found["gpu_copy_dcgm"]["verdict"] == verdict
    asked = [call for call in h100.calls("dcgmi") if "nvbandwidth" in call]
    assert len(asked) == (2 if verdict == "fail" else 1), "once for all copies; a failure is tried again"


def test_the_container_has_an_nvbandwidth(h100: Healthy) -> None:
    """The x86 images have none of their own."""
    h100.remove("nvbandwidth")
    inside = f"cat <<'END'\n{MATRIX.replace('VALUE', '47.9')}END\n"
    h100.write("bin-container", inside)
    docker = DOCKER.replace(
        'program="${1##*/}"', f'if [[ "$1" == */nvbandwidth ]]; then {inside} exit 0; fi\nprogram="${{1##*/}}"'
    )
    h100.fake("docker", docker)
    row = rows(h100, "gpu_copy_to_device")["gpu_copy_to_device"]
    assert (row["verdict"], row["value"]) == ("fail", "47.9")


# ---------------------------------------------------------------- NVIDIA's diagnostics


def answer(*tests: tuple[str, str, int | None]) -> str:
    """JSON of DCGM 4: name, status, severity of the error of GPU 5."""
    shown = []
    for name, status, severity in tests:
        result = {"entity_group": "GPU", "entity_id": 5, "status": status}
        if severity:
            error = {"error_category": 1, "error_id": 3, "error_severity": severity, "warning": "GPU is bad"}
            result["warnings"] = [error]
        other = {"entity_group": "GPU", "entity_id": 0, "status": "Skip" if status == "Skip" else "Pass"}
        shown.append({"name": name, "results": [other, result], "test_summary": {"status": status}})
    content = {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": shown}]}}
    return json.dumps(content, indent=3)


READ = """
cf_log() { :; }
. "$1/tools.sh"; . "$1/checks-dcgm.sh"
while IFS= read -r -d "" OUTPUT; do
    read_diagnosis
    printf '%s|' "${DCGM_PASSED[*]}" "${DCGM_SKIPPED[*]}" "${DCGM_FAILED[*]}" "${DCGM_CURE}"
    printf '%s\\n' "${DCGM_WORDS}"
done
"""
READINGS: list[tuple[list[tuple[str, str, int | None]], str]] = [
    ([("software", "Pass", None), ("memory", "Pass", None)], "software memory||||"),
    ([("software", "Pass", None), ("memory", "Skip", None)], "software|memory|||"),
    ([("software", "Skip", None)], "|software|||"),
    ([("software", "Warn", 4)], "software||||"),
    ([("software", "Pass", None), ("memory", "Fail", 2)], "software||memory|service|memory: GPU 5: GPU is bad"),
    ([("memory", "Fail", 4)], "||memory|reboot|memory: GPU 5: GPU is bad"),
    ([("memory", "Fail", 5)], "||memory|fail|memory: GPU 5: GPU is bad"),
    ([("memory", "Fail", 6), ("pcie", "Pass", None)], "pcie||memory|reset|memory: GPU 5: GPU is bad"),
    ([("memory", "Fail", 6), ("pcie", "Fail", 2)], "||memory pcie|service|memory: GPU 5: GPU is bad"),
    ([("memory", "Fail", 1)], "||memory|warn|memory: GPU 5: GPU is bad"),
    ([("memory", "Fail", None)], "||memory||memory"),
]


def test_what_dcgm_4_says() -> None:
    """The severity of an error decides what the node needs; a test that was skipped has not passed."""
    texts = "".join(f"{answer(*tests)}\0" for tests, _ in READINGS)
    run = subprocess.run(
        ["bash", "-c", READ, "read", str(_FILES)], input=texts, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [wanted for _, wanted in READINGS]


@pytest.mark.parametrize(
    ("code", "tests", "verdict"),
    [
        (0, [("software", "Pass", None)], "pass"),
        (0, [("software", "Pass", None), ("memory", "Skip", None)], "not_measured"),
        (0, [("software", "Warn", 4)], "warn"),
        (205, [("memory", "Fail", 2)], "fail"),
        (226, [("memory", "Fail", 1)], "warn"),
    ],
)
def test_a_diagnosis_is_judged(h100: Healthy, code: int, tests: list[Any], verdict: str) -> None:
    h100.write("answer.json", answer(*tests))
    h100.fake("dcgmi", f"cat {h100.root}/answer.json; exit {code}")
    assert rows(h100, "gpu_diagnostic")["gpu_diagnostic"]["verdict"] == verdict


def test_what_dcgm_3_says(h100: Healthy) -> None:
    """No entities, no summary, no severity, and exit code 1."""
    failed = ('{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [{"name": "Denylist", '
              '"results": [{"status": "PASS"}]}, {"name": "PCIe", "results": [{"gpu_id": "3", "status": "FAIL", '
              '"warnings": [{"error_id": 1, "warning": "too slow"}]}]}]}]}}')  # fmt: skip
    h100.fake("dcgmi", f"echo '{failed}'; exit 1")
    row = rows(h100, "gpu_diagnostic")["gpu_diagnostic"]
    assert (row["verdict"], row["detail"]) == ("fail", "dcgmi: PCIe: GPU 3: too slow")


def test_a_launch_that_fails_measured_nothing(h100: Healthy) -> None:
    h100.fake("dcgmi", """echo '{"DCGM Diagnostic": {"runtime_error": "Detected 2 GPUs that are busy"}}'; exit 215""")
    row = rows(h100, "gpu_diagnostic")["gpu_diagnostic"]
    assert (row["verdict"], row["detail"]) == ("not_measured", "dcgmi: Detected 2 GPUs that are busy")


def test_a_level_that_does_not_fit_into_the_run_is_not_begun(h100: Healthy) -> None:
    conf = h100.root / "etc/cycleforge/nhc/deep.conf"
    conf.write_text(conf.read_text().replace("gpu_diagnostic level=1", "gpu_diagnostic level=3"))
    row = rows(h100, "gpu_diagnostic")["gpu_diagnostic"]
    assert row["verdict"] == "not_measured"
    assert row["detail"].startswith("level 3 takes 1200 s, the run has 300 s")
    assert h100.calls("dcgmi diag -r 3") == []


# ---------------------------------------------------------------- the topology file

OTHER = '<system version="1">\n  <cpu numaid="3"/>\n</system>\n'


def topology(node: Healthy) -> tuple[str, str]:
    node.only("nccl_topology")
    node.quick()
    (row,) = [row for row in node.result("quick")["checks"] if row["check"] == "nccl_topology"]
    return str(row["verdict"]), str(row["detail"])


def test_the_file_of_the_size_is_there_and_named(h100: Healthy) -> None:
    assert topology(h100) == ("pass", "/opt/microsoft/ndv5/topo.xml")


def test_a_file_that_is_not_there_is_ignored_by_nccl(h100: Healthy) -> None:
    (h100.root / "opt/microsoft/ndv5/topo.xml").unlink()
    verdict, detail = topology(h100)
    assert verdict == "warn"
    assert detail == "/opt/microsoft/ndv5/topo.xml, named by /etc/nccl.conf, is not there: NCCL guesses the topology"


def test_a_file_that_nccl_cannot_parse_ends_every_job(h100: Healthy) -> None:
    h100.write("opt/microsoft/ndv5/topo.xml", "")
    assert topology(h100)[0] == "fail"


def test_the_file_of_another_size_is_wrong(h100: Healthy) -> None:
    h100.write("opt/microsoft/ndv4/topo.xml", OTHER)
    h100.write("etc/nccl.conf", "NCCL_TOPO_FILE=/opt/microsoft/ndv4/topo.xml\n")
    assert topology(h100) == (
        "fail",
        "/etc/nccl.conf names /opt/microsoft/ndv4/topo.xml, this VM size has /opt/microsoft/ndv5-topo.xml",
    )


def test_what_jobs_get_is_looked_at_too(h100: Healthy) -> None:
    h100.write("opt/other.xml", OTHER)
    h100.write("etc/cycleforge/nccl.env", "NCCL_TOPO_FILE=/opt/other.xml\n")
    assert topology(h100)[0] == "fail"
    (h100.root / "opt/microsoft/ndv5-topo.xml").unlink()
    assert topology(h100)[0] == "warn", "a site's own file, and none to compare it with"


def test_a_copy_of_a_site_is_as_good(h100: Healthy) -> None:
    h100.write("opt/site.xml", h100.read("opt/microsoft/ndv5-topo.xml"))
    h100.write("etc/nccl.conf", "NCCL_TOPO_FILE=/opt/site.xml\n")
    assert topology(h100) == ("pass", "/opt/site.xml")


def test_no_configuration_is_a_warning(h100: Healthy) -> None:
    (h100.root / "etc/nccl.conf").unlink()
    assert topology(h100) == (
        "warn", "/etc/nccl.conf does not name /opt/microsoft/ndv5-topo.xml: NCCL guesses the topology",
    )  # fmt: skip
    (h100.root / "opt/microsoft/ndv5-topo.xml").unlink()
    assert topology(h100)[0] == "warn"
