"""misc_ndv4 beside the disks: GPU settings, slurmd's limits, NFS slots, NCCL files."""

from __future__ import annotations

import pytest

from tests.projects.conftest import MakeNode
from tests.projects.node import A100, H100, Node

OTHERS = ("20-gpu.sh", "30-limits.sh", "40-nfs.sh", "50-nccl.sh", "60-pmix.sh")
# index, maximum and current memory clock, maximum and current graphics clock of an A100 at its defaults
SLOW = "0, 1215, 1215, 1410, 1095\\n1, 1215, 1215, 1410, 1410\\n"


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("misc_ndv4")
    made.vm_size(A100)
    made.write("dev/nvidia-uvm", "")
    made.write("sys/class/net/eth0/operstate", "up\n")
    return made


def smi(node: Node, clocks: str = SLOW, ac: str = "true", pm: str = "true", lgc: str = "true") -> None:
    """A driver with two GPUs; the first has persistence mode off until `-pm` succeeds."""
    node.fake(
        "nvidia-smi",
        f"""case "$*" in
    *persistence_mode*) printf '0, %s\\n1, Enabled\\n' "$(cat "$FAKE_STATE/mode" 2>/dev/null || echo Disabled)" ;;
    *clocks.max*) printf '{clocks}' ;;
    *" -pm "*) {pm} && echo Enabled >"$FAKE_STATE/mode" ;;
    *" -ac "*) {ac} ;;
    *" -lgc "*) {lgc} ;;
esac""",
    )


def unit_log(node: Node) -> str:
    return (node.state / "units.log").read_text()


def test_persistence_and_maximum_clocks_are_set_where_they_differ(node: Node) -> None:
    smi(node)
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi -i") == ["nvidia-smi -i 0 -pm 1", "nvidia-smi -i 0 -ac 1215,1410"]
    assert "persistence mode: on for 2 GPUs, 1 switched" in unit_log(node)
    assert "maximum: 1 set, 1 were set, 0 do not support it, 0 refused" in unit_log(node)


def test_defect_7_8_a_mode_that_stays_off_is_seen(node: Node) -> None:
    """The exit code of a query said nothing about the switch in the references."""
    smi(node, pm="false")
    node.ok("20-gpu.sh")
    assert "persistence mode stays off for GPU 0" in unit_log(node)


@pytest.mark.parametrize(
    "clocks", ["0, [N/A], [N/A], [N/A], [N/A]\\n", "0, 1215, [Not Supported], 1410, [Not Supported]\\n", ""]
)
def test_gpus_without_application_clocks_are_no_failure(node: Node, clocks: str) -> None:
    smi(node, clocks=clocks)
    node.ok("20-gpu.sh")
    assert not [call for call in node.calls("nvidia-smi") if " -ac " in call]
    assert "refused by" not in unit_log(node)


@pytest.mark.parametrize(
    ("ac", "words"),
    [("exit 4", "application clocks were refused by GPU 0 1"), ("exit 3", "2 do not support it, 0 refused")],
)
def test_defect_2_2_a_gpu_that_refuses_does_not_stop_the_others(node: Node, ac: str, words: str) -> None:
    smi(node, clocks="0, 1215, 1215, 1410, 1095\\n1, 1215, 1215, 1410, 1095\\n", ac=ac)
    node.ok("20-gpu.sh")
    assert len([call for call in node.calls("nvidia-smi") if " -ac " in call]) == 2
    assert words in unit_log(node)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 2", "nvidia-smi ends with exit code 2"),
        ("echo 'fallen off the bus'; exit 15", "nvidia-smi ends with exit code 15: fallen off the bus"),
        ("exit 124", "nvidia-smi does not answer"),
        ("sleep 20", "nvidia-smi does not answer"),
        ("exit 0", "nvidia-smi lists no GPU"),
        ("echo '<garbage>'", "nvidia-smi lists no GPU, it says '<garbage>'"),
    ],
)
def test_a_driver_that_fails_is_reported_and_left_to_the_health_checks(node: Node, body: str, words: str) -> None:
    node.fake("nvidia-smi", body)
    node.ok("20-gpu.sh", CYCLEFORGE_CALL_S="1")
    assert words in unit_log(node)
    assert len(node.calls("nvidia-smi")) == 1, "what does not answer is not asked again"


