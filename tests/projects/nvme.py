"""Nodes with local NVMe disks: what is attached, a converge, the unit of a boot, shutdowns, what is right then."""

from __future__ import annotations

import json
from typing import Any

from tests.bed.scripts import blockdevices
from tests.bed.scripts.node import Node

TOOLS = ("lsblk", "blkid", "wipefs", "mdadm", "mkfs.xfs", "mount", "findmnt")
ROOT_DISK = {"kind": "disk", "model": "MSFT NVMe Accelerator v1.0", "signature": "gpt"}
ROOT_PART = {"kind": "part", "parents": ["nvme0n1"], "mounted": "/"}
SCRIPT = "opt/cycleforge/misc_ndv4/nvme.sh"


def disk(**fields: Any) -> dict[str, Any]:
    """A whole disk, blank but for these fields."""
    return {"kind": "disk", **fields}


def member(array: str = "aaaaaaaa:0:0:0", members: int = 2, **fields: Any) -> dict[str, Any]:
    """A member of an array of ours."""
    fields = {"signature": "linux_raid_member", "md": "any:cycleforge", "members": members, "array": array} | fields
    return disk(**fields)


def devices(node: Node) -> dict[str, dict[str, Any]]:
    """What the block layer has, by name."""
    return blockdevices.parse((node.state / "devices.json").read_text())


def put(node: Node, content: dict[str, dict[str, Any]]) -> None:
    """Let the block layer have this."""
    (node.state / "devices.json").write_text(json.dumps(content))
    blockdevices.publish(content, str(node.root))


def attach(node: Node, *disks: dict[str, Any], others: dict[str, dict[str, Any]] | None = None) -> None:
    """Attach disks, the first as nvme1n1, and other devices by name."""
    put(node, {f"nvme{place}n1": device for place, device in enumerate(disks, start=1)} | (others or {}))


def start(node: Node, **attributes: str) -> str:
    """Converge; what the script and the unit said."""
    for key, value in attributes.items():
        node.attribute(f"cycleforge.nvme.{key}", value)
    node.forget()
    (node.state / "units.log").unlink(missing_ok=True)
    output = node.ok("10-nvme.sh")
    log = node.state / "units.log"
    return output + (log.read_text() if log.exists() else "")


def unit(node: Node, **extra: str) -> tuple[int, str]:
    """Run the boot unit itself, as a reboot does."""
    node.forget()
    result = node.command("-c", f'echo $$ >"$FAKE_STATE/pid"; exec bash {node.root / SCRIPT}', **extra)
    return result.returncode, result.stdout + result.stderr


def prepare(node: Node, wait_s: int = 0, expected: int = 0) -> None:
    """Install everything without starting the unit."""
    node.attribute("cycleforge.nvme.wait_s", str(wait_s))
    node.attribute("cycleforge.nvme.disks", str(expected))
    node.fake("systemctl", "exit 0", light=True)
    node.ok("10-nvme.sh")


def shut_down(node: Node, *, deallocated: bool = False, name: str = "md126") -> None:
    """Mounts are gone; arrays are assembled by udev under a number of its choice, unless the disks are new."""
    (node.state / "mounts").unlink(missing_ok=True)
    now = {}
    for key, device in devices(node).items():
        device.pop("mounted", None)
        if device["kind"] == "disk":
            now[key] = disk() if deallocated else device
        elif not deallocated:
            now[name] = device
    put(node, now)


def reboot(node: Node, *, deallocated: bool = False) -> tuple[int, str]:
    """Shut down and run the boot unit: its exit code and output."""
    shut_down(node, deallocated=deallocated)
    return unit(node)


def good(node: Node, disks: int) -> None:
    """One array over so many disks, with its own complete file system, mounted with the right mode."""
    (array,) = [device for device in devices(node).values() if device["kind"] == "raid0"]
    assert len(array["parents"]) == disks
    identity = devices(node)[array["parents"][0]]["array"].replace(":", "")
    assert array["uuid"].replace("-", "") == identity, "the file system of a former array"
    assert array["complete"]
    assert node.mounts() == ["/nvme"]
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777
    assert node.read("var/lib/cycleforge/nvme.uuid") == array["uuid"] + "\n"
    assert "mounted=true\n" in node.read("var/lib/cycleforge/nvme.state")


def redeployed(node: Node) -> None:
    """Three disks, of which the last came back blank; udev holds the other two in an array that does not run."""
    attach(node, disk(), disk(), disk())
    start(node)
    shut_down(node)
    now = {name: device for name, device in devices(node).items() if name in ("nvme1n1", "nvme2n1")}
    array = {"kind": "raid0", "md": "cycleforge", "parents": ["nvme1n1", "nvme2n1"], "inactive": True}
    put(node, now | {"nvme3n1": disk(), "md127": array})
