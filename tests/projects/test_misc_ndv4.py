"""misc_ndv4 beside the disks: GPU settings, slurmd's limits, NFS slots; NCCL and PMIx have files of their own.

`defect` in a test's name marks a row of the table of defects of the older projects.
"""

from __future__ import annotations

import json
import re

import pytest

from generator import catalog
from tests.bed.scripts.node import A100, H100, HANGS, Node
from tests.projects.conftest import NDV4_SCRIPTS
from tests.projects.pmix import plugin, repository
from tests.size_attributes import size_attributes

MI300X = "Standard_ND96isr_MI300X_v5"
# index, maximum and current memory clock, maximum and current graphics clock of an A100 at its defaults
SLOW = "0, 1215, 1215, 1410, 1095\\n1, 1215, 1215, 1410, 1410\\n"
BOTH_SLOW = "0, 1215, 1215, 1410, 1095\\n1, 1215, 1215, 1410, 1095\\n"
OFF_ON = "0, Disabled\\n1, Enabled\\n"


@pytest.fixture
def node(gpu_node: Node) -> Node:
    return gpu_node


def smi(node: Node, clocks: str = SLOW, persistence: str = OFF_ON, ac: str = "true", pm: str = "") -> None:
    """`pm` and `ac` are what the fake does for each GPU; by default persistence mode is then on everywhere."""
    pm = pm or 'touch "$FAKE_STATE/pm"'
    node.fake(
        "nvidia-smi",
        f"""case "$*" in
    *persistence_mode*)
        if [[ -e "$FAKE_STATE/pm" ]]; then printf '0, Enabled\\n1, Enabled\\n'; else printf '{persistence}'; fi ;;
    *clocks.max*) printf '{clocks}' ;;
    *" -ac "*) {ac} ;;
    *" -pm "*) {pm} ;;
esac""",
        light=HANGS not in (ac, pm),
    )


def unit_log(node: Node) -> str:
    return (node.state / "units.log").read_text()


def rerun(node: Node, **extra: str) -> str:
    """The boot unit itself."""
    node.forget()
    result = node.command(str(node.root / "opt/cycleforge/misc_ndv4/gpu.sh"), **extra)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


# ---------------------------------------------------------------- persistence mode and clocks


def test_persistence_and_maximum_clocks_are_set_where_they_differ(node: Node) -> None:
    smi(node)
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi -i") == ["nvidia-smi -i 0 -pm 1", "nvidia-smi -i 0 -ac 1215,1410"]
    assert "persistence mode: on for 2 GPUs, 1 switched" in unit_log(node)
    assert "maximum: 1 set, 1 were set, 0 do not support it, 0 refused" in unit_log(node)


def test_the_persistence_daemon_is_preferred_where_the_image_has_it(node: Node) -> None:
    """The unit wants it, and it is what nvidia-smi asks; Ubuntu's own starts it with the mode off."""
    smi(node)
    (node.state / "active/nvidia-persistenced.service").write_text("active")
    node.ok("20-gpu.sh")
    service = node.read("etc/systemd/system/cycleforge-gpu.service")
    assert "Wants=nvidia-persistenced.service\nAfter=nvidia-persistenced.service" in service
    assert "on for 2 GPUs, 1 switched, by nvidia-persistenced" in unit_log(node)
    assert not [call for call in node.calls("systemctl") if "start nvidia" in call]


@pytest.mark.parametrize("mode", ["Disabled", "[Unknown Error]"])
def test_a_gpu_whose_persistence_mode_stays_off_is_named(node: Node, mode: str) -> None:
    smi(node, persistence=f"0, Disabled\\n1, {mode}\\n", pm="exit 9")
    node.ok("20-gpu.sh")
    named = "0 1" if mode == "Disabled" else "0"
    assert f"persistence mode stays off for GPU {named}" in unit_log(node)
    assert "nvidia-smi -i 0 -ac 1215,1410" in node.calls(), "the clocks are set all the same"


def test_persistence_can_be_left_to_others(node: Node) -> None:
    smi(node)
    node.attribute("cycleforge.gpu.persistence", "False")
    node.ok("20-gpu.sh")
    assert not [call for call in node.calls("nvidia-smi") if "-pm" in call]


