#!/usr/bin/env bash
# shellcheck disable=SC2016
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
