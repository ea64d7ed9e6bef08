"""MIG slices of misc_ndv4: made at boot, the same after a second run and a reboot, and no slice without all others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.bed import fakes
from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

FAKE = Path(fakes.__file__).with_name("nvidia-smi-mig")
UNIT = "cycleforge-mig.service"
VM_SIZE, GPUS, PER_GPU = "Standard_NC48ads_A100_v4", 2, 7
DROP_IN = "etc/systemd/system/slurmd.service.d/cycleforge-mig.conf"


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("misc_ndv4")
    made.vm_size(VM_SIZE)
    made.attribute("cycleforge.mig.profile", "1g.10gb")
    made.attribute("cycleforge.mig.per_gpu", str(PER_GPU))
    made.write("etc/slurm/cgroup.conf", "ConstrainCores=yes\nConstrainRamSpace=yes\nConstrainDevices=yes\n")
    made.write("proc/sys/kernel/random/boot_id", "boot-1\n")
    made.fake("nvidia-smi", FAKE.read_text(), light=True)
    (made.state / "mig").mkdir()
    gpu(made, gpus=str(GPUS))
    return made


def gpu(node: Node, **state: str) -> None:
    """What the fake's header lists, with a point in place of `__`."""
    for name, value in state.items():
        (node.state / "mig" / name.replace("__", ".")).write_text(value + "\n")


def smi(node: Node, word: str) -> list[str]:
    file = node.state / "smi.log"
    return [line for line in file.read_text().splitlines() if word in line] if file.exists() else []


def boot(node: Node, number: int, *, mode_stays: bool) -> tuple[int, str]:
    """Reboot and run the unit: devices and slices are gone, and MIG mode too where the GPU does not keep it."""
    for folder in ("dev", "run", "proc/driver"):
        shutil.rmtree(node.root / folder, ignore_errors=True)
    for path in (node.state / "mig").glob("*.slices"):
        path.unlink()
    for path in (node.state / "mig").glob("*.current"):
        path.unlink()
    for path in (node.state / "mig").glob("*.pending"):
        if mode_stays:
            path.with_suffix(".current").write_text(path.read_text())
        else:
            path.unlink()
    node.write("proc/sys/kernel/random/boot_id", f"boot-{number}\n")
    (node.state / "smi.log").unlink(missing_ok=True)
    done = node.command(str(node.root / "opt/cycleforge/misc_ndv4/mig.sh"))
    return done.returncode, done.stdout + done.stderr


def slices(node: Node) -> list[str]:
    """Targets of the links in the order of their numbers; every number is there once."""
    folder = node.root / "dev/cycleforge"
    links = sorted(folder.iterdir(), key=lambda path: int(path.name.removeprefix("mig")))
    assert [path.name for path in links] == [f"mig{number}" for number in range(len(links))]
    return [str(path.readlink()) for path in links]


def may_start(node: Node) -> bool:
    """Whether slurmd's ExecStartPre lets it start."""
    return node.command(str(node.root / "opt/cycleforge/misc_ndv4/mig.sh"), "check").returncode == 0


def log(node: Node) -> str:
    return (node.state / "units.log").read_text()


def test_every_gpu_is_divided_and_each_slice_has_its_device_file(node: Node) -> None:
    node.ok("25-mig.sh")
    found = slices(node)
    assert len(found) == len(set(found)) == GPUS * PER_GPU
    # the guide's numbers: instance 7 of the first GPU, instance 13 of the second
    assert (found[0], found[-1]) == ("/dev/nvidia-caps/nvidia-cap67", "/dev/nvidia-caps/nvidia-cap256")
    assert smi(node, "-cgi") == [
        f"nvidia-smi mig -i {index} -cgi {','.join(['1g.10gb'] * PER_GPU)} -C" for index in range(GPUS)
    ]
    assert may_start(node)


def test_the_table_names_the_uuid_of_each_number(node: Node) -> None:
    node.ok("25-mig.sh")
    rows = [line.split("\t") for line in node.read("run/cycleforge/mig.tsv").splitlines()]
    assert [int(row[0]) for row in rows] == list(range(GPUS * PER_GPU))
    assert rows[8] == ["8", "MIG-18-aaaa", "1"]


def test_uuids_of_old_drivers_are_read(node: Node) -> None:
    gpu(node, uuid__old="")
    node.ok("25-mig.sh")
    assert "MIG-GPU-00000000-1111-2222-3333-444444444444/7/0" in node.read("run/cycleforge/mig.tsv")


def test_slurmd_waits_for_the_slices(node: Node) -> None:
    node.ok("25-mig.sh")
    drop_in = node.read(DROP_IN)
    assert f"Wants={UNIT}\nAfter={UNIT}\n" in drop_in
    assert "ExecStartPre=/bin/bash /opt/cycleforge/misc_ndv4/mig.sh check\n" in drop_in
    assert "Before=slurmd.service" in node.read(f"etc/systemd/system/{UNIT}")


def test_a_second_run_touches_no_gpu(node: Node) -> None:
    node.ok("25-mig.sh")
    before = slices(node)
    (node.state / "smi.log").unlink()
    assert node.command(str(node.root / "opt/cycleforge/misc_ndv4/mig.sh")).returncode == 0
    assert slices(node) == before
    assert [line for line in smi(node, "") if "-mig" in line or "-cgi" in line or "-dgi" in line] == []


