#!/usr/bin/env bash
# usage: cluster.sh FOLDER [ROOT]   The first process of a cluster, in namespaces of its own: mounts, network, munged. Says
# ready. It lives as long as its standard input: when the test ends or is killed, the kernel ends every process below it.
# With ROOT, the programs of that folder take the place of the host's.
set -euo pipefail
# shellcheck source=tests/bed/cloud/machine/munge.sh
source "$1/machine/munge.sh"
readonly devices=(null:3 zero:5 full:7 random:8 urandom:9)

# enter FOLDER ROOT: ROOT below a layer that ends with the cluster becomes the root of this process and of all that enter
# its mount namespace
enter() {
    local layer="$1/layer"
    mount -t tmpfs tmpfs "${layer}"
    mkdir "${layer}"/{upper,work,root}
    mount -t overlay -o "lowerdir=$2,upperdir=${layer}/upper,workdir=${layer}/work" overlay "${layer}/root"
    cd "${layer}/root"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=1777 tmpfs tmp
    mount --bind "$1" mnt
    mkdir before
    pivot_root . before
    umount --lazy before
}

# Every path is the one that cyclecloud-slurm uses; the host keeps its own behind these mounts.
mount_folders() {
    if (($# == 2)); then enter "$@"; else mount --bind "$1" /mnt; fi
    mount --bind /mnt/hosts /etc/hosts
    mount --bind /mnt/etc /etc/slurm
    mount --bind /mnt/opt /opt
    mount --bind /mnt/log/scheduler /var/log
    mount --bind /mnt/spool /var/spool
}

# Eight GPUs of a node are files that slurmd opens and jobs see; nothing is behind them.
make_devices() {
    local device number
    mount -t tmpfs tmpfs /mnt/dev
    for device in "${devices[@]}"; do mknod -m 666 "/mnt/dev/${device%:*}" c 1 "${device#*:}"; done
    for number in {0..7}; do mknod -m 666 "/mnt/dev/nvidia${number}" c 1 3; done
    mknod -m 666 /mnt/dev/tty c 5 0
    mkdir /mnt/dev/{pts,shm}
    mount --rbind /dev/pts /mnt/dev/pts
    mount -t tmpfs tmpfs /mnt/dev/shm
    ln -s pts/ptmx /mnt/dev/ptmx
    ln -s /proc/self/fd /mnt/dev/fd
    mount --rbind /mnt/dev /dev
}

# The bridge is the scheduler's link, and where the links of nodes end. It has an address of its own: without one it takes
# that of one of its links, another one when a node starts or stops, and for half a minute no node reaches the scheduler.
# Source: https://github.com/torvalds/linux/blob/v6.8/net/bridge/br_stp_if.c (br_stp_recalculate_bridge_id)
make_network() {
    ip link set lo up
    ip link add eth0 address 02:00:0a:4d:00:fe type bridge
    ip addr add 10.77.0.254/16 dev eth0
    ip link set eth0 up
}

hostname scheduler
make_network
mount_folders "$@"
make_devices
(umask 077; head -c 1024 /dev/urandom >/mnt/munge.key)
start_munge
echo ready
# Bash takes in, meanwhile, the exit codes of daemons whose parents have gone.
read -r _ || :
