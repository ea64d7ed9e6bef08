#!/usr/bin/env bash
# nvidia-smi: how it is asked, what its answers and its ends mean. Sourced by checks.sh.
#
# Every call opens all GPUs. Where persistence mode is on they are open already; where it is off the driver initialises
# each of them for the call and lets go of it afterwards, which takes it out of its lowest power state.
# Source: https://docs.nvidia.com/deploy/driver-persistence/index.html
# So all fields of all GPUs come from one call, a second sample is taken only of GPUs that show something, nothing runs on
# the GPUs themselves, and fields that this driver does not know are not asked for again in this boot.

# shellcheck disable=SC2034 # results for the checks

readonly SMI_LIMIT_S=20
readonly SMI_MEMORY="${CF_ROOT}/run/cycleforge/nvidia-smi"
readonly GPU_FIELDS=(index temperature.gpu persistence_mode
    ecc.errors.uncorrected.volatile.sram ecc.errors.corrected.volatile.sram
    ecc.errors.uncorrected.aggregate.sram ecc.errors.corrected.aggregate.sram
    ecc.errors.uncorrected.volatile.dram ecc.errors.corrected.volatile.dram
    ecc.errors.uncorrected.aggregate.dram ecc.errors.corrected.aggregate.dram
    clocks_event_reasons.active clocks_throttle_reasons.active
    clocks.max.graphics clocks.applications.graphics clocks.max.memory clocks.applications.memory
    fabric.state fabric.status fabric.cliqueId fabric.clusterUuid gpu_recovery_action)
# Not every driver has them: the name of the reasons changed with 535.54, application clocks went, fabric fields came, and
# later the action by which a GPU recovers.
readonly MAY_BE_UNKNOWN='^(clocks_|clocks\.|fabric\.|gpu_recovery_action$)'
# What a field shows in place of a value, with exit code 0. Source: https://docs.nvidia.com/deploy/nvidia-smi/index.html
readonly RESET_WORDS="requires reset" LOST_WORDS="GPU is lost" HANDLE_WORDS="Unable to determine the device handle"

# Of check_gpu_driver, which comes first: what exit codes mean, which cure they need, which of them are questions of ours.
declare -A SMI_MEANING=() SMI_CURE=()
SMI_QUESTIONS=" 2 3 4 13 "

# cure_of_text TEXT: what a GPU needs that shows this, in REPLY; 1 when it shows no fault.
cure_of_text() {
    case "$1" in
        *"${LOST_WORDS}"* | *"${HANDLE_WORDS}"*) REPLY=service ;;
        *"${RESET_WORDS}"*) REPLY=reset ;;
        *"ERR!"* | *"Unknown Error"* | *"Driver/library version mismatch"*) REPLY=reboot ;;
        *) return 1 ;;
    esac
}

# outcome of nvidia-smi: what it was asked wrongly is no fault of the GPU, every other end is.
outcome_of_nvidia_smi() {
    if [[ "${SMI_QUESTIONS}" == *" $1 "* ]]; then
        OUTCOME=not_measured
    elif cure_of_text "${OUTPUT}"; then
        OUTCOME_CURE="${REPLY}"
    else
        OUTCOME_CURE="${SMI_CURE[$1]:-reboot}"
    fi
}

# smi_is_stuck: whether an nvidia-smi of ours is in a system call that does not return. Another one would only stand behind it.
# Any user can give a process this name and this state, so only those of the user that checks count, which is root.
# Source: proc_pid_stat(5), state D; proc_pid_status(5), Uid: real, effective, saved and file system
smi_is_stuck() {
    local file key real effective saved files
    for file in "${CF_ROOT}"/proc/[0-9]*/stat; do
        read_line "${file}"
        if [[ ! "${REPLY}" =~ ^[0-9]+\ \(nvidia-smi\)\ D\  ]]; then continue; fi
        while read -r key real effective saved files; do
            if [[ "${key}" == Uid: && "${real} ${effective} ${saved} ${files}" == "${UID} ${UID} ${UID} ${UID}" ]]; then return 0; fi
        done < <(cat "${file%stat}status" 2>/dev/null)
    done
    return 1
}

# ask_smi KIND WORD...: one call; 0 when it ran, otherwise OUTCOME, OUTCOME_CURE and REPLY as of outcome(), the code in
# SMI_CODE. A driver that hung in this run is not asked again. One hang may be a moment; that the same kind of call hangs in
# the run after, too, is a fault: such a driver "might not recover" (Azure's category UnhealthyGPUNvidiasmi).
SMI_HUNG=false SMI_CODE=0
ask_smi() {
    local -r hung="${SMI_MEMORY}.hung.$1"
    local times words
    shift
    SMI_CODE=0
    if [[ "${SMI_HUNG}" == true ]]; then
        OUTPUT="" OUTCOME=not_measured SMI_CODE=124 REPLY="nvidia-smi gave no answer before"
        return 1
    fi
    # One fault is one finding, and a broken driver is left alone.
    if [[ "${GPU_QUERY}" == failed ]]; then
        OUTPUT="" OUTCOME=not_measured SMI_CODE="${GPU_CODE}" REPLY="nvidia-smi failed before"
        return 1
    fi
    if [[ -e "${hung}" ]] && smi_is_stuck; then
        OUTPUT="" SMI_CODE=124
    else
        run_tool "${SMI_LIMIT_S}" nvidia-smi "$@" || SMI_CODE=$?
    fi
    outcome nvidia-smi "${SMI_CODE}"
    if ((SMI_CODE == 124)); then
        SMI_HUNG=true words="${REPLY}"
        read_line "${hung}"
        if [[ ! "${REPLY}" =~ ^[0-9]{1,6}$ ]]; then REPLY=0; fi
        times=$((REPLY + 1))
        printf '%s\n' "${times}" 2>/dev/null >"${hung}" || true
        if ((times < 2)); then
            OUTCOME=not_measured REPLY="${words}; it fails when it hangs a second time in a row"
        else
            REPLY="${words}, ${times} times in a row"
        fi
    elif ((SMI_CODE != OUT_OF_TIME)) && [[ -e "${hung}" ]]; then
        rm -f "${hung}"
    fi
    [[ "${OUTCOME}" == ran ]]
}

