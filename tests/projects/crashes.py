"""Programs of any name that crash, so that the kernel writes their names into its log."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import tempfile
import time
from pathlib import Path

# Both write to address 0: `xor eax, eax; mov [rax], eax` and `mov x0, #0; str w0, [x0]`.
_CODE = {"x86_64": (62, b"\x31\xc0\x89\x00"), "aarch64": (183, b"\x00\x00\x80\xd2\x00\x00\x00\xb9")}
_AT = 0x400000
_NOBODY = 65534


def crash(comm: str, file: str, wait_s: float = 12) -> bool:
    """Run a program whose file has this name, as a process of that name, until the kernel has told that it died.

    It belongs to a user without any rights. The kernel calls a process by the last part of the path that was executed,
    so a link gives it another name. It tells of ten such programs in five seconds.
    """
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        folder = Path(name)
        program, link = folder / file, folder / "links" / comm
        program.write_bytes(_elf())
        link.parent.mkdir()
        link.symlink_to(program)
        for path in (folder, link.parent, program):
            path.chmod(0o755)
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            process = subprocess.Popen([os.fspath(link)], user=_NOBODY, group=_NOBODY, extra_groups=[])
            assert process.wait() == -11
            if _kernel_tells(f"[{process.pid}]: segfault at 0 ".encode()):
                return True
            time.sleep(1)
    return False


def _kernel_tells(words: bytes) -> bool:
    """Whether /dev/kmsg can be read and has a record with these words."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        while True:
            if words in os.read(handle, 8192):
                return True
    except OSError:  # the end, or records were overwritten meanwhile
        return False
    finally:
        os.close(handle)


def _elf() -> bytes:
    """The smallest program: one segment, loaded at a fixed address. Source: elf(5)."""
    machine, code = _CODE[platform.machine()]
    size = 64 + 56 + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, _AT + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _AT, _AT, size, size, 0x1000)
    return ident + header + segment + code
