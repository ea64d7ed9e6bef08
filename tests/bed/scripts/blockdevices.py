"""A small block layer for the NVMe tests: lsblk, blkid, wipefs, mdadm, mkfs.xfs and mount over one JSON file.

Run as a program by the fakes of `node.py`; the first argument is the name of the tool. Devices are entries of
`$FAKE_STATE/devices.json`: name → its kind, model, signature, label, members and so on. As on real disks, what an array
holds is on its first member and is seen again by the next array that begins with that disk.
"""

# ruff: noqa: PTH103, PTH108, PTH110, PTH120, PTH123
# This program starts some thousand times: json, pathlib and what is only for type checkers stay away, because their
# import takes longer than all the rest.

from __future__ import annotations

import os
import sys

MYPY = False
if MYPY:
    from typing import Any

    Devices = dict[str, dict[str, Any]]

STATE = os.environ.get("FAKE_STATE", ".")
FILE = f"{STATE}/devices.json"
MODEL = "Microsoft NVMe Direct Disk v2"
CONTENT = ("signature", "label", "uuid", "complete")


def read(name: str) -> str:
    """A file of the state; empty when there is none."""
    try:
        with open(f"{STATE}/{name}") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def parse(text: str) -> dict[str, Any]:
    """What tests write as JSON, and what `store` writes, which differs only in the words for constants."""
    return eval(text, {"__builtins__": {}, "true": True, "false": False, "null": None})  # type: ignore[no-any-return]


def append(name: str, line: str) -> None:
    """Add a line to a file of the state."""
    with open(f"{STATE}/{name}", "a") as stream:
        stream.write(f"{line}\n")


def taken(name: str) -> bool:
    """Whether a test asked for a fault, which then happens once."""
    try:
        os.unlink(f"{STATE}/{name}")
    except FileNotFoundError:
        return False
    return True


def publish(devices: Devices, root: str) -> None:
    """Show the devices below /sys/block and /dev, as the kernel does."""
    wanted: dict[str, str | None] = {}
    for name, device in devices.items():
        parents = device.get("parents", [])
        # A directory cannot be read as a file: that is our unreadable disk.
        wanted[f"dev/{name}"] = None if device.get("unreadable") else ""
        if device["kind"] == "part":
            wanted[f"sys/block/{parents[0]}/{name}/partition"] = "1"
            continue
        wanted[f"sys/block/{name}/holders"] = None
        if "md" in device and device["kind"] != "disk":
            wanted[f"sys/block/{name}/md/array_state"] = "inactive" if device.get("inactive") else "clean"
        for parent in parents:
            wanted[f"sys/block/{parent}/holders/{name}"] = ""
    for top in ("dev", "sys/block"):
        for folder, folders, files in os.walk(f"{root}/{top}", topdown=False):
            for name in (*files, *folders):
                key = os.path.relpath(f"{folder}/{name}", root)
                if key != "dev/nvidia-uvm" and not any(f"{other}/".startswith(f"{key}/") for other in wanted):
                    (os.unlink if name in files else os.rmdir)(f"{folder}/{name}")
    for key, text in wanted.items():
        show(f"{root}/{key}", text)


def show(path: str, text: str | None) -> None:
    """A file with this text, or a folder; untouched where it is right."""
    os.makedirs(path if text is None else os.path.dirname(path), exist_ok=True)
    if text is not None and os.path.exists(path):
        with open(path) as stream:
            if stream.read() == text:
                return
    if text is not None:
        with open(path, "w") as stream:
            stream.write(text)


def name_of(device: str, devices: Devices) -> str:
    """`/dev/md/cycleforge` is a link to whatever number udev chose."""
    name = device.removeprefix("/dev/")
    if name.startswith("md/"):
        wanted = name.removeprefix("md/")
        arrays = [key for key, value in devices.items() if value.get("md") == wanted and value["kind"] != "disk"]
        name = arrays[0] if arrays else name
    return name


def lsblk(devices: Devices, arguments: list[str]) -> int:
    if "--inverse" in arguments:
        return lsblk_inverse(devices, name_of(arguments[-1], devices))
    assert "--nodeps" in arguments
    print('NAME="sda" TYPE="disk" MOUNTPOINT="" MODEL="Virtual Disk"')
    for name, device in devices.items():
        if device["kind"] != "part":
            kind = "disk" if device["kind"] == "disk" else "raid0"
            model = device.get("model", MODEL) if kind == "disk" else ""
            print(f'NAME="{name}" TYPE="{kind}" MOUNTPOINT="{device.get("mounted", "")}" MODEL="{model}"')
    return 0


def lsblk_inverse(devices: Devices, name: str) -> int:
    if name.startswith("sd"):
        print(f"{name} part\nsda disk")
        return 0
    if name not in devices:
        print(f"lsblk: {name}: not a block device", file=sys.stderr)
        return 32
    print(name, devices[name]["kind"])
    for parent in devices[name].get("parents", []):
        lsblk_inverse(devices, parent)
    return 0


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
    print(devices[name_of(arguments[-1], devices)].get("signature", ""))
    return 0


