"""Where tests make their folders: in memory, when there is enough of it.

A test of a node makes some four hundred files and folders: 85 ms of work for ext4, which looks for inodes that were not
freed within the last seconds, 6 ms for tmpfs.
Source: https://github.com/torvalds/linux/blob/v6.8/fs/ext4/ialloc.c (recently_deleted)
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

SHM = Path("/dev/shm")
FREE_BYTES = 4 * 2**30
"""Far more than the tests of one moment have; a folder goes with its test, unless that fails."""
MEMORY_BYTES = 6 * 2**30
"""What must be available to the processes of a run, too."""


def use_memory() -> None:
    """For this process and the ones that it starts; a TMPDIR that somebody has set stays."""
    if "TMPDIR" not in os.environ and fits(SHM, Path("/proc")):
        os.environ["TMPDIR"] = str(SHM)
        tempfile.tempdir = None


def fits(folder: Path, proc: Path) -> bool:
    """Whether it is a tmpfs that we may fill and run programs from, as a container's often is not."""
    try:
        mounts = [line.split() for line in (proc / "mounts").read_text().splitlines()]
        memory = dict(line.split(":") for line in (proc / "meminfo").read_text().splitlines())
        room = os.statvfs(folder)
    except (OSError, ValueError):
        return False
    kinds = [words[2] for words in mounts if words[1] == str(folder)]
    return (
        kinds[-1:] == ["tmpfs"]
        and not room.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
        and os.access(folder, os.W_OK | os.X_OK)
        and room.f_bavail * room.f_frsize >= FREE_BYTES
        and int(memory["MemAvailable"].split()[0]) * 1024 >= MEMORY_BYTES
    )