@pytest.mark.parametrize("clocks", ["0, [N/A], [N/A], [N/A], [N/A]\\n", "0, 1215, [Not Supported], 1410, [N/A]\\n", ""])
def test_gpus_without_application_clocks_are_no_failure(node: Node, clocks: str) -> None:
    smi(node, clocks=clocks, persistence="0, Enabled\\n")
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi -i") == []
    assert "WARNING" not in unit_log(node).replace("WARNING: 1 GPUs answer, the VM size has 8", "")


def test_defect_2_2_drivers_without_application_clocks(node: Node) -> None:
    """Newer drivers give application clocks up and refuse the whole query."""
    node.vm_size(H100)
    node.fake(
        "nvidia-smi",
        """case "$*" in
    *persistence_mode*) for gpu in {0..7}; do echo "$gpu, Enabled"; done ;;
    *clocks.max*) echo 'Field "clocks.applications.memory" is not a valid field to query.'; exit 2 ;;
esac""",
    )
    node.ok("20-gpu.sh")
    assert "GPU clocks: this driver has no application clocks" in unit_log(node)
    assert "WARNING" not in unit_log(node)


@pytest.mark.parametrize(
    ("code", "words"), [(3, "2 do not support it, 0 refused"), (4, "0 do not support it, 2 refused")]
)
def test_defect_2_2_a_gpu_that_refuses_does_not_end_the_loop(node: Node, code: int, words: str) -> None:
    """Exit code 3 is nvidia-smi's "not available on this GPU"; every other one is a refusal and is named."""
    smi(node, clocks=BOTH_SLOW, ac=f"exit {code}")
    node.ok("20-gpu.sh")
    assert len([call for call in node.calls("nvidia-smi -i") if "-ac" in call]) == 2
    assert words in unit_log(node)
    assert ("refused by GPU 0 1" in unit_log(node)) == (code == 4)


def test_one_gpu_that_refuses_does_not_stop_the_other(node: Node) -> None:
    smi(node, clocks=BOTH_SLOW, ac='[[ "$2" != 0 ]] || exit 9')
    node.ok("20-gpu.sh")
    assert "application clocks were refused by GPU 0; the others are set" in unit_log(node)
    assert "maximum: 1 set" in unit_log(node)


def test_defect_2_2_a_reload_of_the_driver_sets_everything_again(node: Node) -> None:
    """Nothing applied the settings again. That udev acts on the rule: tests/vm."""
    smi(node)
    node.ok("20-gpu.sh")
    rule = node.read("etc/udev/rules.d/90-cycleforge-gpu.rules")
    assert 'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia"' in rule
    assert "--no-block try-restart cycleforge-gpu.service" in rule
    (node.state / "pm").unlink()
    rerun(node)
    assert node.calls("nvidia-smi -i") == ["nvidia-smi -i 0 -pm 1", "nvidia-smi -i 0 -ac 1215,1410"]


def test_defect_2_2_a_boot_unit_that_does_not_depend_on_the_disks(node: Node) -> None:
    """Clocks and persistence mode were set by the script that repaired the disks, after it."""
    smi(node)
    node.ok("20-gpu.sh")
    service = node.read("etc/systemd/system/cycleforge-gpu.service")
    assert "cycleforge-nvme" not in service
    assert "Before=slurmd.service" in service
    assert "WantedBy=multi-user.target" in service


@pytest.mark.parametrize(("policy", "calls"), [
    ("default", []), ("lock:1400", ["nvidia-smi -i 0 -lgc 1400,1400", "nvidia-smi -i 1 -lgc 1400,1400"]),
])  # fmt: skip
def test_clock_policies(node: Node, policy: str, calls: list[str]) -> None:
    smi(node, persistence="0, Enabled\\n1, Enabled\\n")
    node.attribute("cycleforge.gpu.clocks", policy)
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi -i") == calls


def test_a_lock_that_one_gpu_refuses_is_set_on_the_others(node: Node) -> None:
    node.fake(
        "nvidia-smi",
        "case \"$*\" in *persistence*) printf '0, Enabled\\n1, Enabled\\n' ;; '-i 0 -lgc'*) exit 1 ;; esac",
    )
    node.attribute("cycleforge.gpu.clocks", "lock:1400")
    node.ok("20-gpu.sh")
    assert "the clock of 1400 MHz was refused by GPU 0" in unit_log(node)
    assert "locked at 1400 MHz on 1 of 2 GPUs" in unit_log(node)


