#!/usr/bin/env bash
# usage: newer.sh ROOT FOLDER   The first process of a cluster on a Debian root with a newer Slurm, in namespaces of its own:
# a network, and FOLDER as the root's writable places. Says ready; lives as long as its standard input.
set -euo pipefail
root="$1" folder="$2"
ip link set lo up
# Slurm asks for addresses only of families that some link beside the loopback has.
ip link add eth0 type bridge
ip addr add 10.77.0.254/16 dev eth0
ip link set eth0 up
hostname scheduler
mount --bind "${root}" "${root}"
mount -t proc proc "${root}/proc"
mount --rbind /dev "${root}/dev"
mount --rbind /sys "${root}/sys"
mount -t tmpfs tmpfs "${root}/run"
mount --bind "${folder}/etc" "${root}/etc"
mount --bind "${folder}/spool" "${root}/var/spool"
mount --bind "${folder}/log" "${root}/var/log"
mount --bind "${folder}/shared" "${root}/mnt"
echo ready
# Bash takes in, meanwhile, the exit codes of daemons whose parents have gone.
read -r _ || :
