#!/usr/bin/env bash
set -euo pipefail
name="$1" group="$2"
shift 2
install -D -m 755 /fake/jetpack /opt/cycle/jetpack/bin/jetpack
# The scripts know the systems of CycleCloud; this one stands for Ubuntu, whose packages it has.
printf 'ID=ubuntu\nVERSION_ID="22.04"\n' >/etc/os-release
install -o munge -g munge -m 400 /sched/munge.key /etc/munge/munge.key
install -m 644 /fake/nvme.mount /etc/systemd/system/nvme.mount
install -d -o slurm -g slurm /var/spool/slurmctld
mkdir -p /etc/slurm/plugstack.conf.d /nvme
ln -sf /sched/slurm.conf /sched/gres.conf /etc/slurm/
printf 'SLURMD_OPTIONS=-b -N %s\n' "${name}" >/etc/default/slurmd
groupadd --gid "${group}" people
for user in "$@"; do
    useradd --uid "${user#*=}" --gid "${group}" --no-create-home --home-dir "/home/${user%=*}" "${user%=*}"
done
# Debian's plug-in asks for the name of PMIx that comes with libpmix-dev.
cd /usr/lib/*/pmix2/lib
ln -sf libpmix.so.2 libpmix.so
systemctl daemon-reload
systemctl --quiet enable --now nvme.mount
ln -s /lib/systemd/system/munge.service /etc/systemd/system/multi-user.target.wants/munge.service
