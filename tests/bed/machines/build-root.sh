#!/usr/bin/env bash
# build-root.sh ROOT SUITE PACKAGE...: a Debian root that starts no daemon. Runs in mount and process namespaces
# of its own, so that a kill leaves no mount behind.
set -euo pipefail
readonly root="$1" suite="$2"
shift 2

debootstrap --variant=minbase "${suite}" "${root}"
# No daemon starts because a package is installed, neither now nor in a machine made of this root.
printf '#!/bin/sh\nexit 101\n' >"${root}/usr/sbin/policy-rc.d"
chmod 755 "${root}/usr/sbin/policy-rc.d"
printf 'force-unsafe-io\n' >"${root}/etc/dpkg/dpkg.cfg.d/unsafe-io"
printf 'path-exclude=/usr/share/%s/*\n' doc man locale info >"${root}/etc/dpkg/dpkg.cfg.d/small"
cp -L /etc/resolv.conf "${root}/etc/resolv.conf"
mount -t proc proc "${root}/proc"
chroot "${root}" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 bash -euc '
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
    # As on a node whose converge has not ended; and the image belongs to no particular machine.
    systemctl disable slurmd slurmctld munge
    rm -f /var/lib/dbus/machine-id /etc/hostname
    : >/etc/machine-id
' install "$@"
