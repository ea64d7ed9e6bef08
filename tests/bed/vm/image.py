"""The virtual machine's kernel and root disk: Debian's cloud kernel beside the shared node root, built once.

`python -m tests.bed.vm.image` builds them by hand and prints the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bed.machines.roots import CACHE, FORGET_AFTER_S, needs, node_root, run_apart

GUEST = Path(__file__).parent / "guest"
DISK_MIB = 3072
OFFSET_MIB = 1
"""The root is a partition, because the kernel finds one by its identity; disk names change from boot to boot."""
DISK_ID = 0xCF0CF0CF
# A layer on the node root gets kernel modules and our agent, and becomes a file system without being copied first.
BUILD = Path(__file__).with_name("build.sh").read_text()

_problem: str | None = None


@dataclass(frozen=True)
class Image:
    kernel: Path
    root_disk: Path
    root_argument: str


def vm_image() -> Image:
    """Kernel and root disk; built at the first use, about 15 s beside the node root's own minute."""
    global _problem
    needs("chroot", "unshare", "mount", "mke2fs", "qemu-system-x86_64")
    if _problem:
        pytest.fail(_problem)
    root = node_root()
    guest = b"".join(path.read_bytes() for path in sorted(GUEST.iterdir()))
    recipe = hashlib.sha256(b"\0".join((BUILD.encode(), str(DISK_MIB).encode(), root.name.encode(), guest)))
    folder = CACHE / f"vm-{recipe.hexdigest()[:16]}"
    if not folder.is_dir():
        with (CACHE / "vm.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                try:
                    _build(root, folder, lock.fileno())
                except RuntimeError as error:
                    _problem = str(error)
                    pytest.fail(_problem)
    os.utime(folder)
    return Image(folder / "vmlinuz", folder / "root.img", f"PARTUUID={DISK_ID:08x}-01")


def _build(root: Path, folder: Path, lock: int) -> None:
    """Build beside and rename, so that what carries the name is complete."""
    for old in CACHE.glob("vm-*/"):
        if old.name.endswith(".making") or time.time() - old.stat().st_mtime > FORGET_AFTER_S:
            shutil.rmtree(old)
    making = folder.with_suffix(".making")
    making.mkdir()
    disk = making / "root.img"
    with disk.open("wb") as stream:
        stream.write(_partition_table())
        stream.truncate(DISK_MIB * 2**20)
    arguments = ["-c", BUILD, "build", str(root), str(making), str(GUEST), str(OFFSET_MIB)]
    run_apart(arguments, making, folder.with_suffix(".log"), lock, "virtual machine's disk")
    making.rename(folder)


def _partition_table() -> bytes:
    """A master boot record with one Linux partition over the whole disk."""
    sectors = 2**20 // 512
    entry = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0x83, 0xFF, 0xFF, 0xFF, OFFSET_MIB * sectors,
                        (DISK_MIB - OFFSET_MIB) * sectors)  # fmt: skip
    return struct.pack("<440sIH", b"", DISK_ID, 0) + entry + bytes(48) + b"\x55\xaa"


if __name__ == "__main__":
    started = time.monotonic()
    print(vm_image().root_disk.parent)
    print(f"{time.monotonic() - started:.1f} s", file=sys.stderr)