@pytest.mark.parametrize(
    ("former", "now", "undone"),
    [
        ("lock:1400", "max", "-rgc"), ("lock:1400", "default", "-rgc"), ("lock:1400", "lock:1200", "-rgc"),
        ("max", "default", "-rac"), ("max", "lock:1400", ""), ("default", "max", ""), ("max", "max", ""),
    ],
)  # fmt: skip
def test_a_former_policy_of_this_boot_is_undone(node: Node, former: str, now: str, undone: str) -> None:
    smi(node)
    for policy in (former, now):
        node.attribute("cycleforge.gpu.clocks", policy)
        node.forget()
        node.ok("20-gpu.sh")
    assert [call.split()[-1] for call in node.calls("nvidia-smi -r")] == ([undone] if undone else [])
    (node.root / "run/cycleforge/gpu.clocks").unlink()  # a reboot
    rerun(node)
    assert node.calls("nvidia-smi -r") == []


@pytest.mark.parametrize("policy", ["fast", "lock:", "lock:99999", "lock:1400;reboot"])
def test_unknown_clock_policies_are_refused(node: Node, policy: str) -> None:
    node.attribute("cycleforge.gpu.clocks", policy)
    assert "expected max, default or lock:<MHz>" in node.fails("20-gpu.sh")


# ---------------------------------------------------------------- drivers that are not well

BAD_DRIVER = {
    "no driver": ("echo 'NVIDIA-SMI has failed because it could not communicate'; exit 9", "ends with exit code 9"),
    "wrong argument": ("exit 2", "ends with exit code 2"),
    "hanging": (HANGS, "does not answer within 1 s"),
    "garbage": ("echo '%!?'", "lists no GPU, it says '%!?'"),
    "empty": ("exit 0", "lists no GPU, it says ''"),
}


@pytest.mark.parametrize("how", BAD_DRIVER)
def test_a_bad_driver_is_reported_and_left_to_the_health_checks(node: Node, how: str) -> None:
    """One call is enough to know: the boot does not wait again and again for a driver that hangs."""
    body, words = BAD_DRIVER[how]
    node.fake("systemctl", "exit 0", light=True)
    node.ok("20-gpu.sh")
    node.fake("nvidia-smi", body)
    output = rerun(node, CYCLEFORGE_CALL_S="1")
    assert words in output
    assert "nothing is set on this node" in output
    assert len(node.calls("nvidia-smi")) == 1


def test_a_driver_that_begins_to_hang_does_not_hold_the_boot(node: Node) -> None:
    node.fake("systemctl", "exit 0", light=True)
    node.ok("20-gpu.sh")
    smi(node, clocks=BOTH_SLOW, ac=HANGS, pm=HANGS)
    output = rerun(node, CYCLEFORGE_CALL_S="1")
    assert "persistence mode stays off for GPU 0" in output
    assert "application clocks were refused by GPU 0 1" in output


def test_a_missing_driver_on_a_gpu_size_is_reported(node: Node) -> None:
    node.ok("20-gpu.sh")
    assert "nvidia-smi is missing on a VM size with 8 GPUs" in unit_log(node)


def test_a_gpu_that_does_not_answer_is_reported(node: Node) -> None:
    smi(node)
    node.ok("20-gpu.sh")
    assert "2 GPUs answer, the VM size has 8" in unit_log(node)


def test_a_node_without_gpus_has_nothing_to_do(node: Node) -> None:
    node.vm_size("Standard_D4as_v5")
    node.ok("20-gpu.sh")
    assert "no NVIDIA driver, nothing to do" in unit_log(node)


def test_amd_gpus_are_left_to_their_driver(node: Node) -> None:
    node.vm_size(MI300X)
    smi(node)
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi") == []


def test_the_missing_device_file_is_created(node: Node) -> None:
    smi(node)
    (node.root / "dev/nvidia-uvm").unlink()
    node.fake("nvidia-modprobe", "exit 0")
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-modprobe") == ["nvidia-modprobe -u -c=0"]


@pytest.mark.parametrize("how", ["missing", "failing"])
def test_a_device_file_that_cannot_be_created_is_reported(node: Node, how: str) -> None:
    smi(node)
    (node.root / "dev/nvidia-uvm").unlink()
    if how == "failing":
        node.fake("nvidia-modprobe", "exit 1")
    node.ok("20-gpu.sh")
    assert "CUDA in containers will fail" in unit_log(node)


# ---------------------------------------------------------------- limits and NFS


