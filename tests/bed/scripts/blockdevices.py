"""A small block layer for the NVMe tests: lsblk, blkid, wipefs, mdadm, mkfs.xfs and mount over one JSON file.

`serving` answers the fakes of `node.py` in the test's own process: they are called some thousand times, and each would
start Python for it. Devices are entries of `devices.json` in the node's state: name → its kind, model, signature,
label, members and so on. As on real disks, what an array holds is on its first member and is seen again by the next
array that begins with that disk.
"""

# ruff: noqa: PTH103, PTH108, PTH110, PTH120, PTH123

from __future__ import annotations

import itertools
import os
import socketserver
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from typing import Any

Devices = dict[str, dict[str, Any]]
MODEL = "Microsoft NVMe Direct Disk v2"
CONTENT = ("signature", "label", "uuid", "complete")
TOOL = """
exec {fake_block}<>/dev/tcp/127.0.0.1/PORT
printf '%s\\0' "$#" "$FAKE_STATE" "$CYCLEFORGE_ROOT" NAME "$@" >&"$fake_block"
for fake_answer in fake_code fake_output fake_errors; do
    IFS= read -r -d '' "$fake_answer" <&"$fake_block" || exit 1
done
printf '%s' "$fake_output"
printf '%s' "$fake_errors" >&2
exit "$fake_code"
"""
"""What a fake does: ask the test, which closes the connection without an answer where it has killed the script."""

STATE = ROOT = ""
"""Of the node that asks; one question at a time."""
OUTPUT: list[str] = []
ERRORS: list[str] = []
NUMBERS = itertools.count()


class KilledError(Exception):
    """The script that asks was killed."""


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
    with open(f"{STATE}/{name}", "a") as stream:
        stream.write(f"{line}\n")


def taken(name: str) -> bool:
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
    OUTPUT.append('NAME="sda" TYPE="disk" MOUNTPOINT="" MODEL="Virtual Disk"')
    for name, device in devices.items():
        if device["kind"] != "part":
            kind = "disk" if device["kind"] == "disk" else "raid0"
            model = device.get("model", MODEL) if kind == "disk" else ""
            OUTPUT.append(f'NAME="{name}" TYPE="{kind}" MOUNTPOINT="{device.get("mounted", "")}" MODEL="{model}"')
    return 0


def lsblk_inverse(devices: Devices, name: str) -> int:
    if name.startswith("sd"):
        OUTPUT.append(f"{name} part\nsda disk")
        return 0
    if name not in devices:
        ERRORS.append(f"lsblk: {name}: not a block device")
        return 32
    OUTPUT.append(f"{name} {devices[name]['kind']}")
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
    OUTPUT.append(f"DEVNAME={arguments[-1]}\n{key}={device['signature']}")
    for field in ("label", "uuid"):
        if device.get(field):
            OUTPUT.append(f"{field.upper()}={device[field]}")
    return 0


def wipefs(devices: Devices, arguments: list[str]) -> int:
    assert not {"-a", "--all", "-f", "--force"} & set(arguments), "wipefs must only list"
    OUTPUT.append(devices[name_of(arguments[-1], devices)].get("signature", ""))
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
        ERRORS.append(f"mdadm: Device or resource busy: {holders}")
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
    OUTPUT.append(f"MD_LEVEL={device.get('level', 'raid0')}\nMD_DEVICES={device['members']}\nMD_NAME={device['md']}")
    OUTPUT.append(f"MD_UUID={device.get('array', 'ffffffff:0:0:0')}")
    return 0


def mkfs(devices: Devices, arguments: list[str]) -> int:
    name = name_of(arguments[-1], devices)
    device = devices[name]
    if device.get("signature") and "-f" not in arguments:
        ERRORS.append(f"{name} appears to contain {device['signature']}")
        return 1
    uuid = next(
        (word.removeprefix("uuid=") for word in arguments if word.startswith("uuid=")), f"random-{next(NUMBERS)}"
    )
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
    target = target.removeprefix(ROOT)
    if "--bind" not in arguments:
        device = devices[name_of(source, devices)]
        if device.get("signature") not in ("xfs", "ext4") or not device.get("complete", True):
            return 32
        device["mounted"] = target
    append("mounts", target)
    return 0


def findmnt(devices: Devices, arguments: list[str]) -> int:
    target = arguments[-1].removeprefix(ROOT)
    known: dict[str, str] = parse(read("sources.json") or "{}")
    for name, device in devices.items():
        if device.get("mounted") == target:
            known.setdefault(target, f"/dev/{name}")
    if target not in known:
        return 1
    OUTPUT.append(known[target])
    return 0


def store(devices: Devices) -> None:
    with open(f"{STATE}/devices.json", "w") as stream:
        stream.write(repr(devices))
    publish(devices, ROOT)


def kill_script() -> None:
    """As `kill -9` of the script and everything below it."""
    os.kill(int(read("pid")), 9)
    raise KilledError


def keep_moment(name: str) -> None:
    """Copy root and state where a test asked for it: what a kill at this moment would leave."""
    folder = read("keep")
    if folder:
        os.makedirs(f"{folder}/{name}")
        copied = os.spawnv(os.P_WAIT, "/bin/cp", ["cp", "-a", ROOT, STATE, f"{folder}/{name}"])
        assert copied == 0


CHANGES = {"--create", "--assemble", "--stop", "--zero-superblock"}


def run(tool: str, arguments: list[str]) -> int:
    """One call of a tool: its exit code; what it prints is in OUTPUT and ERRORS."""
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


class _Question(socketserver.StreamRequestHandler):
    """One call of a fake: number of words, state and root of the node, tool, words; each ends with a NUL."""

    def handle(self) -> None:
        global STATE, ROOT
        count = int(_field(self.rfile))
        STATE, ROOT, tool, *arguments = (_field(self.rfile) for _ in range(count + 3))
        OUTPUT.clear()
        ERRORS.clear()
        try:
            code = run(tool, arguments)
        except KilledError:
            return
        except Exception:
            code = 1
            ERRORS.append(traceback.format_exc())
        answer = (str(code), *("".join(f"{line}\n" for line in lines) for lines in (OUTPUT, ERRORS)))
        self.wfile.write("".join(f"{part}\0" for part in answer).encode())


def _field(stream: BufferedIOBase) -> str:
    found = b""
    while (byte := stream.read(1)) not in (b"", b"\0"):
        found += byte
    return found.decode()


@contextmanager
def serving() -> Iterator[str]:
    """The body of a fake, for the tool NAME, that is answered here meanwhile."""
    with socketserver.TCPServer(("127.0.0.1", 0), _Question) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield TOOL.replace("PORT", str(server.server_address[1]))
        finally:
            server.shutdown()
            thread.join()