def test_defect_2_2_a_driver_that_is_loaded_again_is_set_again(node: Node) -> None:
    smi(node)
    node.ok("20-gpu.sh")
    rule = node.read("etc/udev/rules.d/90-cycleforge-gpu.rules")
    assert 'KERNEL=="nvidia"' in rule
    assert "try-restart cycleforge-gpu.service" in rule


def test_a_missing_driver_on_a_gpu_size_is_reported(node: Node) -> None:
    node.ok("20-gpu.sh")
    assert "nvidia-smi is missing on a VM size with 8 GPUs" in unit_log(node)


def test_a_node_without_gpus_has_nothing_to_do(node: Node) -> None:
    node.vm_size("Standard_D4as_v5")
    node.ok("20-gpu.sh")
    assert "no NVIDIA driver, nothing to do" in unit_log(node)


def test_amd_gpus_are_left_to_their_driver(node: Node) -> None:
    node.vm_size("Standard_ND96isr_MI300X_v5")
    smi(node)
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi") == []


def test_the_missing_device_file_is_created(node: Node) -> None:
    smi(node)
    (node.root / "dev/nvidia-uvm").unlink()
    node.fake("nvidia-modprobe", "exit 0")
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-modprobe") == ["nvidia-modprobe -u -c=0"]


@pytest.mark.parametrize(
    ("policy", "calls"),
    [("default", []), ("lock:1400", ["nvidia-smi -i 0 -lgc 1400,1400", "nvidia-smi -i 1 -lgc 1400,1400"])],
)
def test_clock_policies(node: Node, policy: str, calls: list[str]) -> None:
    smi(node)
    node.attribute("cycleforge.gpu.clocks", policy)
    node.ok("20-gpu.sh")
    assert [call for call in node.calls("nvidia-smi") if "-lgc" in call or " -ac " in call] == calls


def test_a_policy_that_changes_takes_the_former_one_back(node: Node) -> None:
    smi(node)
    node.attribute("cycleforge.gpu.clocks", "lock:1400")
    node.ok("20-gpu.sh")
    node.attribute("cycleforge.gpu.clocks", "default")
    node.ok("20-gpu.sh")
    assert "nvidia-smi -rgc" in node.calls()


@pytest.mark.parametrize("policy", ["fast", "lock:", "lock:99999", "lock:1400;reboot"])
def test_unknown_clock_policies_are_refused(node: Node, policy: str) -> None:
    node.attribute("cycleforge.gpu.clocks", policy)
    assert "expected max, default or lock:<MHz>" in node.fails("20-gpu.sh")


def test_slurmd_waits_for_the_units_and_is_not_restarted(node: Node) -> None:
    node.ok("30-limits.sh")
    text = node.read("etc/systemd/system/slurmd.service.d/20-cycleforge-misc_ndv4.conf")
    assert "After=cycleforge-nvme.service cycleforge-gpu.service" in text
    assert "Requires" not in text
    assert "LimitMEMLOCK=infinity" in text
    assert node.calls("systemctl") == ["systemctl daemon-reload"]


def test_nfs_slots_now_and_at_every_boot(node: Node) -> None:
    running = node.write("proc/sys/sunrpc/tcp_max_slot_table_entries", "65536\n")
    assert "running value was 65536" in node.ok("40-nfs.sh")
    assert running.read_text() == "128\n"
    assert "options sunrpc tcp_max_slot_table_entries=128" in node.read("etc/modprobe.d/90-cycleforge-sunrpc.conf")