def test_slurmd_waits_for_the_units_and_is_not_restarted(node: Node) -> None:
    node.ok("30-limits.sh")
    text = node.read("etc/systemd/system/slurmd.service.d/20-cycleforge-misc_ndv4.conf")
    assert "After=cycleforge-nvme.service cycleforge-gpu.service" in text
    assert "Requires" not in text
    assert "LimitMEMLOCK=infinity\nLimitNOFILE=1048576\n" in text
    assert node.calls("systemctl") == ["systemctl daemon-reload"]


def test_slurmd_has_the_open_files_of_the_definition(node: Node) -> None:
    node.attribute("cycleforge.limits.nofile", "65536")
    node.ok("30-limits.sh")
    assert "LimitNOFILE=65536\n" in node.read("etc/systemd/system/slurmd.service.d/20-cycleforge-misc_ndv4.conf")
    assert "* hard nofile 65536" in node.read("etc/security/limits.d/90-cycleforge.conf")


def test_memory_locking_is_written_only_where_the_image_lacks_it(node: Node) -> None:
    node.ok("30-limits.sh")
    assert "memlock unlimited" in node.read("etc/security/limits.d/90-cycleforge-memlock.conf")
    node.write("etc/security/limits.d/slurm-limits.conf", "* soft memlock unlimited\n* hard memlock unlimited\n")
    assert "memlock by slurm-limits.conf" in node.ok("30-limits.sh")
    assert not (node.root / "etc/security/limits.d/90-cycleforge-memlock.conf").exists()


def test_nfs_slots_now_and_at_every_boot(node: Node) -> None:
    running = node.write("proc/sys/sunrpc/tcp_max_slot_table_entries", "65536\n")
    assert "running value was 65536" in node.ok("40-nfs.sh")
    assert running.read_text() == "128\n"
    assert "options sunrpc tcp_max_slot_table_entries=128" in node.read("etc/modprobe.d/90-cycleforge-sunrpc.conf")


def test_nfs_slots_before_the_module_is_loaded(node: Node) -> None:
    assert "module not loaded" in node.ok("40-nfs.sh")
    assert not (node.root / "proc").exists()


# ---------------------------------------------------------------- all of it


@pytest.mark.parametrize("script", NDV4_SCRIPTS)
def test_a_second_run_changes_nothing(node: Node, script: str) -> None:
    smi(node)
    plugin(node)
    repository(node, "apt-get", "pmix")
    (node.root / "etc/enroot").mkdir()
    node.ok(script)
    before = node.files()
    node.forget()
    node.ok(script)
    assert node.files() == before
    assert not node.calls("systemctl restart")
    assert not node.calls("apt-get")


def test_a_gpu_unit_that_failed_since_is_tried_again(node: Node) -> None:
    smi(node)
    node.ok("20-gpu.sh")
    (node.state / "active/cycleforge-gpu.service").write_text("failed")
    node.forget()
    node.ok("20-gpu.sh")
    assert node.calls("nvidia-smi")


def gpu_sizes() -> list[str]:
    return [name for name in catalog.vm_size_names() if catalog.vm_size(name).gpu_count]


def told(size: str) -> str:
    """What these scripts are told about a size, without its name and the sources of its figures."""
    line = size_attributes(size)["cycleforge.vm_size.base"]
    return re.sub(r" \| from [^|]*", "", line.replace(size.lower(), ""))


def test_every_gpu_size_of_the_catalogue_has_what_the_scripts_need(node: Node) -> None:
    """One node, its size changed: each step takes its figures, and none of them fails. Of sizes that tell a node the
    same but for their names, the first; that scripts read every size: `test_vm_size.py`.
    """
    sizes = {told(size): size for size in reversed(gpu_sizes())}.values()
    assert len(sizes) > 10
    node.fake("systemctl", "exit 0", light=True)
    node.link("sync")
    shown = {}
    for size in sizes:
        node.vm_size(size)
        for script in ("10-nvme.sh", "20-gpu.sh", "50-nccl.sh"):
            output = node.ok(script)
            assert "has no figures" not in output
        gpu = dict(line.split("=", 1) for line in node.read("etc/cycleforge/gpu.conf").splitlines())
        nvme = dict(line.split("=", 1) for line in node.read("etc/cycleforge/nvme.conf").splitlines())
        hardware = catalog.vm_size(size)
        assert (gpu["expected_gpus"], gpu["vendor"]) == (str(hardware.gpu_count), hardware.gpu_vendor)
        assert nvme["expected_disks"] == str(hardware.nvme_count or 0)
        shown[size] = gpu["expected_gpus"], nvme["expected_disks"]
    assert json.dumps(shown[A100]) == '["8", "8"]'