# GPU_ROWS: one line per GPU, fields separated by commas; GPU_AT: the place of a field, where the driver knows it.
declare -a GPU_ROWS=()
declare -A GPU_AT=()
GPU_QUERY="" GPU_WORDS="" GPU_TEXT="" GPU_CURE="" GPU_CODE=0 REASONS_FIELD=""

# query_gpus: once per run; GPU_QUERY is its OUTCOME, GPU_WORDS the words, GPU_TEXT what was printed.
query_gpus() {
    local unknown field known line tries
    if [[ -n "${GPU_QUERY}" ]]; then return; fi
    read_line "${SMI_MEMORY}.unknown"
    unknown=" ${REPLY} " known="${unknown}"
    for ((tries = 0; tries <= ${#GPU_FIELDS[@]}; tries++)); do
        fields_to_ask "${unknown}"
        ask_smi query "--query-gpu=${REPLY}" --format=csv,noheader,nounits || true
        if ((SMI_CODE != 2)) || [[ ! "${OUTPUT}" =~ Field\ \"([^\"]+)\"\ is\ not\ a\ valid ]]; then break; fi
        field="${BASH_REMATCH[1]}"
        if [[ ! "${field}" =~ ${MAY_BE_UNKNOWN} || "${unknown}" == *" ${field} "* ]]; then break; fi
        unknown+="${field} "
    done
    GPU_QUERY="${OUTCOME}" GPU_WORDS="${REPLY}" GPU_CURE="${OUTCOME_CURE}" GPU_CODE="${SMI_CODE}" GPU_TEXT="${OUTPUT}"
    if [[ "${GPU_QUERY}" != ran ]]; then return; fi
    if [[ "${unknown}" != "${known}" ]]; then printf '%s\n' "${unknown}" 2>/dev/null >"${SMI_MEMORY}.unknown" || true; fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^[0-9]+, ]]; then GPU_ROWS+=("${line//, /,}"); fi
    done <<<"${OUTPUT}"
}

# fields_to_ask UNKNOWN: the query in REPLY and the places in GPU_AT. The old name of the reasons is asked for only where
# the new one is unknown.
fields_to_ask() {
    local field list=""
    local -i place=0
    GPU_AT=()
    for field in "${GPU_FIELDS[@]}"; do
        if [[ "$1" == *" ${field} "* ]]; then continue; fi
        if [[ "${field}" == clocks_throttle_reasons.active && -n "${GPU_AT[reasons]:-}" ]]; then continue; fi
        list+="${list:+,}${field}"
        GPU_AT["${field}"]="${place}"
        if [[ "${field}" == *_reasons.active ]]; then GPU_AT[reasons]="${place}" REASONS_FIELD="${field}"; fi
        place+=1
    done
    REPLY="${list}"
}

# gpus_or_not_measured CHECK: 1 with a record when there are no rows to judge, 1 without one where no GPU is expected.
gpus_or_not_measured() {
    query_gpus
    if [[ "${GPU_QUERY}" == ran ]] && ((${#GPU_ROWS[@]} > 0)); then return 0; fi
    if ! no_gpu_expected; then not_measured "$1" "nvidia-smi gave no answer"; fi
    return 1
}

# no_gpu_expected: whether the size may have no GPU (expected=no), and nvidia-smi says that there is none or is not there.
# Its words for that come with several exit codes (6, 9, 12); a GPU on the bus says otherwise.
no_gpu_expected() {
    local vendor
    if [[ "${GIVEN[expected]:-yes}" == yes ]]; then return 1; fi
    case "${GPU_CODE}" in
        127) return 0 ;;
        0) if ((${#GPU_ROWS[@]} > 0)); then return 1; fi ;;
        6 | 9 | 12) ;;
        *) return 1 ;;
    esac
    for vendor in "${CF_ROOT}"/sys/bus/pci/devices/*/vendor; do
        read_line "${vendor}"
        if [[ "${REPLY}" == 0x10de ]]; then return 1; fi
    done
}

# column FIELD...: "GPU N:value" of all rows and these fields in COLUMN; [N/A] where the driver does not know the field.
declare -a COLUMN=()
column() {
    local row name IFS=','
    local -a field=()
    COLUMN=()
    for row in "${GPU_ROWS[@]}"; do
        set -f
        # shellcheck disable=SC2206 # fields of a row
        field=(${row})
        set +f
        for name in "$@"; do
            if [[ -n "${GPU_AT[${name}]:-}" ]]; then
                COLUMN+=("GPU ${field[0]}:${field[${GPU_AT[${name}]}]:-}")
            else
                COLUMN+=("GPU ${field[0]}:[N/A]")
            fi
        done
    done
}
