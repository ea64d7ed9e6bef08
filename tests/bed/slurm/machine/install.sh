#!/usr/bin/env bash
set -euo pipefail
role="$1" name="$2" cluster="$3"
shift 3
# As systemctl does, without the second that its look at old init scripts takes.
enable() {
    local unit="/lib/systemd/system/$1"
    if [[ -e "/etc/systemd/system/$1" ]]; then unit="/etc/systemd/system/$1"; fi
    mkdir -p "/etc/systemd/system/$2.wants"
    ln -sf "${unit}" "/etc/systemd/system/$2.wants/$1"
}
# The image: tools of a GPU node, and the kernel log of the test.
mv /usr/bin/journalctl /usr/bin/journalctl.real
install -m 755 /fake/bin/kernel-log /usr/bin/journalctl
install -m 755 /fake/bin/health /usr/bin/health
if [[ "${role}" == execute ]]; then
    install -m 755 -t /usr/bin /fake/bin/{nvidia-smi,nvbandwidth,ib_write_bw,mpirun,dcgmi}
    install -D -m 755 /fake/bin/all_reduce_perf /opt/nccl-tests/build/all_reduce_perf
    mkdir -p /opt/microsoft /usr/local/nccl-rdma-sharp-plugins/lib
    cp -a /fake/opt/microsoft/. /opt/microsoft/
    cp /fake/etc/nccl.conf /etc/nccl.conf
    install -m 644 -t /etc/systemd/system /fake/units/fake-hardware.service /fake/units/nvidia-fabricmanager.service
    enable fake-hardware.service sysinit.target
    enable nvidia-fabricmanager.service multi-user.target
    systemctl start nvidia-fabricmanager.service
    bash /fake/hardware.sh
fi
# cyclecloud/slurm: configured, enabled, not started.
install -o munge -g munge -m 400 /sched/munge.key /etc/munge/munge.key
if [[ "${role}" == scheduler ]]; then
    install -d -o slurm -g slurm "/sched/${cluster}/"{spool/slurmctld,prolog.d,epilog.d}
fi
mkdir -p /etc/slurm
for file in "$@"; do ln -sfn "/sched/${cluster}/${file}" "/etc/slurm/${file}"; done
printf 'SLURMD_OPTIONS=-b -N %s\n' "${name}" >/etc/default/slurmd
mkdir -p /etc/systemd/system/slurmd.service.d
cat >/etc/systemd/system/slurmd.service.d/override.conf <<'UNIT'
[Unit]
After=munge.service network-online.target local-fs.target remote-fs.target
Wants=network-online.target
Requires=munge.service network-online.target remote-fs.target local-fs.target
RequiresMountsFor=/sched

[Service]
EnvironmentFile=-/etc/sysconfig/slurmd
EnvironmentFile=-/etc/default/slurmd
RuntimeDirectory=slurm
RuntimeDirectoryMode=0755
Restart=always
RestartSec=10s
UNIT
enable munge.service multi-user.target
if [[ "${role}" == scheduler ]]; then
    enable slurmctld.service multi-user.target
else
    enable slurmd.service multi-user.target
fi
systemctl daemon-reload
