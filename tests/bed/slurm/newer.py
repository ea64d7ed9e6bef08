"""Which Slurm the clusters of the beds run: the host's, or one of a newer Debian in a root that takes the host's place.

With `CYCLEFORGE_SLURM=24.11`, tests/cloud and tests/sick run on that release (`make test-slurm`), without it on the
host's. CycleCloud installs 23.02 to 25.11, between Debian 12's 22.05 and the 26.05 of Debian's newest suite.

A root is unpacked once for all that share `.cache`, in ten seconds. No package is configured: there are no services,
and only those users and links that `_complete` adds. What a cluster writes goes into a layer of its own
(tests/bed/cloud/machine/cluster.sh), never into the root.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from generator.plan.slurm_conf import slurm_release
from tests.bed.machines.overlay import PATH
from tests.bed.machines.roots import CACHE, FORGET_AFTER_S, needs

VARIABLE, HOST = "CYCLEFORGE_SLURM", "host"
NEWER = "24.11"
"""For tests of what Debian 12's Slurm does not have."""
SUITES = {NEWER: "trixie", "26.05": "forky"}
"""Debian's, by the release of Slurm that each has."""
PACKAGES = (
    "base-files", "base-passwd", "bash", "coreutils", "dash",
    # Slurm, with accounting
    "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin", "slurmdbd", "munge",
    "mariadb-server-core", "mariadb-client-core",
    # jobs with MPI
    "libpmix2t64", "libopenmpi40", "python3-minimal", "libpython3-stdlib",
    # what the beds call, and our programs on the scheduler and on nodes
    "bsdutils", "diffutils", "findutils", "grep", "hostname", "iproute2", "jq", "mawk", "mount", "perl-base", "procps",
    "sed", "tar", "util-linux",
)  # fmt: skip
OPTIONS = (
    "--mode=root", "--variant=extract", "--format=directory",
    "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg",
    '--aptopt=Apt::Install-Recommends "false"',
    # A mirror may be weeks behind; its signatures are checked all the same.
    '--aptopt=Acquire::Check-Valid-Until "false"',
)  # fmt: skip
LACKED = "does not have a Release file|Unable to locate package|has no installation candidate"
"""What apt says of a mirror that lacks the suite, or packages in it."""
ABSENT = "cannot be had"
"""In what is said of a test that is skipped for that; the last lines of a run repeat it (tests/bed/summary.py)."""
FOLDERS = ("etc/slurm", "mnt", "opt", "proc", "run", "sys", "tmp", "usr/local/sbin", "var/log", "var/spool")
USERS = "munge:x:101:101::/nonexistent:/usr/sbin/nologin\nmysql:x:102:102::/nonexistent:/usr/sbin/nologin\n"
GROUPS = "munge:x:101:\nmysql:x:102:\n"


@dataclass(frozen=True)
class Slurm:
    """A Slurm that a cluster can run; without a root it is the host's."""

    release: tuple[int, ...]
    """(24, 11) for 24.11.5."""
    root: Path | None = None


def chosen_slurm(release: str = "") -> Slurm:
    """The Slurm of this release, else the one that the environment names; skips the test where it cannot be had."""
    wanted = release or os.environ.get(VARIABLE) or HOST
    if wanted == HOST:
        return Slurm(_release_of("slurmctld"))
    if wanted not in SUITES:
        raise ValueError(f"{VARIABLE}={wanted}: the beds know {HOST}, {', '.join(SUITES)}")
    return Slurm(slurm_release(wanted), unpacked_root(wanted))


@cache
def unpacked_root(release: str = NEWER) -> Path:
    """The root with this release of Slurm; unpacked at the first use. Never write below it.

    Skips the test where the mirror of Debian has no such Slurm.
    """
    needs("unshare", "nsenter", "chroot", "mmdebstrap")
    recipe = "\0".join((release, SUITES[release], *PACKAGES, *OPTIONS, *FOLDERS, USERS, GROUPS))
    folder = CACHE / f"slurm-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _unpack(release, folder)
    os.utime(folder)
    return folder


def _unpack(release: str, folder: Path) -> None:
    for old in CACHE.glob("slurm-*"):
        if time.time() - old.stat().st_mtime > FORGET_AFTER_S:
            shutil.rmtree(old)
    building = CACHE / f"{folder.name}.unpacking"
    shutil.rmtree(building, ignore_errors=True)
    done = subprocess.run(
        ["mmdebstrap", *OPTIONS, f"--include={','.join(PACKAGES)}", SUITES[release], str(building)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(building, ignore_errors=True)
        if re.search(LACKED, done.stderr):
            pytest.skip(f"Slurm {release} {ABSENT}: the mirror has no Debian {SUITES[release]} with its packages")
        raise RuntimeError(f"no root with Slurm {release}: {done.stderr[-2000:]}")
    _complete(building)
    has = _release_of("chroot", str(building), "/usr/sbin/slurmctld")
    if has != slurm_release(release):
        shutil.rmtree(building)
        pytest.skip(f"Slurm {release} {ABSENT}: Debian {SUITES[release]} has {'.'.join(map(str, has))}")
    building.rename(folder)


def _complete(root: Path) -> None:
    """What the packages' scripts would have done, as far as a cluster needs it."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for path in root.glob("usr/*bin/*-wlm"):
        # Debian's alternatives; the daemons look at the name that they are called by.
        path.with_name(path.name.removesuffix("-wlm")).symlink_to(path.name)
    (root / "usr/bin/awk").symlink_to("mawk")
    for name, own in (("passwd", USERS), ("group", GROUPS)):
        (root / "etc" / name).write_text((root / f"usr/share/base-passwd/{name}.master").read_text() + own)
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (root / "etc/hosts").write_text("")


def _release_of(*slurmctld: str) -> tuple[int, ...]:
    said = subprocess.run([*slurmctld, "-V"], env={"PATH": PATH}, capture_output=True, text=True, check=True).stdout
    return slurm_release(said.split()[-1])
