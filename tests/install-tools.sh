#!/usr/bin/env bash
# Installs the programs that tests run and PyPI does not have. Without root or apt nothing is installed, and the tests
# that need them say why they are skipped.
set -euo pipefail
# program=Debian package
readonly wanted=(
    cloud-init=cloud-init curl=curl flock=util-linux git=git perl=perl ps=procps
    debootstrap=debootstrap zstd=zstd systemd-nspawn=systemd-container ip=iproute2
    slurmctld=slurmctld slurmd=slurmd srun=slurm-client munged=munge
    qemu-system-x86_64=qemu-system-x86 depmod=kmod mke2fs=e2fsprogs
)

missing=()
for entry in "${wanted[@]}"; do
    command -v "${entry%%=*}" >/dev/null || missing+=("${entry#*=}")
done
((${#missing[@]})) || exit 0
if [[ "$(id -u)" != 0 ]] || ! command -v apt-get >/dev/null; then
    printf 'not installed (needs root and apt): %s\n' "${missing[*]}" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# The tests start daemons themselves, in folders of their own; apt must not start the packages' own.
readonly policy=/usr/sbin/policy-rc.d
if [[ ! -e "${policy}" ]]; then
    trap 'rm -f "${policy}"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"${policy}"
    chmod 755 "${policy}"
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" slurm-wlm-basic-plugins >/dev/null