def test_nfs_slots_before_the_module_is_loaded(node: Node) -> None:
    assert "module not loaded" in node.ok("40-nfs.sh")
    assert not (node.root / "proc").exists()


def test_nccl_files_of_an_a100(node: Node) -> None:
    node.write("opt/microsoft/ndv4-topo.xml", "<system/>")
    (node.root / "etc/enroot").mkdir()
    (node.root / "usr/local/nccl-rdma-sharp-plugins/lib").mkdir(parents=True)
    node.ok("50-nccl.sh")
    variables = dict(line.split("=", 1) for line in node.read("etc/cycleforge/nccl.env").splitlines() if "=" in line)
    assert variables == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_IGNORE_CPU_AFFINITY": "1",
        "NCCL_SOCKET_IFNAME": "eth0", "NCCL_TOPO_FILE": "/opt/microsoft/ndv4-topo.xml",
    }  # fmt: skip
    assert node.read("etc/enroot/environ.d/50-cycleforge-nccl.env").splitlines() == [
        f"{k}={v}" for k, v in sorted(variables.items())
    ]
    assert node.read("etc/enroot/mounts.d/50-cycleforge-nccl.fstab").startswith("/opt/microsoft /opt/microsoft none ")
    assert "NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml" in node.read("etc/nccl.conf")
    shown = node.command(
        "-c",
        '. "$CYCLEFORGE_ROOT/etc/cycleforge/nccl.sh"; echo "$NCCL_TOPO_FILE $LD_LIBRARY_PATH"',
        LD_LIBRARY_PATH="/a:/b",
    )
    assert shown.stdout == "/opt/microsoft/ndv4-topo.xml /usr/local/nccl-rdma-sharp-plugins/lib:/a:/b\n"


def test_the_other_name_of_the_topology_file_is_found(node: Node) -> None:
    node.vm_size(H100)
    node.write("opt/microsoft/ndv5/topo.xml", "<system/>")
    node.ok("50-nccl.sh")
    assert "NCCL_TOPO_FILE=/opt/microsoft/ndv5/topo.xml" in node.read("etc/cycleforge/nccl.env")


def test_a_missing_topology_file_is_reported_and_not_named_to_nccl(node: Node) -> None:
    output = node.ok("50-nccl.sh")
    assert "the image has no /opt/microsoft/ndv4-topo.xml" in output
    assert "NCCL_TOPO_FILE" not in node.read("etc/cycleforge/nccl.env")


def test_variables_of_one_benchmark_do_not_reach_every_job(node: Node) -> None:
    for size in (A100, H100):
        node.vm_size(size)
        node.ok("50-nccl.sh")
        assert not [
            word
            for word in ("UCX_", "OMPI_", "SHARP_", "CHANNELS", "COLLNET")
            if word in node.read("etc/cycleforge/nccl.env")
        ]


def test_the_nccl_conf_of_the_image_stays(node: Node) -> None:
    node.write("etc/nccl.conf", "NCCL_IB_PCI_RELAXED_ORDERING=1\n")
    assert "nccl.conf: the image's own stays" in node.ok("50-nccl.sh")
    assert node.read("etc/nccl.conf") == "NCCL_IB_PCI_RELAXED_ORDERING=1\n"


@pytest.mark.parametrize("size", ["Standard_D4as_v5", "Standard_Unknown_v9"])
def test_sizes_without_nccl_figures_get_nothing_and_lose_what_another_size_left(node: Node, size: str) -> None:
    (node.root / "etc/enroot").mkdir()
    before = node.content()
    node.ok("50-nccl.sh")
    assert node.content() != before
    node.vm_size(size)
    assert "no NCCL variables" in node.ok("50-nccl.sh")
    assert node.content() == before


@pytest.mark.parametrize("script", OTHERS)
def test_a_second_run_changes_nothing(node: Node, script: str) -> None:
    smi(node)
    (node.root / "etc/enroot").mkdir()
    node.ok(script)
    before = node.files()
    node.forget()
    node.ok(script)
    assert node.files() == before
    assert not node.calls("systemctl restart")


