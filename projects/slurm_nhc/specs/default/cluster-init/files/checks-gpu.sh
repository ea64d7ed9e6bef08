#!/usr/bin/env bash
# GPU count, memory errors, NVLink, temperature, clocks, throttling: counters only, a job does not notice. Sourced by
# checks.sh. All checks of GPU fields share one call of nvidia-smi for all GPUs together (smi.sh).
# shellcheck disable=SC2034 # SMI_... are for smi.sh

readonly REMAP_FIELDS=gpu_bus_id,remapped_rows.pending,remapped_rows.failure,remapped_rows.uncorrectable
readonly PAGE_FIELDS=retired_pages.single_bit_ecc.count,retired_pages.double_bit.count,retired_pages.pending

# unmeasured='CODE CODE' code_N=CURE:WORDS: how nvidia-smi ended. Words have "_" for blanks. expected=no: this VM size may
# have no GPU. Codes without words of their own need a reboot: the driver is what they have in common.
check_gpu_driver() {
    local key line
    SMI_QUESTIONS=" ${GIVEN[unmeasured]:-2 3 4 13} "
    for key in "${!GIVEN[@]}"; do
        if [[ "${key}" == code_* ]]; then
            SMI_CURE["${key#code_}"]="${GIVEN[${key}]%%:*}"
            line="${GIVEN[${key}]#*:}"
            SMI_MEANING["${key#code_}"]="${line//_/ }"
        fi
    done
    query_gpus
    if no_gpu_expected; then return; fi
    case "${GPU_QUERY}" in
        ran)
            record pass nvidia_smi 0 eq 0 "exit code" ""
            judge_answers
            judge_recovery
            ;;
        failed)
            if ((GPU_CODE == 124)); then
                record "${GPU_CURE}" nvidia_smi "" "" "" "" "${GPU_WORDS}"
            else
                OUTPUT="${GPU_TEXT}"
                telling_line
                line="${SMI_MEANING[${GPU_CODE}]:-}"
                if ((GPU_CODE > 128 && GPU_CODE < 160)); then line="ended by signal $((GPU_CODE - 128))"; fi
                record "${GPU_CURE}" nvidia_smi "${GPU_CODE}" eq 0 "exit code" "${line}${line:+${REPLY:+: }}${REPLY}"
            fi
            ;;
        *) not_measured nvidia_smi "${GPU_WORDS}" ;;
    esac
}

