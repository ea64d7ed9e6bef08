#!/usr/bin/env bash
# AMD GPUs: driver, count, memory errors, links, heat, what the driver says in the kernel log. Sourced by checks.sh.
#
# rocm-smi is a Python program that prints files of the driver, so it is started once, to see that it serves the GPUs, and
# the figures come from the files. Sources: Linux Documentation/gpu/amdgpu (RAS error counts, hwmon);
# drivers/gpu/drm/amd/amdkfd/kfd_topology.c and kfd_crat.h (links); ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py.

readonly ROCM_SMI_LIMIT_S=20
readonly AMD_MESSAGES="${BASH_SOURCE[0]%/*}/amd-messages.tsv"
# What KFD calls a link from GPU to GPU: CRAT_IOLINK_TYPE_XGMI.
readonly KFD_XGMI=11

# find_amd_gpus: the PCI devices of all AMD GPUs in AMD_GPUS, by address, also of those that have no driver. Classes: 0x12
# accelerators, 0x03 display controllers.
declare -a AMD_GPUS=()
AMD_FOUND=false
find_amd_gpus() {
    local device vendor
    if [[ "${AMD_FOUND}" == true ]]; then return 0; fi
    for device in "${CF_ROOT}"/sys/bus/pci/devices/*; do
        read_line "${device}/vendor"
        vendor="${REPLY}"
        read_line "${device}/class"
        if [[ "${vendor}" == 0x1002 && "${REPLY}" == 0x@(03|12)* ]]; then AMD_GPUS+=("${device}"); fi
    done
    AMD_FOUND=true
}

amd_driver_is_loaded() {
    read_line "${CF_ROOT}/sys/module/amdgpu/initstate"
    [[ "${REPLY}" == live ]]
}

# amd_driver_or_not_measured CHECK: 1 with a record where there is no driver to ask.
amd_driver_or_not_measured() {
    find_amd_gpus
    if amd_driver_is_loaded; then return 0; fi
    not_measured "$1" "amdgpu is not loaded"
    return 1
}

# ready_s=N: how long after a boot the image may still be about to load the driver. Until then a node without it waits
# outside; after that only another boot helps.
check_amd_driver() {
    local uptime severity=reboot
    if amd_driver_is_loaded; then
        record pass amd_driver "" "" "" "" "amdgpu is loaded"
        return
    fi
    find_amd_gpus
    read_line "${CF_ROOT}/proc/uptime"
    uptime="${REPLY%%[. ]*}"
    if [[ "${uptime}" =~ ^[0-9]{1,9}$ ]] && ((uptime < ${GIVEN[ready_s]:-0})); then severity=fail; fi
    record "${severity}" amd_driver "" "" "" "" \
        "amdgpu is not loaded ${uptime:-?} s after the boot, ${#AMD_GPUS[@]} GPUs are on the PCI bus"
}

# count=N: a GPU that is gone from the bus comes back with no reboot of the guest; one that the driver does not serve may.
check_amd_gpu_count() {
    local line seen=" "
    local -i count=0
    find_amd_gpus
    if [[ -n "${GIVEN[count]:-}" ]] && ((${#AMD_GPUS[@]} < GIVEN[count])); then
        judge gpu_count "${#AMD_GPUS[@]}" eq "${GIVEN[count]}" GPUs service "on the PCI bus"
        return
    fi
    amd_driver_or_not_measured gpu_count || return 0
    run_for_result rocm_smi "${ROCM_SMI_LIMIT_S}" 'GPU\[[0-9]+\]' rocm-smi --showid || true
    if [[ "${OUTCOME}" == not_measured ]] && command -v amd-smi >/dev/null; then
        run_for_result amd_smi "${ROCM_SMI_LIMIT_S}" 'GPU: [0-9]+' amd-smi list || true
    fi
    if [[ "${OUTCOME}" != ran ]]; then
        record_outcome gpu_count
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^GPU(\[([0-9]+)\]|:\ ([0-9]+)) && "${seen}" != *" ${BASH_REMATCH[1]} "* ]]; then
            seen+="${BASH_REMATCH[1]} "
            count+=1
        fi
    done <<<"${OUTPUT}"
    judge gpu_count "${count}" eq "${GIVEN[count]:-}" GPUs reboot "as the driver serves them"
}

# uncorrectable_max=N: errors since the driver was loaded, in all blocks of a GPU together. A virtual machine may be shown
# no counts; its kernel log is read all the same.
check_amd_ras() {
    local file key value block place blocks worst_text=""
    local -i total=0 worst=-1 shown=0
    amd_driver_or_not_measured gpu_ras || return 0
    for place in "${!AMD_GPUS[@]}"; do
        total=0 blocks=""
        for file in "${AMD_GPUS[place]}"/ras/*_err_count; do
            [[ -r "${file}" ]] || continue
            block="${file##*/}"
            while IFS=': ' read -r key value; do
                if [[ "${key}" != ue || ! "${value}" =~ ^[0-9]{1,15}$ ]]; then continue; fi
                shown+=1 total+="10#${value}"
                if ((10#${value} > 0)); then blocks+=", ${block%_err_count} ${value}"; fi
            done < <(cat "${file}" 2>/dev/null)
        done
        if ((total > worst)); then worst="${total}" worst_text="GPU ${place}${blocks}"; fi
    done
    if ((shown == 0)); then
        record no_baseline gpu_ras "" "" "" errors "the driver shows no counts on this virtual machine"
        return
    fi
    judge gpu_ras_uncorrectable "${worst}" le "${GIVEN[uncorrectable_max]:-}" errors reset "${worst_text}"
}

# peers=N: to how many other GPUs each one has a link. One that did not come up is missing from the driver's table.
check_amd_xgmi() {
    local node links file key value type peer
    local -i least=-1 count=0 place=0
    local least_place=""
    amd_driver_or_not_measured gpu_xgmi || return 0
    for node in "${CF_ROOT}"/sys/class/kfd/kfd/topology/nodes/*; do
        read_line "${node}/gpu_id"
        if [[ ! "${REPLY}" =~ ^[1-9][0-9]*$ ]]; then continue; fi
        links=" " count=0
        for file in "${node}"/io_links/*/properties; do
            [[ -r "${file}" ]] || continue
            type="" peer=""
            while read -r key value; do
                case "${key}" in type) type="${value}" ;; node_to) peer="${value}" ;; esac
            done <"${file}"
            if [[ "${type}" == "${KFD_XGMI}" && "${links}" != *" ${peer} "* ]]; then
                links+="${peer} "
                count+=1
            fi
        done
        if ((least < 0 || count < least)); then least="${count}" least_place="GPU ${place}, node ${node##*/}"; fi
        place+=1
    done
    if ((place == 0)); then
        not_measured gpu_xgmi "the driver has no table of links"
        return
    fi
    judge gpu_xgmi_links "${least}" ge "${GIVEN[peers]:-}" "links to GPUs" reboot "${least_place}"
}

