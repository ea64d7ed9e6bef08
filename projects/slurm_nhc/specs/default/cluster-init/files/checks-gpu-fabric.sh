#!/usr/bin/env bash
# What CUDA needs beside the GPUs: the fabric manager, the registration of every GPU with the NVLink fabric, IMEX, the
# module for InfiniBand, NVIDIA's daemons. Sourced by checks.sh.
#
# On a node with NVSwitches CUDA does not initialise (802, "system not yet initialized") while the fabric manager does not
# run or has not finished. nvidia-smi, DCGM and every counter look healthy meanwhile. The image stops and disables the
# service at shutdown and starts it again at boot, so whether it is enabled says nothing.
# Source: Azure/azhpc-images components/setup_sku_customizations.sh, NVIDIA/NVSentinel issue 889

# in_grace SECONDS: whether the boot is not longer ago than this; what starts then may not have finished.
in_grace() {
    read_line "${CF_ROOT}/proc/uptime"
    [[ "${REPLY}" =~ ^([0-9]{1,9})\. ]] && ((10#${BASH_REMATCH[1]} < $1))
}

# read_units UNIT...: their LoadState and ActiveState in UNIT_LOADED and UNIT_ACTIVE; 1 when systemd does not answer.
declare -A UNIT_LOADED=() UNIT_ACTIVE=()
read_units() {
    local line unit="" loaded="" active="" code=0
    local -r wanted=("${@/%/.service}")
    run_tool 10 systemctl show --property=Id,LoadState,ActiveState "${wanted[@]}" || code=$?
    outcome systemctl "${code}" 'Id='
    if [[ "${OUTCOME}" != ran ]]; then return 1; fi
    # Blocks of lines in any order, an empty line after each.
    while IFS= read -r line; do
        case "${line}" in
            Id=*) unit="${line#Id=}" ;;
            LoadState=*) loaded="${line#*=}" ;;
            ActiveState=*) active="${line#*=}" ;;
            "")
                if [[ -n "${unit}" ]]; then UNIT_LOADED["${unit%.service}"]="${loaded}" UNIT_ACTIVE["${unit%.service}"]="${active}"; fi
                unit="" loaded="" active=""
                ;;
        esac
    done <<<"${OUTPUT}"$'\n'
}

# manager=UNIT wanted='UNIT UNIT' may_stop='UNIT' grace_s=N expected=no: without the manager no program gets CUDA, so that
# fails. The others keep a mode or collect figures: one that is installed and does not run is a warning, and so is a failed
# one of those that are stopped between jobs. A unit that is not installed is not missed.
check_gpu_services() {
    local -r manager="${GIVEN[manager]:-}"
    local unit state down=""
    local -i count=0
    if [[ "${GIVEN[expected]:-yes}" == no ]]; then
        query_gpus
        if no_gpu_expected; then return; fi
    fi
    # shellcheck disable=SC2086 # lists of names
    if ! read_units ${manager} ${GIVEN[wanted]:-} ${GIVEN[may_stop]:-}; then
        not_measured gpu_services "${REPLY}"
        return
    fi
    if [[ -n "${manager}" ]]; then
        state="${UNIT_ACTIVE[${manager}]:-unknown}"
        if [[ "${UNIT_LOADED[${manager}]:-}" == not-found ]]; then state="not installed"; fi
        if [[ "${state}" == active ]]; then
            record pass gpu_fabric_manager "" "" "" "" ""
        elif in_grace "${GIVEN[grace_s]:-300}"; then
            not_measured gpu_fabric_manager "${manager} is ${state}, $((${GIVEN[grace_s]:-300} / 60)) minutes after boot it has to run"
        else
            record reboot gpu_fabric_manager "" "" "" "" "${manager} is ${state}, CUDA does not start without it"
        fi
    fi
    for unit in ${GIVEN[wanted]:-} ${GIVEN[may_stop]:-}; do
        state="${UNIT_ACTIVE[${unit}]:-}"
        if [[ "${UNIT_LOADED[${unit}]:-}" != loaded || "${state}" == @(active|activating|reloading) ]]; then continue; fi
        if [[ " ${GIVEN[may_stop]:-} " == *" ${unit} "* && "${state}" != failed ]]; then continue; fi
        if in_grace "${GIVEN[grace_s]:-300}"; then continue; fi
        count+=1
        down+="${down:+, }${unit} is ${state}"
    done
    judge gpu_services "${count}" le 0 "services down" warn "${down}"
}