# judge_answers: what stands in place of values. The list may end early and the exit code is 0 all the same.
judge_answers() {
    local line name rest cure
    local -a fields=()
    local -A found=()
    while IFS= read -r line; do
        if ! cure_of_text "${line}"; then continue; fi
        cure="${REPLY}" name="" rest="${line}"
        if [[ "${line}" == *,*,* ]]; then
            # A lost GPU may have lost its number, too.
            if [[ "${line%%,*}" =~ ^[0-9]+$ ]]; then name="GPU ${line%%,*} "; fi
            # A field may have other words in brackets: drivers from 590 on call the application clocks deprecated.
            IFS=',' read -r -a fields <<<"${line//, /,}"
            for rest in "${fields[@]}"; do
                if cure_of_text "${rest}" && [[ "${REPLY}" == "${cure}" ]]; then break; fi
            done
        fi
        found["${cure}"]+="${found[${cure}]:+, }${name}${rest:0:100}"
    done <<<"${GPU_TEXT}"
    for cure in service reboot reset; do
        if [[ -n "${found[${cure}]:-}" ]]; then record "${cure}" gpu_answers "" "" "" "" "${found[${cure}]}"; fi
    done
    if ((${#found[@]} == 0)); then record pass gpu_answers "" "" "" "" ""; fi
}

# judge_recovery: what the driver itself says that each GPU needs, by the words or numbers of xids.tsv. A driver before the
# field says nothing; a word that the table does not have is no verdict of ours.
judge_recovery() {
    local item word line number take shown cure asked=none
    local -A take_of=() found=()
    if [[ -z "${GPU_AT[gpu_recovery_action]:-}" ]]; then return; fi
    column gpu_recovery_action
    for item in "${COLUMN[@]}"; do
        word="${item#*:}"
        # judge_answers reports what stands there in place of a value.
        if [[ "${word}" == None || "${word}" == "[N/A]" || "${word}" == N/A ]] || cure_of_text "${word}"; then continue; fi
        if [[ "${asked}" == none ]]; then
            asked=table
            while IFS=$'\t' read -r line number _ take shown; do
                if [[ "${line}" != action ]]; then continue; fi
                take_of["${number}"]="${take}"
                if [[ "${shown}" == - ]]; then continue; fi
                while [[ -n "${shown}" ]]; do
                    take_of["${shown%%|*}"]="${take}"
                    if [[ "${shown}" == *"|"* ]]; then shown="${shown#*|}"; else shown=""; fi
                done
            done <"${XID_FILES}/xids.tsv"
        fi
        cure="${take_of[${word:-nothing}]:-not_measured}"
        if [[ "${cure}" == none ]]; then continue; fi
        found["${cure}"]+="${found[${cure}]:+, }${item%%:*} ${word:0:40}"
    done
    for cure in service reboot reset warn; do
        if [[ -n "${found[${cure}]:-}" ]]; then record "${cure}" gpu_recovery_action "" "" "" "" "${found[${cure}]}"; fi
    done
    if [[ -n "${found[not_measured]:-}" ]]; then not_measured gpu_recovery_action "not a known answer: ${found[not_measured]}"; fi
    if ((${#found[@]} == 0)); then record pass gpu_recovery_action "" "" "" "" ""; fi
}

# count=N
check_gpu_count() {
    query_gpus
    if no_gpu_expected; then return; fi
    if [[ "${GPU_QUERY}" != ran ]]; then
        not_measured gpu_count "nvidia-smi gave no answer"
        return
    fi
    # No row at all is a count of zero only when the driver says so in words; otherwise it is a broken answer.
    if ((${#GPU_ROWS[@]} == 0)) && [[ "${GPU_TEXT,,}" != *"no devices"* && "${GPU_TEXT}" != *"${HANDLE_WORDS}"* ]]; then
        not_measured gpu_count "nvidia-smi printed no GPU: ${GPU_TEXT:0:80}"
        return
    fi
    REPLY=""
    if ((${#GPU_ROWS[@]} < ${GIVEN[count]:-0})); then missing_gpus; fi
    judge gpu_count "${#GPU_ROWS[@]}" eq "${GIVEN[count]:-}" GPUs fail "${REPLY}"
}

# warn_above=N
check_gpu_temperature() {
    gpus_or_not_measured gpu_temperature || return 0
    column temperature.gpu
    worst gpu_temperature le "${GIVEN[warn_above]:-}" Celsius warn "${COLUMN[@]}"
}

check_gpu_persistence() {
    local item off=""
    local -i count=0
    gpus_or_not_measured gpu_persistence || return 0
    column persistence_mode
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
    column ecc.errors.uncorrected.volatile.sram ecc.errors.uncorrected.aggregate.sram
    worst gpu_ecc_sram_uncorrectable le "${GIVEN[sram_uncorrectable_max]}" errors fail "${COLUMN[@]}"
    column ecc.errors.corrected.volatile.sram ecc.errors.corrected.aggregate.sram
    worst gpu_ecc_sram_correctable le "${GIVEN[sram_correctable_max]:-}" errors fail "${COLUMN[@]}"
    column ecc.errors.uncorrected.volatile.dram ecc.errors.corrected.volatile.dram \
        ecc.errors.uncorrected.aggregate.dram ecc.errors.corrected.aggregate.dram
    worst gpu_ecc_dram le "${GIVEN[dram_any_max]:-}" errors fail "${COLUMN[@]}"
    column ecc.errors.uncorrected.volatile.dram ecc.errors.uncorrected.aggregate.dram
    worst gpu_ecc_dram_uncorrectable le 0 errors warn "${COLUMN[@]}"
}

# error_mask=N: bits that stand in two samples one second apart; a single one is also seen when power is switched.
check_gpu_throttling() {
    local item slowed="" line seen=" "
    local -a names=()
    local -r mask="${GIVEN[error_mask]:-}"
    if [[ -z "${mask}" ]]; then
        no_baseline gpu_throttling GPUs
        return
    fi
    gpus_or_not_measured gpu_throttling || return 0
    column reasons
    for item in "${COLUMN[@]}"; do
        if [[ ! "${item#*:}" =~ ^0x[0-9a-fA-F]{1,16}$ ]]; then
            not_measured gpu_throttling "${item%%:*} shows '${item#*:}'"
            return
        fi
        if ((${item#*:} & mask)); then slowed+=" ${item%%:*},"; fi
    done
    if [[ -n "${slowed}" ]]; then
        sleep "${CYCLEFORGE_SAMPLE_S:-1}"
        if ! ask_smi reasons "--query-gpu=index,${REASONS_FIELD}" --format=csv,noheader,nounits; then
            record_outcome gpu_throttling
            return
        fi
        while IFS=', ' read -r line item; do
            if [[ "${slowed}" != *" GPU ${line},"* || ! "${item}" =~ ^0x[0-9a-fA-F]{1,16}$ ]]; then continue; fi
            seen+="GPU ${line}, "
            if ((item & mask)); then names+=("GPU ${line} ${item}"); fi
        done <<<"${OUTPUT}"
        if ((${#names[@]} == 0)) && [[ "${seen}" != "${slowed} " ]]; then
            not_measured gpu_throttling "the second sample lacks a GPU that was slowed in the first:${slowed%,}"
            return
        fi
    fi
    judge gpu_throttling "${#names[@]}" le 0 "GPUs slowed by heat or power" fail "${names[*]}"
}

# Application clocks below the maximum that the GPU itself reports. GPUs without application clocks run at their maximum.
check_gpu_clocks() {
    local place low=""
    local -i count=0
    local -a most=() memory_most=() memory_set=()
    gpus_or_not_measured gpu_clocks || return 0
    column clocks.max.graphics
    most=("${COLUMN[@]}")
    column clocks.max.memory
    memory_most=("${COLUMN[@]}")
    column clocks.applications.memory
    memory_set=("${COLUMN[@]}")
    column clocks.applications.graphics
    for place in "${!COLUMN[@]}"; do
        if below "${COLUMN[place]#*:}" "${most[place]#*:}" "${memory_set[place]#*:}" "${memory_most[place]#*:}"; then
            count+=1
            low+="${low:+, }${COLUMN[place]%%:*} ${COLUMN[place]#*:} of ${most[place]#*:} MHz"
        fi
    done
    judge gpu_clocks "${count}" le 0 "GPUs below their maximum" warn "${low}"
}

# below CLOCK MAX CLOCK MAX: all four are numbers, and a clock is below its maximum.
below() { [[ "$*" =~ ^[0-9]+\ [0-9]+\ [0-9]+\ [0-9]+$ ]] && (($1 < $2 || $3 < $4)); }

# yes_no TEXT: counts and words both occur, depending on driver and GPU.
yes_no() {
    case "$1" in
        Yes) REPLY=1 ;;
        No) REPLY=0 ;;
        *) REPLY="$1" ;;
    esac
}

# unlisted NUMBER: the GPUs from this one on that a list should have had, as values that are no numbers, in UNLISTED. A GPU
# that is missing in a list is not a healthy one. gpus=N is the size's count.
declare -a UNLISTED=()
unlisted() {
    local -i number
    UNLISTED=()
    if [[ ! "${GIVEN[gpus]:-}" =~ ^[0-9]{1,3}$ ]]; then return; fi
    for ((number = $1; number < GIVEN[gpus]; number++)); do UNLISTED+=("GPU ${number}:not listed"); done
}

# gpus=N pending_max=N failure_max=N uncorrectable_max=N: what waits is done by a reset of the GPU; one that has no rows
# left or could not remap is exchanged.
check_gpu_remap() {
    local line index=0
    local -a field=() pending=() failure=() uncorrectable=()
    if [[ -z "${GIVEN[uncorrectable_max]:-}" ]]; then
        no_baseline gpu_remap rows
        return
    fi
    if ! ask_smi remap "--query-remapped-rows=${REMAP_FIELDS}" --format=csv,noheader,nounits; then
        record_outcome gpu_remap
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
    unlisted "${index}"
    worst gpu_remap_pending le "${GIVEN[pending_max]:-}" rows reset "${pending[@]}" "${UNLISTED[@]}"
    worst gpu_remap_failure le "${GIVEN[failure_max]:-}" failures service "${failure[@]}" "${UNLISTED[@]}"
    worst gpu_remap_uncorrectable le "${GIVEN[uncorrectable_max]}" rows service "${uncorrectable[@]}" "${UNLISTED[@]}"
}

# gpus=N retired_max=N: GPUs before the A100 retire pages instead of remapping rows. More than the limit and one more waiting
# fails.
check_gpu_pages() {
    local line
    local -a field=() full=()
    local -i rows=0
    if [[ -z "${GIVEN[retired_max]:-}" ]]; then
        no_baseline gpu_retired_pages pages
        return
    fi
    if ! ask_smi pages "--query-gpu=index,${PAGE_FIELDS}" --format=csv,noheader,nounits; then
        record_outcome gpu_retired_pages
        return
    fi
    while IFS= read -r line; do
        IFS=',' read -r -a field <<<"${line// /}"
        if [[ "${field[*]}" =~ ^[0-9]+\ [0-9]{1,9}\ [0-9]{1,9}\ (Yes|No)$ ]]; then
            rows+=1
            if ((field[1] + field[2] > GIVEN[retired_max])) && [[ "${field[3]}" == Yes ]]; then
                full+=("GPU ${field[0]} $((field[1] + field[2])) pages")
            fi
        fi
    done <<<"${OUTPUT}"
    unlisted "${rows}"
    if ((rows == 0 || (${#full[@]} == 0 && ${#UNLISTED[@]} > 0))); then
        not_measured gpu_retired_pages "nvidia-smi printed the retired pages of ${rows}${GIVEN[gpus]:+ of ${GIVEN[gpus]}} GPUs"
        return
    fi
    judge gpu_retired_pages "${#full[@]}" le 0 "GPUs above ${GIVEN[retired_max]} pages with one pending" service "${full[*]}"
}
