"""The deep checks of a boot begin when what the image starts is there, and slurmd after them, on real systemd."""

from __future__ import annotations

from generator.projects.content import shipped_project
from tests.bed.machines.booted import booted_machine
from tests.bed.machines.overlay import Machine, overlay_machine, saved
from tests.bed.machines.roots import node_root

PROJECT = "slurm_nhc"
TARGET = "/opt/cycleforge/slurm_nhc"
UNITS = "/etc/systemd/system"
DEEP = "cycleforge-health-deep.service"
STARTED = "nvidia-fabricmanager sku-customizations late"
LINE = f"* || cycleforge boot_services units='{STARTED}' registration=node within_s=60\n"
# As the image has it: its own unit pulls the fabric manager in, which the last shutdown has disabled.
# Source: Azure/azhpc-images components/setup_sku_customizations.sh
SKU = "[Unit]\nAfter=nvidia-fabricmanager.service\nWants=nvidia-fabricmanager.service\n"
STEP = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'sleep {seconds}; echo {name} >>/order'\n"
WANTED = "[Install]\nWantedBy=multi-user.target\n"
SMI = """#!/bin/sh
# The second look finds the GPUs registered: fabric.state goes from "In Progress" to "Completed".
if mkdir /asked 2>/dev/null; then echo "In Progress"; exit 0; fi
echo joined >>/order
echo Completed
"""


def _step(machine: Machine, name: str, unit: str = "", seconds: float = 0.3) -> None:
    machine.write(f"{UNITS}/{name}.service", unit + STEP.format(name=name, seconds=seconds) + WANTED)


def _prepare(machine: Machine) -> None:
    files = {path.name: file.content.decode() for path, file in shipped_project(PROJECT)[1].items()
             if path.name in ("settle.sh", "cycleforge.sh", DEEP, "slurmd-slurm_nhc.conf")}  # fmt: skip
    for name in ("settle.sh", "cycleforge.sh"):
        machine.write(f"{TARGET}/{name}", files[name], 0o755)
    machine.write(f"{TARGET}/health.sh", 'echo "$*" >>/order\n', 0o755)
    machine.write("/etc/cycleforge/nhc/deep.conf", LINE)
    machine.write(f"{UNITS}/{DEEP}", files[DEEP])
    machine.write(f"{UNITS}/slurmd.service.d/20.conf", files["slurmd-slurm_nhc.conf"])
    machine.write("/usr/bin/nvidia-smi", SMI, 0o755)
    _step(machine, "nvidia-fabricmanager")
    _step(machine, "sku-customizations", SKU)
    _step(machine, "slurmd", seconds=0)
    _step(machine, "late", seconds=1)
    machine.ok(f"systemctl --no-reload enable sku-customizations slurmd {DEEP}")
    assert machine.run("systemctl is-enabled nvidia-fabricmanager").output.strip() == "disabled"
    machine.ok("rm -rf /order /asked")


def test_deep_checks_come_after_the_image_and_before_slurmd() -> None:
    root = node_root()
    with overlay_machine(root) as first:
        _prepare(first)
        with saved(first) as layer, booted_machine(root, layer) as machine:
            order = machine.read("/order").split("\n")[:-1]
            assert order == ["nvidia-fabricmanager", "sku-customizations", "joined", "deep boot", "slurmd"]
            # A unit of which ours knows nothing, started by somebody else: no order of systemd's helps.
            machine.ok(f"rm /order; systemctl start --no-block late; systemctl restart {DEEP}")
            assert machine.read("/order").split("\n")[0] == "late"
            said = machine.ok(f"journalctl --sync; journalctl --no-pager -o cat -u {DEEP}")
            assert "deep checks wait for late.service" in said