# Each GPU's own limit: the temperature from which the driver calls its junction critical, both in thousandths.
check_amd_temperature() {
    local place folder now critical hottest="" limit="" where=""
    amd_driver_or_not_measured gpu_temperature || return 0
    for place in "${!AMD_GPUS[@]}"; do
        for folder in "${AMD_GPUS[place]}"/hwmon/hwmon*; do
            read_line "${folder}/temp2_label"
            if [[ "${REPLY}" != junction ]]; then continue; fi
            read_line "${folder}/temp2_input"
            now="${REPLY}"
            read_line "${folder}/temp2_crit"
            critical="${REPLY}"
            if [[ ! "${now} ${critical}" =~ ^[0-9]{1,7}\ [0-9]{1,7}$ ]]; then continue; fi
            if [[ -z "${hottest}" ]] || ((critical - now < limit - hottest)); then
                hottest="${now}" limit="${critical}" where="GPU ${place}"
            fi
        done
    done
    if [[ -z "${hottest}" ]]; then
        record no_baseline gpu_temperature "" "" "" Celsius "the driver shows no temperature on this virtual machine"
        return
    fi
    judge gpu_temperature "$((hottest / 1000))" lt "$((limit / 1000))" Celsius warn "${where}"
}

# look_back_h=N: amdgpu's messages about GPUs on the bus, each judged by the first row of the table that fits its begin: what
# cures it, name of the finding, pattern (ERE), source. One fault prints many lines; a finding is one record with their
# number and the first GPU.
check_amd_log() {
    local -r hours="${GIVEN[look_back_h]:-2}"
    local what line place found=false address take finding pattern now devices=""
    local -a takes=() findings=() patterns=()
    local -A count=() where=()
    while IFS=$'\t' read -r take finding pattern _; do
        if [[ "${take}" == \#* ]]; then continue; fi
        takes+=("${take}") findings+=("${finding}") patterns+=("${pattern}")
    done < <(cat "${AMD_MESSAGES}" 2>/dev/null)
    if ((${#patterns[@]} == 0)); then
        not_measured gpu_log "the table of messages is missing"
        return
    fi
    find_amd_gpus
    for place in "${!AMD_GPUS[@]}"; do devices+="${AMD_GPUS[place]##*/} "; done
    printf -v now '%(%s)T' -1
    # Of a log that is too long, the newest; where these hours have no message, whether there is a log.
    if ! read_kernel_log amd-read.awk "--reverse --since=@$((now - hours * 3600))" "--lines=100" \
        "since=$((now - hours * 3600))" "devices=${devices}"; then
        not_measured gpu_log "${REPLY}"
        return
    fi
    while IFS=$'\t' read -r what address line; do
        if [[ "${what}" != message ]]; then continue; fi
        for place in "${!patterns[@]}"; do
            if [[ ! "${line}" =~ ^(${patterns[place]}) ]]; then continue; fi
            count["${place}"]=$((${count[${place}]:-0} + 1))
            where["${place}"]="${where[${place}]:-${address#-}}"
            break
        done
    done <<<"${OUTPUT}"
    for place in "${!patterns[@]}"; do
        if [[ -z "${count[${place}]:-}" ]]; then continue; fi
        found=true
        judge "gpu_log_${findings[place]}" "${count[${place}]}" le 0 "lines in ${hours} h" "${takes[place]}" "${where[${place}]}"
    done
    if [[ "${found}" == false ]]; then record pass gpu_log 0 le 0 "lines in ${hours} h" "${KERNEL_LOG_NOTE}"; fi
}
