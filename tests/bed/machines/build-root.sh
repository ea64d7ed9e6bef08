#!/usr/bin/env bash
# build-root.sh ROOT SUITE PACKAGE...: a Debian root that starts no daemon. Runs in mount and process namespaces
# of its own, so that a kill leaves no mount behind. mmdebstrap unpacks and configures everything in one go, which takes
# about half the work of debootstrap and a second round of apt.
set -euo pipefail
readonly root="$1" suite="$2"
shift 2
packages="$(IFS=','; printf '%s' "$*")"
readonly keys=/usr/share/keyrings/debian-archive-keyring.gpg
# After the essential packages and before all others; mmdebstrap gives it the root as $1.
# shellcheck disable=SC2016
readonly settings='
printf "force-unsafe-io\n" >"$1/etc/dpkg/dpkg.cfg.d/unsafe-io"
printf "path-exclude=/usr/share/%s/*\n" doc man locale info >"$1/etc/dpkg/dpkg.cfg.d/small"'

LC_ALL=C.UTF-8 mmdebstrap --mode=root --variant=minbase --format=directory --include="usr-is-merged,${packages}" \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --essential-hook="${settings}" \
    --aptopt='Apt::Install-Recommends "false"' --keyring="${keys}" "${suite}" "${root}"
# No daemon starts because a package is installed, neither then nor in a machine made of this root.
printf '#!/bin/sh\nexit 101\n' >"${root}/usr/sbin/policy-rc.d"
chmod 755 "${root}/usr/sbin/policy-rc.d"
cp -L --remove-destination /etc/resolv.conf "${root}/etc/resolv.conf"
# As on a node whose converge has not ended; and the image belongs to no particular machine.
chroot "${root}" systemctl disable slurmd slurmctld munge
rm -f "${root}/etc/apt/apt.conf.d/99mmdebstrap" "${root}/var/lib/dbus/machine-id" "${root}/etc/hostname"
: >"${root}/etc/machine-id"
chmod 444 "${root}/etc/machine-id"