@pytest.mark.parametrize("mode_stays", [True, False])
def test_a_reboot_makes_the_slices_again(node: Node, mode_stays: bool) -> None:
    node.ok("25-mig.sh")
    before = slices(node)
    code, said = boot(node, 2, mode_stays=mode_stays)
    assert code == 0, said
    assert slices(node) == before
    assert len(smi(node, "-mig 1")) == (0 if mode_stays else GPUS)


def test_other_slices_are_replaced(node: Node) -> None:
    gpu(node, **{"0__current": "Enabled", "0__pending": "Enabled", "0__slices": "3g.40gb 1"})
    node.ok("25-mig.sh")
    assert len(slices(node)) == GPUS * PER_GPU
    assert smi(node, "-dgi")[0] == "nvidia-smi mig -i 0 -dgi"


@pytest.mark.parametrize("code", ["0", "3", "19"])
def test_a_mode_that_stays_pending_reboots_the_node_once(node: Node, code: str) -> None:
    gpu(node, reset="never", pending__exit=code)
    node.fails("25-mig.sh")
    assert node.calls("systemctl --no-block reboot") == ["systemctl --no-block reboot"]
    assert "is pending until a reboot" in log(node)
    assert not may_start(node)
    # a second converge before the reboot does not ask again
    node.fails("25-mig.sh")
    assert len(node.calls("systemctl --no-block reboot")) == 1
    ended, said = boot(node, 2, mode_stays=True)
    assert ended == 0, said
    assert may_start(node)


def test_a_mode_that_is_pending_after_a_reboot_does_not_reboot_again(node: Node) -> None:
    gpu(node, reset="never")
    node.fails("25-mig.sh")
    node.forget()
    ended, said = boot(node, 2, mode_stays=False)
    assert ended != 0
    assert "still pending after a reboot" in said
    assert node.calls("systemctl --no-block reboot") == []
    assert not may_start(node)


def test_a_reset_spares_the_reboot_where_it_is_possible(node: Node) -> None:
    gpu(node, reset="able")
    node.ok("25-mig.sh")
    assert node.calls("systemctl --no-block reboot") == []
    assert len(slices(node)) == GPUS * PER_GPU


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"refuse": ""}, "cannot be switched on: Unable to enable MIG Mode: Insufficient Permissions"),
        ({"gpus": "1"}, "1 GPUs answer, the VM size has 2"),
        ({"0__current": "[N/A]", "0__pending": "[N/A]"}, "GPU 0 has no MIG mode"),
        ({"create__exit": "19"}, "Failed to create GPU instances: Insufficient Resources"),
        ({"no__files": ""}, "/dev/nvidia-caps/nvidia-cap67 is missing"),
        (
            {"1__current": "Enabled", "1__pending": "Enabled", "1__slices": "2g.20gb 3", "in__use": ""},
            "Failed to create GPU instances",
        ),
    ],
)
def test_without_every_slice_no_job_runs_there(node: Node, state: dict[str, str], said: str) -> None:
    gpu(node, **state)
    node.fails("25-mig.sh")
    assert said in log(node)
    assert not may_start(node)


def test_links_of_an_earlier_run_do_not_stand_for_slices(node: Node) -> None:
    node.ok("25-mig.sh")
    gpu(node, gpus="1")
    assert node.command(str(node.root / "opt/cycleforge/misc_ndv4/mig.sh")).returncode != 0
    assert not may_start(node)


def test_slices_that_others_could_open_are_not_made(node: Node) -> None:
    node.write("etc/slurm/cgroup.conf", "ConstrainDevices=no\n")
    node.fails("25-mig.sh")
    assert "cgroup.conf has no ConstrainDevices=yes" in log(node)
    assert smi(node, "") == []


def test_without_a_driver_no_job_runs_there(node: Node) -> None:
    node.remove("nvidia-smi")
    node.fails("25-mig.sh")
    assert not may_start(node)


@pytest.mark.parametrize("profile", ["1g", "1g.10gb,2g.20gb", "$(reboot)"])
def test_a_profile_of_another_form_is_refused(node: Node, profile: str) -> None:
    node.attribute("cycleforge.mig.profile", profile)
    assert "expected a profile such as 1g.10gb" in node.fails("25-mig.sh")


def test_a_node_of_another_vm_size_is_refused(node: Node) -> None:
    node.vm_size("Standard_NC24ads_A100_v4", described=VM_SIZE)
    assert "not the one that MIG was planned for" in node.fails("25-mig.sh")


def test_without_a_profile_nothing_is_installed_and_what_was_is_removed(node: Node) -> None:
    node.ok("25-mig.sh")
    (node.state / "attributes/cycleforge.mig.profile").unlink()
    node.ok("25-mig.sh")
    left = [path for path in node.files() if "mig" in path and path.startswith("etc/")]
    assert left == []


@pytest.mark.parametrize(
    ("numbers", "expected"), [("8", "MIG-18-aaaa"), ("0,9", "MIG-07-aaaa,MIG-19-aaaa"), ("5-7", 3), ("", "unset")]
)
def test_a_job_can_name_its_slices_by_uuid(node: Node, numbers: str, expected: str | int) -> None:
    node.ok("25-mig.sh")
    script = node.write("job.sh", node.read("etc/cycleforge/mig.sh").replace("/run/", f"{node.root}/run/"))
    done = node.command(
        "-euc", f'. {script}; echo "${{CUDA_VISIBLE_DEVICES:-unset}} ${{NVIDIA_VISIBLE_DEVICES:-unset}}"',
        SLURM_JOB_GPUS=numbers,
    )  # fmt: skip
    cuda, containers = done.stdout.split()
    assert cuda == containers
    assert (cuda.count("MIG-") if isinstance(expected, int) else cuda) == expected
