#!/usr/bin/env bash
# CycleForge (pyxis_enroot), prolog of GPU jobs: CUDA needs /dev/nvidia-uvm, which only root can create; the boot unit of
# misc_ndv4 does, and a driver that was loaded again has lost it. Other jobs and nodes pass at once. A GPU job without
# the device would fail, so Slurm drains the node and starts the job elsewhere. Slurm gives hooks no PATH.
readonly DEVICES="${CYCLEFORGE_ROOT:-}/dev"
[[ -n "${CYCLEFORGE_ROOT:-}" ]] || export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[[ -n "${SLURM_JOB_GPUS:-}" && -e "${DEVICES}/nvidia0" && ! -e "${DEVICES}/nvidia-uvm" ]] || exit 0
timeout --kill-after=1 10 nvidia-modprobe -u -c 0
[[ -e "${DEVICES}/nvidia-uvm" ]] && exit 0
timeout --kill-after=1 10 modprobe nvidia-uvm
major="$(awk '$2 == "nvidia-uvm" { print $1; exit }' "${CYCLEFORGE_ROOT:-}/proc/devices")"
[[ -z "${major}" ]] || mknod -m 666 "${DEVICES}/nvidia-uvm" c "${major}" 0
[[ -e "${DEVICES}/nvidia-uvm" ]] && exit 0
echo "CycleForge: /dev/nvidia-uvm is missing and neither nvidia-modprobe nor modprobe made it; see 'dmesg' for the driver" >&2
exit 1
