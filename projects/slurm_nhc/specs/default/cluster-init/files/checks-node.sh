#!/usr/bin/env bash
# Processors, memory, local disks, mounts. Sourced by health.sh.

check_node() {
    check_cpus
    check_memory
    check_nvme
    check_nvme_mount
    check_mounts
    check_system_disk
}

check_cpus() {
    local count
    count="$(grep -c '^processor' "${CF_ROOT}/proc/cpuinfo" 2>/dev/null || true)"
    judge cpu_threads "${count}" ge "${CF_FIGURES[cpu.threads]:-}" threads
}

# The tolerance is a share of the actual size, as in the source of the figure. More memory than expected is no fault.
check_memory() {
    local -r expected="${CF_FIGURES[memory.kib]:-}" tolerance="${CF_FIGURES[memory.tolerance_percent]:-}"
    local name value=""
    while read -r name value _; do
        if [[ "${name}" == MemTotal: ]]; then break; fi
        value=""
    done <"${CF_ROOT}/proc/meminfo" || true
    if [[ ! "${expected}" =~ ^[0-9]+$ || ! "${tolerance}" =~ ^[0-9]+$ ]]; then
        record no_baseline memory_total "${value}" "" "" KiB ""
        return
    fi
    judge memory_total "${value}" ge "$((expected * 100 / (100 + tolerance)))" KiB fail "${expected} KiB less ${tolerance} %"
}

check_nvme() {
    local path model count=0
    for path in "${CF_ROOT}"/sys/block/nvme*n*; do
        [[ -e "${path}" ]] || continue
        model="$(cat "${path}/device/model" 2>/dev/null || true)"
        # Remote disks behind an NVMe controller are not the VM's local disks.
        if [[ "${model}" != "MSFT NVMe Accelerator"* ]]; then count=$((count + 1)); fi
    done
    if [[ -n "${CF_FIGURES[nvme.count]:-}" ]]; then
        judge nvme_disks "${count}" ge "${CF_FIGURES[nvme.count]}" disks
    elif [[ "${CF_FIGURES[nvme.documented]:-0}" != 0 ]]; then
        # No health source confirms this count, so a smaller one is reported and drains nothing.
        judge nvme_disks "${count}" ge "${CF_FIGURES[nvme.documented]}" disks warn
    fi
}

# mount_options PATH: REPLY is the option list of the last mount at this path, empty when there is none.
mount_options() {
    local path options
    REPLY=""
    while read -r _ path _ options _; do
        if [[ "${path}" == "$1" ]]; then REPLY="${options}"; fi
    done <"${CF_ROOT}/proc/mounts" || true
}

# Only on nodes where misc_ndv4 mounts the disks.
check_nvme_mount() {
    local state="${CF_STATE_DIR}/nvme.state" path
    [[ -r "${state}" ]] || return 0
    path="$(sed -n 's/^mount_point=//p' "${state}")"
    if [[ "$(sed -n 's/^expected_disks=//p' "${state}")" == 0 ]] && ! grep -q '^mounted=true' "${state}"; then return 0; fi
    check_one_mount nvme_mount "${path}"
}

# The shared file systems that the definition mounts, never a list that some other image or cluster had.
check_mounts() {
    local path
    local -a paths=()
    IFS=',' read -r -a paths <<<"${CF_CONF[mounts]}"
    for path in "${paths[@]}"; do check_one_mount mount "${path}"; done
}

check_one_mount() {
    local -r check="$1" path="$2"
    mount_options "${path}"
    if [[ -z "${REPLY}" ]]; then
        record fail "${check}" "" "" "" "" "${path} is not mounted"
    elif [[ ",${REPLY}," != *,rw,* ]]; then
        record fail "${check}" "" "" "" "" "${path} is mounted read-only"
    elif ! timeout --kill-after=1 5 stat --file-system "${CF_ROOT}${path}" >/dev/null 2>&1; then
        record fail "${check}" "" "" "" "" "${path} does not answer within 5 s"
    else
        record pass "${check}" "" "" "" "" "${path}"
    fi
}

# A full disk is mostly somebody's files, so it is a warning.
check_system_disk() {
    local output used
    output="$(timeout --kill-after=1 5 df --output=pcent "${CF_ROOT}/" 2>/dev/null || true)"
    used="${output##*$'\n'}"
    used="${used//[^0-9]/}"
    judge system_disk_used "${used}" le "${CF_FIGURES[disk.used_percent_max]:-}" % warn
}
