#!/usr/bin/env bash
# GPU count, memory errors, NVLink, temperature, clocks, throttling: counters only, a job does not notice. Sourced
# by checks.sh. All checks of GPU fields share one call of nvidia-smi for all GPUs together.

readonly SMI_LIMIT_S=20
readonly GPU_FIELDS=index,temperature.gpu,persistence_mode,ecc.errors.uncorrected.volatile.sram,ecc.errors.corrected.volatile.sram,ecc.errors.uncorrected.aggregate.sram,ecc.errors.corrected.aggregate.sram,ecc.errors.uncorrected.volatile.dram,ecc.errors.corrected.volatile.dram,ecc.errors.uncorrected.aggregate.dram,ecc.errors.corrected.aggregate.dram
readonly CLOCK_FIELDS=clocks.max.graphics,clocks.applications.graphics,clocks.max.memory,clocks.applications.memory
readonly REMAP_FIELDS=gpu_bus_id,remapped_rows.pending,remapped_rows.failure,remapped_rows.uncorrectable

# run_smi WORD...: a driver that hung once in this run hangs again, so it is asked only once.
SMI_HUNG=false
run_smi() {
    local code=0
    if [[ "${SMI_HUNG}" == true ]]; then
        OUTPUT=""
        return 124
    fi
    run_tool "${SMI_LIMIT_S}" nvidia-smi "$@" || code=$?
    if ((code == 124)); then SMI_HUNG=true; fi
    return "${code}"
}

declare -a GPU_ROWS=()
GPU_QUERY="" GPU_REASONS_FIELD="" GPU_TEXT=""

# query_gpus: rows of all GPUs in GPU_ROWS, fields as in GPU_FIELDS, then the reasons for lower clocks, then CLOCK_FIELDS.
# A field that the driver does not know fails the whole query with code 2: the name of the reasons changed with driver
# 535.54, and drivers without application clocks do not know those.
query_gpus() {
    local code=2 reasons clocks line
    if [[ -n "${GPU_QUERY}" ]]; then return "${GPU_QUERY}"; fi
    for clocks in ",${CLOCK_FIELDS}" ""; do
        for reasons in clocks_event_reasons.active clocks_throttle_reasons.active; do
            if ((code != 2)); then continue; fi
            code=0
            run_smi "--query-gpu=${GPU_FIELDS},${reasons}${clocks}" --format=csv,noheader,nounits || code=$?
            GPU_REASONS_FIELD="${reasons}"
        done
    done
    GPU_QUERY="${code}"
    GPU_TEXT="${OUTPUT:0:200}"
    GPU_ROWS=()
    if ((code == 0)); then
        while IFS= read -r line; do
            if [[ "${line}" =~ ^[0-9]+, ]]; then GPU_ROWS+=("${line// /}"); fi
        done <<<"${OUTPUT}"
    fi
    return "${code}"
}

