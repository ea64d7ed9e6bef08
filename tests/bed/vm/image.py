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
BUILD = r"""
set -euo pipefail
root="$1" out="$2" guest="$3" offset_mib="$4"
layer="${out}/layer" m="${out}/layer/merged"
mkdir "${layer}"
mount -t tmpfs -o size=2g,mode=755 tmpfs "${layer}"
mkdir "${layer}/upper" "${layer}/work" "${m}"
mount -t overlay overlay -o "lowerdir=${root},upperdir=${layer}/upper,workdir=${layer}/work" "${m}"
mount -t proc proc "${m}/proc"
chroot "${m}" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 bash -euc '
    cd /tmp
    apt-get update -qq
    package="$(apt-cache depends linux-image-cloud-amd64 | sed -n "s/^ *Depends: \(linux-image-[0-9].*\)/\1/p")"
    apt-get -o APT::Sandbox::User=root download -qq "${package}"
    dpkg-deb -x "${package}"*.deb kernel
    # udev loads what fits the emulated processor and buses; only what the tests need is left to be found.
    wanted="drivers/(md|virtio|block|nvme|char/hw_random)|fs/xfs|lib|crypto|net/sunrpc"
    find kernel/lib/modules -name "*.ko" | grep -v -E "/kernel/(${wanted})/" | xargs rm -f
    mv kernel/lib/modules /usr/lib/
    mv kernel/boot/vmlinuz-* /vmlinuz
    depmod "${package#linux-image-}"
    rm -rf kernel ./*.deb /var/lib/apt/lists/*
    # Not empty, or every boot would be a first one, with its questions.
    echo 0c0f0c0f0c0f0c0f0c0f0c0f0c0f0c0f >/etc/machine-id
    printf "vmnode\n" >/etc/hostname
    # Nothing that costs time and has no part in the tests.
    systemctl -q mask apt-daily.timer apt-daily-upgrade.timer chrony.service unattended-upgrades.service \
        e2scrub_reap.service e2scrub_all.timer dpkg-db-backup.timer fstrim.timer logrotate.timer sysstat.service \
        getty.target nvmf-autoconnect.service nvmefc-boot-connections.service rsyslog.service uuidd.socket \
        dbus.socket dbus.service modprobe@drm.service modprobe@configfs.service modprobe@fuse.service \
        modprobe@efi_pstore.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount \
        sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
        proc-sys-fs-binfmt_misc.automount kmod-static-nodes.service systemd-binfmt.service \
        systemd-logind.service systemd-networkd.service systemd-networkd.socket systemd-pstore.service \
        systemd-random-seed.service systemd-sysusers.service systemd-timesyncd.service \
        systemd-tmpfiles-clean.timer systemd-update-utmp.service systemd-update-utmp-runlevel.service \
        systemd-user-sessions.service modprobe@loop.service modprobe@dm_mod.service systemd-tmpfiles-setup-dev.service \
        systemd-modules-load.service systemd-sysctl.service
    # Each start and reload of systemd runs all of them; only the one for the root file system has something to say.
    mkdir -p /etc/systemd/system-generators
    for generator in /lib/systemd/system-generators/*; do
        case "${generator##*/}" in
            systemd-fstab-generator) ;;
            *) ln -s /dev/null "/etc/systemd/system-generators/${generator##*/}" ;;
        esac
    done
    systemctl -q set-default multi-user.target
'
umount "${m}/proc"
mv "${m}/vmlinuz" "${out}/vmlinuz"
install -m 755 "${guest}/agent.sh" "${m}/usr/local/sbin/cf-agent"
install -m 644 "${guest}/cf-agent.service" "${m}/etc/systemd/system/cf-agent.service"
ln -s ../cf-agent.service "${m}/etc/systemd/system/multi-user.target.wants/cf-agent.service"
mke2fs -q -F -t ext4 -E "lazy_itable_init=1,nodiscard,offset=$((offset_mib * 1048576))" -d "${m}" "${out}/root.img" \
    "$(($(stat -c %s "${out}/root.img") / 1048576 - offset_mib))m"
umount "${m}" "${layer}"
rmdir "${layer}"
"""

_problem: str | None = None


@dataclass(frozen=True)
class Image:
    """What QEMU boots. Neither file is ever written to."""

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
