#!/usr/bin/env bash
# Checks of one node, run by srun: devices against the VM size, then the health checks of the image.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
readonly sys="${CF_SYS:-/sys}" meminfo="${CF_MEMINFO:-/proc/meminfo}"

# note CHECK VERDICT VALUE EXPECTED UNIT DETAIL: one line of this node's results.
note() {
    record "${checks}" "$@" "" "${SLURMD_NODENAME}"
}

# expect CHECK VALUE EXPECTED UNIT: equal numbers pass; nothing expected is not judged here.
expect() {
    local -r check="$1" value="$2" expected="$3" unit="$4"
    [[ -n "${expected}" ]] || return 0
    if [[ "${value}" == "${expected}" ]]; then
        note "${check}" pass "${value}" "${expected}" "${unit}" ""
    else
        note "${check}" fail "${value}" "${expected}" "${unit}" ""
    fi
}

# first_line FILE: in REPLY, without a program, of which a node with eight ports would start a hundred; empty if it cannot be read.
first_line() {
    REPLY=""
    { read -r REPLY <"$1"; } 2>/dev/null || true
}

check_vm_size() {
    local size
    size="$(curl -sf --noproxy '*' --max-time 10 -H Metadata:true \
        'http://169.254.169.254/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text')" || size=""
    expect vm_size "${size,,}" "${VM_SIZE,,}" ""
}

check_memory() {
    [[ -n "${EXPECT_MEMORY_KIB}" ]] || return 0
    local have verdict=pass
    have="$(awk '/^MemTotal:/ { print $2 }' "${meminfo}")"
    awk -v have="${have:-0}" -v want="${EXPECT_MEMORY_KIB}" -v percent="${MEMORY_TOLERANCE_PERCENT:-0}" \
        'BEGIN { d = have - want; if (d < 0) d = -d; exit !(d * 100 <= want * percent) }' || verdict=fail
    note memory "${verdict}" "${have}" "${EXPECT_MEMORY_KIB}" KiB "tolerance ${MEMORY_TOLERANCE_PERCENT:-0} %"
}

check_gpus() {
    [[ -n "${EXPECT_GPUS}" ]] || return 0
    if [[ "${GPU_VENDOR}" != NVIDIA ]]; then
        note gpus error "" "${EXPECT_GPUS}" GPUs "this recipe counts NVIDIA GPUs only"
        return
    fi
    local count
    count="$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ')" || true
    expect gpus "${count:-0}" "${EXPECT_GPUS}" GPUs
    local pending
    pending="$(nvidia-smi --query-remapped-rows=remapped_rows.pending,remapped_rows.failure --format=csv,noheader 2>/dev/null |
        grep -ciE '(yes|[1-9])')" || true
    expect row_remaps "${pending:-0}" 0 GPUs
}

check_nvme() {
    [[ -n "${EXPECT_NVME}" ]] || return 0
    local disks=() disk
    shopt -s nullglob
    for disk in "${sys}"/block/nvme*n1; do
        first_line "${disk}/device/model"
        if [[ "${REPLY}" == *'Microsoft NVMe Direct Disk'* ]]; then disks+=("${disk}"); fi
    done
    expect nvme_disks "${#disks[@]}" "${EXPECT_NVME}" disks
}

check_infiniband() {
    [[ -n "${EXPECT_IB_PORTS}" ]] || return 0
    local active=0 port state phys_state counter
    shopt -s nullglob
    for port in "${sys}"/class/infiniband/*/ports/1; do
        first_line "${port}/link_layer"
        [[ "${REPLY}" == InfiniBand ]] || continue
        first_line "${port}/state" && state="${REPLY}"
        first_line "${port}/phys_state" && phys_state="${REPLY}"
        first_line "${port}/rate"
        if [[ "${state}" == *ACTIVE && "${phys_state}" == *LinkUp && "${REPLY%%[[:space:]]*}" == "${EXPECT_IB_GBPS}" ]]; then
            active=$((active + 1))
        fi
        for counter in symbol_error link_error_recovery link_downed; do
            first_line "${port}/counters/${counter}"
            if is_count "${REPLY}" && ((REPLY > 0)); then note "ib_${counter}" warn "${REPLY}" 0 events "${port}"; fi
        done
    done
    expect ib_ports_active "${active}" "${EXPECT_IB_PORTS}" "ports at ${EXPECT_IB_GBPS} Gb/s"
}

# The exit-code line at the end is the verdict of the image's checks; a run that ends without it is an error.
check_aznhc() {
    local -r log_file="${results}/${SLURMD_NODENAME}.aznhc.log"
    local -r run="${AZNHC_DIR}/run-health-checks.sh"
    local verdict=error detail
    if [[ "${AZNHC}" == skip || ("${AZNHC}" == auto && -z "${EXPECT_AZNHC}") ]]; then return 0; fi
    if [[ ! -f "${run}" ]]; then
        detail="${run} is not in this image"
    elif ! sudo -n true 2>/dev/null; then
        detail="the health checks need sudo without a password"
    else
        timeout "${AZNHC_TIMEOUT_S}" sudo -n bash "${run}" -a -o "/tmp/aznhc-${SLURM_JOB_ID}.log" >"${log_file}" 2>&1 || true
        # shellcheck disable=SC2024  # root reads, the user writes
        sudo -n cat "/tmp/aznhc-${SLURM_JOB_ID}.log" >>"${log_file}" 2>/dev/null || true
        detail="$(grep -E '^ERROR' "${log_file}" | head -n 3 | tr '\n' ' ' || true)"
        if grep -qi 'not supported' "${log_file}"; then
            verdict=fail detail="the health checks do not support this VM size"
        elif grep -qE '(^|[^A-Za-z])ERROR' "${log_file}"; then
            verdict=fail
        elif ! grep -qE 'Health checks completed with exit code: 0\.?[[:space:]]*$' "${log_file}"; then
            verdict=fail detail="no line with exit code 0"
        elif grep -qE '(^|[^A-Za-z])WARNING' "${log_file}"; then
            verdict=warn detail="near a threshold"
        else
            verdict=pass
        fi
    fi
    note aznhc "${verdict}" "" "exit code 0" "" "${detail}"
}

main() {
    load_settings
    require results SLURMD_NODENAME SLURM_JOB_ID VM_SIZE EXPECT_VCPUS
    readonly checks="${results}/${SLURMD_NODENAME}.tsv"
    keep_node_facts
    check_vm_size
    # shellcheck disable=SC2153  # EXPECT_GPUS is another setting
    expect cpus "$(getconf _NPROCESSORS_ONLN)" "${EXPECT_VCPUS}" CPUs
    check_memory
    check_gpus
    check_nvme
    check_infiniband
    check_aznhc
    [[ -s "${checks}" ]] || note baseline no_baseline "" "" "" "nothing is published for ${VM_SIZE}"
    touch "${results}/${SLURMD_NODENAME}.done"
    [[ "$(worst_in "${checks}")" == pass ]]
}
main "$@"