def mdadm(devices: Devices, arguments: list[str]) -> int:
    disks = [name_of(argument, devices) for argument in arguments if argument.startswith("/dev/nvme")]
    action = arguments[0]
    if action == "--examine":
        return examine(devices[disks[0]])
    if action == "--stop":
        devices.pop(name_of(arguments[1], devices))
        return 0
    holders = [key for key, value in devices.items() if set(disks) & set(value.get("parents", []))]
    if holders:
        print(f"mdadm: Device or resource busy: {holders}", file=sys.stderr)
        return 1
    if action == "--zero-superblock":
        for disk in disks:
            devices[disk] = {key: value for key, value in devices[disk].items() if key in ("kind", "content")}
        return 0
    if action == "--create":
        assert "--run" in arguments
        number = len(read("arrays").split())
        append("arrays", str(number))
        for disk in disks:
            assert not devices[disk].get("signature"), f"{disk} is not empty"
            devices[disk] |= {
                "signature": "linux_raid_member", "md": "any:cycleforge", "members": len(disks),
                "array": f"{number:08x}:00000000:00000000:00000000",
            }  # fmt: skip
        if taken("half_create"):
            for disk in disks[1:]:
                devices[disk] = {"kind": "disk"}
            return 1
    elif len(disks) < devices[disks[0]]["members"]:
        return 1
    devices["md127"] = {"kind": "raid0", "md": "cycleforge", "parents": disks} | devices[disks[0]].get("content", {})
    return 0


def examine(device: dict[str, Any]) -> int:
    if device.get("signature") != "linux_raid_member":
        return 1
    print(f"MD_LEVEL={device.get('level', 'raid0')}\nMD_DEVICES={device['members']}\nMD_NAME={device['md']}")
    print(f"MD_UUID={device.get('array', 'ffffffff:0:0:0')}")
    return 0


def mkfs(devices: Devices, arguments: list[str]) -> int:
    name = name_of(arguments[-1], devices)
    device = devices[name]
    if device.get("signature") and "-f" not in arguments:
        print(f"{name} appears to contain {device['signature']}", file=sys.stderr)
        return 1
    uuid = next((word.removeprefix("uuid=") for word in arguments if word.startswith("uuid=")), f"random-{os.getpid()}")
    device |= {"signature": "xfs", "label": arguments[arguments.index("-L") + 1], "uuid": uuid, "complete": False}
    keep(devices, name)
    if taken("kill_mkfs"):
        store(devices)
        kill_script()
    device["complete"] = True
    keep(devices, name)
    return 0


def keep(devices: Devices, name: str) -> None:
    for parent in devices[name].get("parents", [])[:1]:
        devices[parent]["content"] = {key: devices[name][key] for key in CONTENT}


def mount(devices: Devices, arguments: list[str]) -> int:
    source, target = arguments[-2:]
    target = target.removeprefix(os.environ["CYCLEFORGE_ROOT"])
    if "--bind" not in arguments:
        device = devices[name_of(source, devices)]
        if device.get("signature") not in ("xfs", "ext4") or not device.get("complete", True):
            return 32
        device["mounted"] = target
    append("mounts", target)
    return 0


def findmnt(devices: Devices, arguments: list[str]) -> int:
    target = arguments[-1].removeprefix(os.environ["CYCLEFORGE_ROOT"])
    known: dict[str, str] = parse(read("sources.json") or "{}")
    for name, device in devices.items():
        if device.get("mounted") == target:
            known.setdefault(target, f"/dev/{name}")
    if target not in known:
        return 1
    print(known[target])
    return 0


def store(devices: Devices) -> None:
    with open(FILE, "w") as stream:
        stream.write(repr(devices))
    publish(devices, os.environ["CYCLEFORGE_ROOT"])


def kill_script() -> None:
    """As `kill -9` of the script and everything below it."""
    os.kill(int(read("pid")), 9)
    os._exit(1)


def keep_moment(name: str) -> None:
    """Copy root and state where a test asked for it: what a kill at this moment would leave."""
    folder = read("keep")
    if folder:
        os.makedirs(f"{folder}/{name}")
        copied = os.spawnv(os.P_WAIT, "/bin/cp", ["cp", "-a", os.environ["CYCLEFORGE_ROOT"], STATE, f"{folder}/{name}"])
        assert copied == 0


CHANGES = {"--create", "--assemble", "--stop", "--zero-superblock"}


def main() -> int:
    tool, *arguments = sys.argv[1:]
    devices: Devices = parse(read("devices.json"))
    before = repr(devices)
    tools = {
        "lsblk": lsblk, "blkid": blkid, "wipefs": wipefs, "mdadm": mdadm, "mkfs.xfs": mkfs, "mount": mount,
        "findmnt": findmnt,
    }  # fmt: skip
    number = 0
    if tool in ("mkfs.xfs", "mount") or CHANGES & set(arguments):
        append("changes", tool)
        number = len(read("changes").split())
    when, at = (read("kill") or "never 0").split()
    if when == "before" and number == int(at):
        kill_script()
    if number:
        keep_moment(f"before-{number}")
    code = tools[tool](devices, arguments)
    if tool == "lsblk" or repr(devices) != before:
        store(devices)
    if when == "after" and number == int(at):
        kill_script()
    if number:
        keep_moment(f"after-{number}")
    return code


if __name__ == "__main__":
    sys.exit(main())
