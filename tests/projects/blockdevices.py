"""A small block layer for the NVMe tests: lsblk, blkid, wipefs, mdadm, mkfs.xfs, mount and umount over one JSON file.

Run as a program by the fakes of `node.py`; the first argument is the name of the tool. Devices are entries of
`$FAKE_STATE/devices.json`: name → its kind, model, signature, label, members and so on.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE = Path(os.environ.get("FAKE_STATE", "."))
FILE = STATE / "devices.json"
Devices = dict[str, dict[str, Any]]


def name_of(device: str, devices: Devices) -> str:
    """`/dev/md/cycleforge` is a link to whatever number udev chose."""
    name = device.removeprefix("/dev/")
    if name.startswith("md/"):
        wanted = name.removeprefix("md/")
        arrays = [key for key, value in devices.items() if value.get("md") == wanted and value["kind"] != "disk"]
        name = arrays[0] if arrays else name
    return name


def lsblk(devices: Devices, arguments: list[str]) -> int:
    for name, device in devices.items():
        if device["kind"] == "disk":
            print(
                row(name, "disk", "", device.get("mounted", ""), device.get("model", "Microsoft NVMe Direct Disk v2"))
            )
        for parent in device.get("parents", []):
            print(row(name, device["kind"], parent, device.get("mounted", ""), ""))
    return 0


def row(name: str, kind: str, parent: str, mounted: str, model: str) -> str:
    return f'NAME="{name}" TYPE="{kind}" PKNAME="{parent}" MOUNTPOINT="{mounted}" MODEL="{model}"'


def blkid(devices: Devices, arguments: list[str]) -> int:
    device = devices[name_of(arguments[-1], devices)]
    if device.get("unreadable") or not device.get("signature"):
        return 2
    if device["signature"] == "ambivalent":
        return 8
    key = "PTTYPE" if device["signature"] in ("gpt", "dos") else "TYPE"
    print(f"DEVNAME={arguments[-1]}\n{key}={device['signature']}")
    for field in ("label", "uuid"):
        if device.get(field):
            print(f"{field.upper()}={device[field]}")
    return 0


def wipefs(devices: Devices, arguments: list[str]) -> int:
    assert not {"-a", "--all", "-f", "--force"} & set(arguments), "wipefs must only list"
    device = devices[name_of(arguments[-1], devices)]
    if device.get("unreadable"):
        return 1
    if device.get("signature"):
        print(device["signature"])
    return 0


def mdadm(devices: Devices, arguments: list[str]) -> int:
    disks = [name_of(argument, devices) for argument in arguments if argument.startswith("/dev/nvme")]
    action = arguments[0]
    if action == "--examine":
        device = devices[disks[0]]
        if device.get("signature") != "linux_raid_member":
            return 1
        print(f"MD_LEVEL={device.get('level', 'raid0')}\nMD_DEVICES={device['members']}\nMD_NAME={device['md']}")
        return 0
    if action == "--stop":
        devices.pop(name_of(arguments[1], devices))
        return 0
    if action == "--zero-superblock":
        for disk in disks:
            devices[disk] = {"kind": "disk"}
        return 0
    if action == "--create":
        assert "--run" in arguments
        for disk in disks:
            assert not devices[disk].get("signature"), f"{disk} is not empty"
            devices[disk] |= {"signature": "linux_raid_member", "md": "any:cycleforge", "members": len(disks)}
    elif len(disks) < devices[disks[0]]["members"]:
        return 1
    devices["md127"] = {"kind": "raid0", "md": "cycleforge", "parents": disks} | saved(devices, disks)
    return 0


def saved(devices: Devices, disks: list[str]) -> dict[str, Any]:
    """The file system on an assembled array is what its members hold."""
    found: dict[str, Any] = devices[disks[0]].get("content", {})
    return found


def mkfs(devices: Devices, arguments: list[str]) -> int:
    name = name_of(arguments[-1], devices)
    device = devices[name]
    assert not device.get("signature") or "-f" in arguments, f"{name} holds {device.get('signature')}"
    label = arguments[arguments.index("-L") + 1]
    fresh = {"signature": "xfs", "label": label, "uuid": f"uuid-{len(arguments)}-{name}", "complete": False}
    device |= fresh
    killed = STATE / "kill_mkfs"
    if killed.exists():
        killed.unlink()
        store(devices)
        os.kill(int((STATE / "pid").read_text()), 9)
        os._exit(1)
    device["complete"] = True
    for parent in device.get("parents", []):
        devices[parent]["content"] = {key: device[key] for key in ("signature", "label", "uuid", "complete")}
    return 0


def mount(devices: Devices, arguments: list[str]) -> int:
    source, target = arguments[-2:]
    if "--bind" not in arguments:
        device = devices[name_of(source, devices)]
        if device.get("signature") != "xfs" or not device.get("complete", True):
            return 32
        device["mounted"] = target.removeprefix(os.environ["CYCLEFORGE_ROOT"])
    with (STATE / "mounts").open("a") as stream:
        stream.write(target.removeprefix(os.environ["CYCLEFORGE_ROOT"]) + "\n")
    return 0


def store(devices: Devices) -> None:
    FILE.write_text(json.dumps(devices, indent=1))


def main() -> int:
    tool, *arguments = sys.argv[1:]
    devices: Devices = json.loads(FILE.read_text())
    tools = {"lsblk": lsblk, "blkid": blkid, "wipefs": wipefs, "mdadm": mdadm, "mkfs.xfs": mkfs, "mount": mount}
    code = tools[tool](devices, arguments)
    store(devices)
    return code


if __name__ == "__main__":
    sys.exit(main())
