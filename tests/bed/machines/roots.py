"""A Debian 12 root with what a compute node has, built once per checkout and never written to afterwards.

`node_root()` gives its path. Everything that runs on it runs on a throw-away layer: see `overlay` and `booted`.
`python -m tests.bed.machines.roots` builds it by hand and prints the path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[3] / ".cache" / "machines"
SUITE = "bookworm"
PACKAGES = (
    # what an HPC image has
    "systemd", "systemd-sysv", "dbus", "udev", "kmod", "util-linux", "iproute2", "procps", "pciutils", "sudo",
    "lsb-release", "ca-certificates", "curl", "jq", "perl-base", "python3-minimal", "chrony", "rsyslog", "logrotate",
    # disks
    "mdadm", "nvme-cli", "xfsprogs",
    # automatic updates, which misc_ubuntu switches off
    "unattended-upgrades", "needrestart",
    # Slurm and what enroot calls
    "slurmd", "slurmctld", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libpmix2",
    "squashfs-tools", "squashfuse", "fuse-overlayfs", "fuse3", "uidmap", "zstd", "pigz", "parallel", "libcap2-bin",
    "bsdextrautils", "ncurses-bin", "libbsd0",
)  # fmt: skip
BUILD = Path(__file__).with_name("build-root.sh")
FORGET_AFTER_S = 7 * 24 * 3600
"""Roots of former recipes are removed when nobody used them for that long."""

_problem: str | None = None


def node_root() -> Path:
    """The root folder; built at the first use, about a minute. Never write below it.

    Skips the test where no root user or no apt is there to get it, and fails where something is merely missing.
    """
    global _problem
    needs("chroot", "unshare", "mount", "mmdebstrap")
    if _problem:
        pytest.fail(_problem)
    recipe = "\0".join((BUILD.read_text(), SUITE, *PACKAGES))
    folder = CACHE / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    if not folder.is_dir():
        with _alone() as lock:
            if not folder.is_dir():
                try:
                    _build(folder, lock)
                except RuntimeError as error:
                    _problem = str(error)
                    pytest.fail(_problem)
    os.utime(folder)
    os.utime(package_lists(folder))
    return folder


def package_lists(root: Path) -> Path:
    """apt's lists of the packages that there were when `node_root` was built, for a layer with more of them."""
    return root.with_suffix(".lists")


PACKAGE_OF = {
    "mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "chroot": "coreutils", "unshare": "util-linux",
    "nsenter": "util-linux", "mount": "mount", "dpkg-deb": "dpkg", "ip": "iproute2", "mpirun": "openmpi-bin",
}  # fmt: skip


def needs(*programs: str) -> None:
    """Skip without root; a missing program fails the test where apt could have installed it, and skips it elsewhere."""
    if os.geteuid() != 0:
        pytest.skip("disposable machines need root (mounts and namespaces)")
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    packages = " ".join(sorted({PACKAGE_OF.get(program, program) for program in missing}))
    text = f"{', '.join(missing)} not found"
    if shutil.which("apt-get"):
        pytest.fail(f"{text}: run tests/install-tools.sh or install {packages}")
    pytest.skip(f"{text}, and no apt to install {packages}")


def _build(folder: Path, lock: int) -> None:
    """Build beside and rename, so that what carries the name is complete."""
    for leftover in CACHE.glob("*.building"):
        shutil.rmtree(leftover)
    for old in CACHE.iterdir():
        if old.is_dir() and time.time() - old.stat().st_mtime > FORGET_AFTER_S:
            shutil.rmtree(old)
    building, lists = folder.with_suffix(".building"), folder.with_suffix(".lists.building")
    arguments = [str(BUILD), str(building), str(lists), SUITE, *PACKAGES]
    try:
        run_apart(arguments, building, folder.with_suffix(".log"), lock, "Debian root")
    except RuntimeError:
        shutil.rmtree(lists, ignore_errors=True)
        raise
    shutil.rmtree(package_lists(folder), ignore_errors=True)
    lists.rename(package_lists(folder))
    building.rename(folder)


def run_apart(arguments: list[str], making: Path, log: Path, lock: int, what: str) -> None:
    """Run bash with its own mounts and processes, so that nothing of a killed build stays mounted or runs on.

    The lock is inherited, because a build whose test was killed works until it notices. RuntimeError with the end of
    the log when it fails; then the folder that it was making is gone.
    """
    command = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "bash", *arguments]
    with log.open("wb") as stream:
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, pass_fds=(lock,), check=False
        ).returncode
    if code:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
        shutil.rmtree(making, ignore_errors=True)
        raise RuntimeError(f"the {what} was not built (is the mirror of Debian reachable?), see {log}:\n{last}")


@contextmanager
def _alone() -> Iterator[int]:
    CACHE.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(CACHE / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    started = time.monotonic()
    print(node_root())
    print(f"{time.monotonic() - started:.1f} s", file=sys.stderr)