# gpus_or_not_measured CHECK: 1 with a record when there are no rows to judge, 1 without one where no GPU is expected.
gpus_or_not_measured() {
    query_gpus || true
    if ((GPU_QUERY == 0 && ${#GPU_ROWS[@]} > 0)); then return 0; fi
    if ((GPU_QUERY != 127)) || [[ "${GIVEN[expected]:-yes}" == yes ]]; then not_measured "$1" "nvidia-smi gave no answer"; fi
    return 1
}

# column NUMBER...: "GPU N:value" of all rows and these fields (from 0) in COLUMN.
declare -a COLUMN=()
column() {
    local row number
    local -a field=()
    COLUMN=()
    for row in "${GPU_ROWS[@]}"; do
        IFS=',' read -r -a field <<<"${row}"
        for number in "$@"; do COLUMN+=("GPU ${field[0]}:${field[${number}]:-}"); done
    done
}

# code_N=WORDS: the driver's own exit codes name a fault; a missing or hanging program only means that nothing was
# measured. Words have "_" for blanks. expected=no: this VM size may have no GPU.
check_gpu_driver() {
    local code=0 meaning
    query_gpus || code=$?
    if ((code == 0)); then
        record pass nvidia_smi 0 eq 0 "exit code" ""
        return
    fi
    if [[ "${GIVEN[expected]:-yes}" == no ]] && ((code == 127)); then return 0; fi
    meaning="${GIVEN[code_${code}]:-}"
    if [[ -n "${meaning}" ]]; then
        record fail nvidia_smi "${code}" eq 0 "exit code" "${meaning//_/ }"
    else
        why_not "${code}" nvidia-smi
        not_measured nvidia_smi "${REPLY}"
    fi
}

# count=N
check_gpu_count() {
    query_gpus || true
    if ((GPU_QUERY != 0)); then
        if ((GPU_QUERY != 127)) || [[ "${GIVEN[expected]:-yes}" == yes ]]; then not_measured gpu_count "nvidia-smi gave no answer"; fi
        return 0
    fi
    # No row at all is a count of zero only when the driver says so in words; otherwise it is a broken answer.
    if ((${#GPU_ROWS[@]} == 0)) && [[ "${GPU_TEXT,,}" != *"no devices"* ]]; then
        not_measured gpu_count "nvidia-smi printed no GPU: ${GPU_TEXT:0:80}"
        return 0
    fi
    judge gpu_count "${#GPU_ROWS[@]}" eq "${GIVEN[count]:-}" GPUs
}

# warn_above=N
check_gpu_temperature() {
    gpus_or_not_measured gpu_temperature || return 0
    column 1
    worst gpu_temperature le "${GIVEN[warn_above]:-}" Celsius warn "${COLUMN[@]}"
}

check_gpu_persistence() {
    local item off=""
    local -i count=0
    gpus_or_not_measured gpu_persistence || return 0
    column 2
    for item in "${COLUMN[@]}"; do
        if [[ "${item#*:}" != Enabled ]]; then
            off+="${off:+, }${item%%:*}"
            count+=1
        fi
    done
    judge gpu_persistence "${count}" le 0 "GPUs without" warn "${off}"
}

# sram_uncorrectable_max=N sram_correctable_max=N dram_any_max=N: uncorrectable errors of DRAM lead to row remaps, which are
# judged by themselves; here they are a warning.
check_gpu_ecc() {
    if [[ -z "${GIVEN[sram_uncorrectable_max]:-}" ]]; then
        no_baseline gpu_ecc errors
        return
    fi
    gpus_or_not_measured gpu_ecc || return 0
    column 3 5
    worst gpu_ecc_sram_uncorrectable le "${GIVEN[sram_uncorrectable_max]}" errors fail "${COLUMN[@]}"
    column 4 6
    worst gpu_ecc_sram_correctable le "${GIVEN[sram_correctable_max]:-}" errors fail "${COLUMN[@]}"
    column 7 8 9 10
    worst gpu_ecc_dram le "${GIVEN[dram_any_max]:-}" errors fail "${COLUMN[@]}"
    column 7 9
    worst gpu_ecc_dram_uncorrectable le 0 errors warn "${COLUMN[@]}"
}

# error_mask=N: bits that stand in two samples one second apart; a single one is also seen when power is switched.
check_gpu_throttling() {
    local item slowed="" line code=0
    local -a names=()
    local -r mask="${GIVEN[error_mask]:-}"
    if [[ -z "${mask}" ]]; then
        no_baseline gpu_throttling GPUs
        return
    fi
    gpus_or_not_measured gpu_throttling || return 0
    column 11
    for item in "${COLUMN[@]}"; do
        if [[ ! "${item#*:}" =~ ^0x[0-9a-fA-F]{1,16}$ ]]; then
            not_measured gpu_throttling "${item%%:*} shows '${item#*:}'"
            return
        fi
        if ((${item#*:} & mask)); then slowed+=" ${item%%:*},"; fi
    done
    if [[ -n "${slowed}" ]]; then
        sleep "${CYCLEFORGE_SAMPLE_S:-1}"
        run_smi "--query-gpu=index,${GPU_REASONS_FIELD}" --format=csv,noheader,nounits || code=$?
        if ((code != 0)); then
            why_not "${code}" nvidia-smi
            not_measured gpu_throttling "${REPLY}"
            return
        fi
        while IFS=', ' read -r line item; do
            if [[ "${slowed}" == *" GPU ${line},"* && "${item}" =~ ^0x[0-9a-fA-F]{1,16}$ ]] && ((item & mask)); then
                names+=("GPU ${line} ${item}")
            fi
        done <<<"${OUTPUT}"
    fi
    judge gpu_throttling "${#names[@]}" le 0 "GPUs slowed by heat or power" fail "${names[*]}"
}

# Application clocks below the maximum that the GPU itself reports. GPUs without application clocks run at their maximum.
check_gpu_clocks() {
    local row low=""
    local -i count=0
    local -a field=()
    gpus_or_not_measured gpu_clocks || return 0
    for row in "${GPU_ROWS[@]}"; do
        IFS=',' read -r -a field <<<"${row}"
        if [[ "${field[12]:-} ${field[13]:-} ${field[14]:-} ${field[15]:-}" =~ ^[0-9]+\ [0-9]+\ [0-9]+\ [0-9]+$ ]] &&
            ((field[13] < field[12] || field[15] < field[14])); then
            count+=1
            low+="${low:+, }GPU ${field[0]} ${field[13]} of ${field[12]} MHz"
        fi
    done
    judge gpu_clocks "${count}" le 0 "GPUs below their maximum" warn "${low}"
}

# yes_no TEXT: counts and words both occur, depending on driver and GPU.
yes_no() {
    case "$1" in
        Yes) REPLY=1 ;;
        No) REPLY=0 ;;
        *) REPLY="$1" ;;
    esac
}

# pending_max=N failure_max=N uncorrectable_max=N
check_gpu_remap() {
    local line code=0 index=0
    local -a field=() pending=() failure=() uncorrectable=()
    if [[ -z "${GIVEN[uncorrectable_max]:-}" ]]; then
        no_baseline gpu_remap rows
        return
    fi
    run_smi "--query-remapped-rows=${REMAP_FIELDS}" --format=csv,noheader,nounits || code=$?
    if ((code != 0)); then
        why_not "${code}" "nvidia-smi --query-remapped-rows"
        not_measured gpu_remap "${REPLY}"
        return
    fi
    while IFS= read -r line; do
        IFS=',' read -r -a field <<<"${line// /}"
        ((${#field[@]} == 4)) || continue
        yes_no "${field[1]}"
        pending+=("GPU ${index}:${REPLY}")
        yes_no "${field[2]}"
        failure+=("GPU ${index}:${REPLY}")
        uncorrectable+=("GPU ${index}:${field[3]}")
        index=$((index + 1))
    done <<<"${OUTPUT}"
    if ((index == 0)); then
        not_measured gpu_remap "nvidia-smi printed no rows"
        return
    fi
    worst gpu_remap_pending le "${GIVEN[pending_max]:-}" rows reset "${pending[@]}"
    worst gpu_remap_failure le "${GIVEN[failure_max]:-}" failures service "${failure[@]}"
    worst gpu_remap_uncorrectable le "${GIVEN[uncorrectable_max]}" rows service "${uncorrectable[@]}"
}

# retired_max=N: GPUs before the A100 retire pages instead of remapping rows. More than the limit and one more waiting fails.
check_gpu_pages() {
    local line code=0
    local -a field=() full=()
    local -i rows=0
    if [[ -z "${GIVEN[retired_max]:-}" ]]; then
        no_baseline gpu_retired_pages pages
        return
    fi
    run_smi \
        --query-gpu=index,retired_pages.single_bit_ecc.count,retired_pages.double_bit.count,retired_pages.pending \
        --format=csv,noheader,nounits || code=$?
    while IFS= read -r line; do
        IFS=',' read -r -a field <<<"${line// /}"
        if [[ "${field[*]}" =~ ^[0-9]+\ [0-9]{1,9}\ [0-9]{1,9}\ (Yes|No)$ ]]; then
            rows+=1
            if ((field[1] + field[2] > GIVEN[retired_max])) && [[ "${field[3]}" == Yes ]]; then
                full+=("GPU ${field[0]} $((field[1] + field[2])) pages")
            fi
        fi
    done <<<"${OUTPUT}"
    if ((code != 0 || rows == 0)); then
        why_not "${code}" "nvidia-smi retired_pages"
        if ((code == 0)); then REPLY="nvidia-smi printed no retired pages"; fi
        not_measured gpu_retired_pages "${REPLY}"
        return
    fi
    judge gpu_retired_pages "${#full[@]}" le 0 "GPUs above ${GIVEN[retired_max]} pages with one pending" fail "${full[*]}"
}

# inactive_max=N
check_gpu_nvlink() {
    local code=0 line links=0 inactive=0
    run_smi nvlink --status || code=$?
    while IFS= read -r line; do
        if [[ "${line}" =~ Link\ [0-9]+: ]]; then
            links=$((links + 1))
            if [[ "${line,,}" == *inactive* ]]; then inactive=$((inactive + 1)); fi
        fi
    done <<<"${OUTPUT}"
    if ((code != 0 || links == 0)); then
        why_not "${code}" "nvidia-smi nvlink"
        if ((code == 0)); then REPLY="nvidia-smi nvlink printed no link"; fi
        not_measured gpu_nvlink "${REPLY}"
        return
    fi
    judge gpu_nvlink_inactive "${inactive}" le "${GIVEN[inactive_max]:-}" "of ${links} links"
}

# count=N: AMD GPUs, as rocm-smi lists them.
check_amd_gpu_count() {
    local code=0 line count=0
    run_tool "${SMI_LIMIT_S}" rocm-smi -l || code=$?
    if ((code != 0)); then
        why_not "${code}" rocm-smi
        not_measured gpu_count "${REPLY}"
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^GPU\[[0-9]+\] ]]; then count=$((count + 1)); fi
    done <<<"${OUTPUT}"
    judge gpu_count "${count}" eq "${GIVEN[count]:-}" GPUs
}

# profile=P count=N: MIG slices of all GPUs together; a slice of another profile counts for none.
check_mig_slices() {
    local line code=0 fitting=0 others=0
    run_smi -L || code=$?
    if ((code != 0)); then
        why_not "${code}" nvidia-smi
        not_measured mig_slices "${REPLY}"
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^[[:space:]]+MIG[[:space:]]+([^[:space:]]+) ]]; then
            if [[ "${BASH_REMATCH[1]}" == "${GIVEN[profile]:-}" ]]; then fitting=$((fitting + 1)); else others=$((others + 1)); fi
        fi
    done <<<"${OUTPUT}"
    judge mig_slices "${fitting}" eq "${GIVEN[count]:-}" "slices of ${GIVEN[profile]:-}" fail "${others} of other profiles"
}

# checks="A B" why="...": what cannot be measured on this node, named, so that nobody takes it for measured.
check_not_supported() {
    local name
    for name in ${GIVEN[checks]:-}; do
        not_measured "${name}" "${GIVEN[why]:-not part of this version for this VM size}"
    done
}
