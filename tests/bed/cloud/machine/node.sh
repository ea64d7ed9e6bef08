#!/usr/bin/env bash
# usage: node.sh NAME SLURMD-OPTION…   The first process of a node's VM, in its own host name, processes and mounts.
set -euo pipefail
# shellcheck source=tests/bed/cloud/machine/munge.sh
source /mnt/machine/munge.sh
readonly name="$1"
readonly own="/mnt/nodes/${name}"
# slurmctld compares seconds: it takes a boot in the second of its request for the one before, and waits for another.
settle_s=2.2

hostname "${name}"
# A new VM has an empty disk; only what it logged stays.
rm -rf "${own}"
mkdir -p "${own}/spool" "/mnt/log/${name}/slurmd"
mount --bind "/mnt/log/${name}" /var/log
mount --bind "${own}/spool" /var/spool
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd /
if [[ -e "/mnt/azure/hang/${name}" ]]; then exec sleep infinity; fi
start_munge
# What another bed lets its nodes do before slurmd starts.
# shellcheck disable=SC1091
if [[ -r /mnt/machine/boot.sh ]]; then source /mnt/machine/boot.sh; fi
sleep "${settle_s}"
slurmd -D "${@:2}" -N "${name}" &
wait "$!"