# units='UNIT UNIT': of a deep run. What the image starts at boot has ended its start; before a boot's run settle.sh waits for
# it, for within_s at most.
check_boot_services() {
    local unit starting=""
    # shellcheck disable=SC2086 # a list of names
    if ! read_units ${GIVEN[units]:-}; then
        not_measured boot_services "${REPLY}"
        return
    fi
    for unit in ${GIVEN[units]:-}; do
        if [[ "${UNIT_ACTIVE[${unit}]:-}" == @(activating|reloading) ]]; then starting+="${starting:+, }${unit}"; fi
    done
    if [[ -n "${starting}" ]]; then
        not_measured boot_services "still starting while the rest was measured: ${starting}"
    else
        record pass boot_services "" "" "" "" ""
    fi
}

# registration=node|rack grace_s=N: every GPU has joined its NVLink fabric. In a rack it also has a clique of a cluster; on
# a node of its own both are zero.
check_gpu_fabric() {
    local place row state status clique cluster waiting="" bad="" why
    local -a field=()
    gpus_or_not_measured gpu_fabric || return 0
    if [[ -z "${GPU_AT[fabric.state]:-}" || -z "${GPU_AT[fabric.status]:-}" ]]; then
        not_measured gpu_fabric "this driver does not show the state of the fabric"
        return
    fi
    for row in "${GPU_ROWS[@]}"; do
        IFS=',' read -r -a field <<<"${row}"
        place="GPU ${field[0]}" state="${field[${GPU_AT[fabric.state]}]:-}" status="${field[${GPU_AT[fabric.status]}]:-}"
        clique="${field[${GPU_AT[fabric.cliqueId]:-99}]:-}" cluster="${field[${GPU_AT[fabric.clusterUuid]:-99}]:-}" why=""
        # A fault that stands in every field is that of the GPU, not of the fabric.
        if cure_of_text "${state}"; then continue; fi
        if [[ "${state}" != Completed ]]; then
            waiting+="${waiting:+, }${place} ${state:-no answer}"
        elif [[ "${status}" != Success ]]; then
            why="${status}"
        elif [[ "${GIVEN[registration]:-node}" == rack ]]; then
            if [[ ! "${clique}" =~ [1-9] ]]; then why="clique ${clique:-none}"; fi
            if [[ ! "${cluster}" =~ [1-9a-fA-F] || "${cluster}" == *N/A* ]]; then why+="${why:+, }cluster ${cluster:-none}"; fi
        fi
        if [[ -n "${why}" ]]; then bad+="${bad:+, }${place} ${why}"; fi
    done
    if [[ -n "${bad}" ]]; then
        record reboot gpu_fabric "" "" "" "" "${bad}${waiting:+, ${waiting}}"
    elif [[ -z "${waiting}" ]]; then
        record pass gpu_fabric "" "" "" "" ""
    elif in_grace "${GIVEN[grace_s]:-300}"; then
        not_measured gpu_fabric "${waiting}, not Completed yet"
    else
        record reboot gpu_fabric "" "" "" "" "${waiting}, not Completed"
    fi
}

# A GPU reaches InfiniBand by this module or by dma-buf, so its absence alone is a warning: jobs run, and where neither is
# there the bandwidth of the deep checks fails. What usually takes it away, a dead fabric manager, fails by itself.
check_gpu_peermem() {
    local missing=0 detail=""
    if [[ ! -d "${CF_ROOT}/sys/module/nvidia_peermem" ]]; then missing=1; fi
    if ((missing)); then detail="nvidia_peermem is not loaded"; fi
    judge gpu_peermem "${missing}" le 0 "modules missing" warn "${detail}"
}

# Between jobs IMEX is stopped on purpose, but without its channel no job can start it.
check_imex_channel() {
    local -r path=/dev/nvidia-caps-imex-channels/channel0
    if [[ -e "${CF_ROOT}${path}" ]]; then
        record pass imex_channel "" "" "" "" ""
    else
        record reboot imex_channel "" "" "" "" "${path} is not there"
    fi
}
