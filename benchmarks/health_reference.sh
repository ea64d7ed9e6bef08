#!/usr/bin/env bash
# The yardstick of the health benchmark: the same quick checks in the structure of the reference projects, one shell
# process per metric and GPU, and programs in pipes for every figure of a disk, port, mount or counter. Written for the
# comparison; compares as numbers and prints one line per failure. The argument is the root of the (test) node.
set -uo pipefail
readonly root="$1"
readonly gpus=(0 1 2 3 4 5 6 7)
failed=0
fail() {
    echo "ERROR: $*"
    failed=1
}

# gpu_metric GPU FIELD: one figure of one GPU.
gpu_metric() { nvidia-smi -i "$1" "--query-gpu=$2" --format=csv,noheader,nounits | awk '{ print $1 }'; }
remap_metric() { nvidia-smi -i "$1" "--query-remapped-rows=$2" --format=csv,noheader,nounits | cut -d, -f1; }

check_driver() { nvidia-smi >/dev/null || fail "nvidia-smi ended with $?"; }

check_gpu_count() {
    local count
    count="$(nvidia-smi --list-gpus | wc -l)"
    ((count == ${#gpus[@]})) || fail "${count} GPUs"
}

check_gpu_ecc() {
    local gpu kind period memory value limit
    for gpu in "${gpus[@]}"; do
        for memory in sram dram; do
            for period in volatile aggregate; do
                for kind in uncorrected corrected; do
                    value="$(gpu_metric "${gpu}" "ecc.errors.${kind}.${period}.${memory}")"
                    limit=20000000
                    if [[ "${memory}" == sram ]]; then limit=10000; fi
                    if [[ "${memory} ${kind}" == "sram uncorrected" ]]; then limit=0; fi
                    ((value <= limit)) || fail "GPU ${gpu} ${memory} ${kind} ${value}"
                done
            done
        done
    done
}

check_gpu_remap() {
    local gpu field value
    for gpu in "${gpus[@]}"; do
        for field in pending failure uncorrectable; do
            value="$(remap_metric "${gpu}" "remapped_rows.${field}")"
            [[ "${value}" == No || "${value}" == 0 ]] || fail "GPU ${gpu} remap ${field} ${value}"
        done
    done
}

check_gpu_clocks() {
    local gpu kind have most
    for gpu in "${gpus[@]}"; do
        for kind in graphics memory; do
            most="$(gpu_metric "${gpu}" "clocks.max.${kind}")"
            have="$(gpu_metric "${gpu}" "clocks.applications.${kind}")"
            ((have >= most)) || fail "GPU ${gpu} ${kind} clock ${have} of ${most} MHz"
        done
    done
}

check_gpu_modes() {
    local gpu value
    for gpu in "${gpus[@]}"; do
        value="$(gpu_metric "${gpu}" persistence_mode)"
        [[ "${value}" == Enabled ]] || fail "GPU ${gpu} persistence ${value}"
        value="$(gpu_metric "${gpu}" clocks_throttle_reasons.active)"
        ((value & 0xe8)) && fail "GPU ${gpu} throttled ${value}"
        value="$(gpu_metric "${gpu}" temperature.gpu)"
        ((value <= 93)) || fail "GPU ${gpu} ${value} Celsius"
    done
}

check_gpu_nvlink() {
    local gpu inactive
    for gpu in "${gpus[@]}"; do
        inactive="$(nvidia-smi nvlink --status -i "${gpu}" | grep -c -i inactive)"
        ((inactive == 0)) || fail "GPU ${gpu} ${inactive} links inactive"
    done
}

check_gpu_xid() {
    local code
    for code in 48 56 57 58 62 63 64 65 68 69 73 74 79 80 81 92 119 120; do
        if dmesg | grep -q "Xid.*: ${code},"; then fail "XID ${code}"; fi
    done
}

check_infiniband() {
    local port rate counter value
    for port in "${root}"/sys/class/infiniband/mlx5_ib*/ports/1; do
        [[ "$(cat "${port}/state" | cut -d' ' -f2)" == ACTIVE ]] || fail "${port} is not active"
        [[ "$(cat "${port}/phys_state" | cut -d' ' -f2)" == LinkUp ]] || fail "${port} is not up"
        rate="$(cat "${port}/rate" | cut -d' ' -f1)"
        ((rate >= 400)) || fail "${port} ${rate} Gb/s"
        for counter in link_downed link_error_recovery symbol_error port_rcv_errors port_xmit_discards; do
            value="$(cat "${port}/counters/${counter}")"
            ((value <= 1000)) || fail "${port} ${counter} ${value}"
        done
    done
}

check_node() {
    local count value mount disk
    count="$(grep -c '^processor' "${root}/proc/cpuinfo")"
    ((count >= 96)) || fail "${count} threads"
    count="$(grep '^physical id' "${root}/proc/cpuinfo" | sort -u | wc -l)"
    ((count >= 2)) || fail "${count} sockets"
    value="$(awk '/^MemTotal/ { print $2 }' "${root}/proc/meminfo")"
    ((value >= 1867650194)) || fail "${value} KiB of memory"
    value="$(awk '/^SwapTotal/ { print $2 }' "${root}/proc/meminfo")"
    ((value == 0)) || fail "${value} KiB of swap"
    value="$(cut -d. -f1 "${root}/proc/loadavg")"
    ((value < 192)) || fail "load ${value}"
    count=0
    for disk in "${root}"/sys/block/nvme*n1; do
        if cat "${disk}/device/model" | grep -q Direct; then count=$((count + 1)); fi
    done
    ((count >= 8)) || fail "${count} disks"
    for mount in /sched /shared; do
        grep -q "^[^ ]* ${mount} [^ ]* rw" "${root}/proc/mounts" || fail "${mount} is not mounted"
    done
    for mount in / /sched /shared; do
        value="$(df --output=pcent "${root}${mount}" | tail -n 1 | tr -d ' %')"
        ((value <= 90)) || fail "${mount} ${value} %"
        value="$(df --output=ipcent "${root}${mount}" | tail -n 1 | awk '{ print $NF }' | tr -d '%')"
        ((value <= 98)) || fail "${mount} ${value} % of inodes"
    done
    [[ "$(cat "${root}/sys/class/net/eth0/operstate")" == up ]] || fail "eth0 is down"
}

check_node
check_infiniband
check_driver
check_gpu_count
check_gpu_ecc
check_gpu_remap
check_gpu_clocks
check_gpu_modes
check_gpu_nvlink
check_gpu_xid
exit "${failed}"