# ---------------------------------------------------------------- PMIx

PLUGIN = "usr/lib64/slurm/mpi_pmix_v4.so"
LIBRARY = "opt/pmix/4.2.9/lib/libpmix.so"


def with_plugin(node: Node) -> None:
    """Slurm's plug-in as Microsoft's packages build it: it names its folder."""
    node.write(PLUGIN, "\x7fELF\n/opt/pmix/4.2.9/lib\nlibpmix.so\n")


def test_pmix_of_the_image_is_used_as_it_is(node: Node) -> None:
    with_plugin(node)
    node.write(LIBRARY, "")
    for tool in ("apt-get", "dnf"):
        node.fake(tool, "exit 1")
    assert "PMIx: PMIx 4.2.9 (/opt/pmix/4.2.9/lib/libpmix.so), in the image" in node.ok("60-pmix.sh")
    assert node.calls("apt-get") == node.calls("dnf") == []


@pytest.mark.parametrize(("name", "version", "tool"), [("ubuntu", "22.04", "apt-get"), ("almalinux", "9.4", "dnf")])
def test_a_missing_pmix_comes_as_a_package(node: Node, name: str, version: str, tool: str) -> None:
    node.os(name, version)
    with_plugin(node)
    node.fake(tool, f'mkdir -p "$CYCLEFORGE_ROOT/{LIBRARY.rpartition("/")[0]}"; : >"$CYCLEFORGE_ROOT/{LIBRARY}"')
    assert "PMIx 4.2.9 (/opt/pmix/4.2.9/lib/libpmix.so), installed" in node.ok("60-pmix.sh")
    (call,) = node.calls(tool)
    assert call.endswith(" pmix")


@pytest.mark.parametrize("os", [("ubuntu", "24.04"), ("almalinux", "8.10"), ("alpine", "3.20")])
def test_without_a_package_the_node_works_and_says_what_will_not(node: Node, os: tuple[str, str]) -> None:
    node.os(*os)
    with_plugin(node)
    for tool in ("apt-get", "dnf"):
        node.fake(tool, "exit 100")
    output = node.ok("60-pmix.sh")
    assert "'srun --mpi=pmix' will fail here" in output
    assert "do:" in output
    assert "PMIx: missing" in output


def test_a_package_that_brings_nothing_is_not_taken_for_pmix(node: Node) -> None:
    with_plugin(node)
    node.fake("apt-get", "exit 0")
    assert "did not bring it" in node.ok("60-pmix.sh")


def test_a_slurm_without_the_plugin_is_reported(node: Node) -> None:
    node.fake("srun", "exit 0")
    assert "this Slurm has no PMIx plug-in" in node.ok("60-pmix.sh")


def test_defect_2_3_nothing_is_compiled_for_pmix(node: Node) -> None:
    with_plugin(node)
    for tool in ("make", "gcc", "configure", "apt-get"):
        node.fake(tool, "exit 1")
    node.ok("60-pmix.sh")
    assert [call for tool in ("make", "gcc", "configure") for call in node.calls(tool)] == []


def test_a_second_look_for_pmix_changes_nothing(node: Node) -> None:
    with_plugin(node)
    node.write(LIBRARY, "")
    node.ok("60-pmix.sh")
    before = node.files()
    node.ok("60-pmix.sh")
    assert node.files() == before


def test_an_interface_that_the_node_lacks_is_not_named_to_nccl(node: Node) -> None:
    """NCCL ends a job whose NCCL_SOCKET_IFNAME does not exist."""
    (node.root / "sys/class/net/eth0/operstate").unlink()
    (node.root / "sys/class/net/eth0").rmdir()
    assert "no interface eth0" in node.ok("50-nccl.sh")
    assert "NCCL_SOCKET_IFNAME" not in node.read("etc/cycleforge/nccl.env")
