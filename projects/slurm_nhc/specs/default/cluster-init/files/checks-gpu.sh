#!/usr/bin/env bash
# GPU count, memory errors, XIDs, NVLink, temperature, throttling: counters only, a job does not notice. Sourced by
# health.sh. Two or three calls of nvidia-smi for all GPUs together, each with a limit.

readonly SMI_LIMIT_S=20
# index, temperature, persistence, then errors of SRAM and DRAM, then the reasons for lower clocks.
readonly GPU_FIELDS=index,temperature.gpu,persistence_mode,ecc.errors.uncorrected.volatile.sram,ecc.errors.corrected.volatile.sram,ecc.errors.uncorrected.aggregate.sram,ecc.errors.corrected.aggregate.sram,ecc.errors.uncorrected.volatile.dram,ecc.errors.corrected.volatile.dram,ecc.errors.uncorrected.aggregate.dram,ecc.errors.corrected.aggregate.dram
readonly REMAP_FIELDS=gpu_bus_id,remapped_rows.pending,remapped_rows.failure,remapped_rows.uncorrectable

check_gpus() {
    local -r expected="${CF_FIGURES[gpu.count]:-}" vendor="${CF_FIGURES[gpu.vendor]:-}"
    local code=0
    if [[ "${vendor}" == AMD ]]; then
        not_measured gpu_count "checks of AMD GPUs are not part of this version"
        return
    fi
    if [[ -z "${expected}" ]] && ! command -v nvidia-smi >/dev/null; then return 0; fi
    if [[ "${expected}" == 0 ]]; then return 0; fi
    query_gpus || code=$?
    if ((code == 0)); then
        check_gpu_rows "${expected}"
        check_row_remap
        check_nvlink
    else
        judge_smi_failure "${code}"
    fi
    check_xid
}

# The name of the last field changed with driver 535.54; an unknown one fails the whole query with code 2.
query_gpus() {
    local code=0
    run_tool "${SMI_LIMIT_S}" nvidia-smi "--query-gpu=${GPU_FIELDS},clocks_event_reasons.active" --format=csv,noheader,nounits || code=$?
    if ((code == 2)); then
        code=0
        run_tool "${SMI_LIMIT_S}" nvidia-smi "--query-gpu=${GPU_FIELDS},clocks_throttle_reasons.active" --format=csv,noheader,nounits || code=$?
    fi
    return "${code}"
}

# The driver's own exit codes name a fault; a missing or hanging program only means that nothing was measured.
judge_smi_failure() {
    local -r code="$1"
    local -r meaning="${CF_FIGURES[gpu.smi_exit_${code}]:-}"
    why_not "${code}" nvidia-smi
    if [[ -n "${meaning}" ]]; then
        record fail nvidia_smi "${code}" eq 0 "exit code" "${meaning}"
    else
        not_measured nvidia_smi "${REPLY}"
    fi
}

# worst CHECK RELATION LIMIT UNIT SEVERITY INDEX:VALUE...: one record for all GPUs, for the first that misses the limit.
worst() {
    local -r check="$1" relation="$2" limit="$3" unit="$4" severity="$5"
    local item last=""
    shift 5
    for item in "$@"; do
        last="${item}"
        if [[ -n "${limit}" ]] && ! cf_compare "${item#*:}" "${relation}" "${limit}"; then break; fi
    done
    if [[ -n "${last}" ]]; then judge "${check}" "${last#*:}" "${relation}" "${limit}" "${unit}" "${severity}" "GPU ${last%%:*}"; fi
}

check_gpu_rows() {
    local line count=0 i mask="${CF_FIGURES[gpu.throttle_error_mask]:-}"
    local -a field=() temperature=() sram_bad=() sram_fixed=() dram_bad=() dram_any=() off=() slowed=()
    while IFS= read -r line; do
        IFS=',' read -r -a field <<<"${line// /}"
        [[ "${field[0]:-}" =~ ^[0-9]+$ ]] || continue
        count=$((count + 1))
        i="${field[0]}"
        temperature+=("${i}:${field[1]:-}")
        if [[ "${field[2]:-}" == Disabled ]]; then off+=("${i}"); fi
        sram_bad+=("${i}:${field[3]:-}" "${i}:${field[5]:-}")
        sram_fixed+=("${i}:${field[4]:-}" "${i}:${field[6]:-}")
        dram_bad+=("${i}:${field[7]:-}" "${i}:${field[9]:-}")
        dram_any+=("${i}:${field[7]:-}" "${i}:${field[8]:-}" "${i}:${field[9]:-}" "${i}:${field[10]:-}")
        if [[ "${field[11]:-}" =~ ^0x[0-9a-fA-F]+$ && -n "${mask}" ]] && ((field[11] & mask)); then slowed+=("${i} ${field[11]}"); fi
    done <<<"${OUTPUT}"
    judge gpu_count "${count}" eq "$1" GPUs
    worst gpu_temperature le "${CF_FIGURES[gpu.temperature_warn_above]:-}" Celsius warn "${temperature[@]}"
    if [[ -n "${CF_FIGURES[gpu.ecc_sram_uncorrectable_max]:-}" ]]; then
        worst gpu_ecc_sram_uncorrectable le "${CF_FIGURES[gpu.ecc_sram_uncorrectable_max]}" errors fail "${sram_bad[@]}"
        worst gpu_ecc_sram_correctable le "${CF_FIGURES[gpu.ecc_sram_correctable_max]:-}" errors fail "${sram_fixed[@]}"
        worst gpu_ecc_dram le "${CF_FIGURES[gpu.ecc_dram_max]:-}" errors fail "${dram_any[@]}"
        worst gpu_ecc_dram_uncorrectable le 0 errors warn "${dram_bad[@]}"
    else
        record no_baseline gpu_ecc "" "" "" errors ""
    fi
    if ((${#off[@]} > 0)); then record warn gpu_persistence "${#off[@]}" le 0 "GPUs without" "GPU ${off[*]}"; fi
    # One sample under power load proves nothing; healthagent watches this continuously.
    if ((${#slowed[@]} > 0)); then record warn gpu_throttling "${#slowed[@]}" le 0 "GPUs slowed by hardware" "GPU ${slowed[*]}"; fi
}

# yes_no TEXT: counts and words both occur, depending on driver and GPU.
yes_no() {
    case "$1" in
        Yes) REPLY=1 ;;
        No) REPLY=0 ;;
        *) REPLY="$1" ;;
    esac
}

check_row_remap() {
    local line code=0 index=0
    local -a field=() pending=() failure=() uncorrectable=()
    if [[ -z "${CF_FIGURES[gpu.remap_uncorrectable_max]:-}" ]]; then
        record no_baseline gpu_remap "" "" "" rows ""
        return
    fi
    run_tool "${SMI_LIMIT_S}" nvidia-smi "--query-remapped-rows=${REMAP_FIELDS}" --format=csv,noheader,nounits || code=$?
    if ((code != 0)); then
        why_not "${code}" "nvidia-smi --query-remapped-rows"
        not_measured gpu_remap "${REPLY}"
        return
    fi
    while IFS= read -r line; do
        IFS=',' read -r -a field <<<"${line// /}"
        ((${#field[@]} == 4)) || continue
        yes_no "${field[1]}"
        pending+=("${index}:${REPLY}")
        yes_no "${field[2]}"
        failure+=("${index}:${REPLY}")
        uncorrectable+=("${index}:${field[3]}")
        index=$((index + 1))
    done <<<"${OUTPUT}"
    if ((index == 0)); then
        not_measured gpu_remap "nvidia-smi printed no rows"
        return
    fi
    worst gpu_remap_pending le "${CF_FIGURES[gpu.remap_pending_max]:-}" rows fail "${pending[@]}"
    worst gpu_remap_failure le "${CF_FIGURES[gpu.remap_failure_max]:-}" failures fail "${failure[@]}"
    worst gpu_remap_uncorrectable le "${CF_FIGURES[gpu.remap_uncorrectable_max]}" rows fail "${uncorrectable[@]}"
}

check_nvlink() {
    local code=0 inactive links
    if [[ "${CF_FIGURES[gpu.nvlink]:-}" != 1 ]]; then return 0; fi
    run_tool "${SMI_LIMIT_S}" nvidia-smi nvlink --status || code=$?
    links="$(grep -c -i 'Link [0-9]*:' <<<"${OUTPUT}" || true)"
    inactive="$(grep -c -i 'Link [0-9]*:.*inactive' <<<"${OUTPUT}" || true)"
    if ((code != 0 || links == 0)); then
        why_not "${code}" "nvidia-smi nvlink"
        if ((code == 0)); then REPLY="nvidia-smi nvlink printed no link"; fi
        not_measured gpu_nvlink "${REPLY}"
        return
    fi
    judge gpu_nvlink_inactive "${inactive}" le 0 "of ${links} links"
}

# Every code of the list is looked for in every line of the kernel log since the look-back.
check_xid() {
    local -r fatal=" ${CF_FIGURES[gpu.xid_fail_codes]:-} " hours="${CF_FIGURES[gpu.xid_look_back_hours]:-2}"
    local line code=0 found="" count=0
    run_tool 10 journalctl --dmesg --since "-${hours}h" --output cat --no-pager --quiet || code=$?
    if ((code != 0)); then
        code=0
        run_tool 10 dmesg || code=$?
    fi
    if ((code != 0)); then
        why_not "${code}" "the kernel log"
        not_measured gpu_xid "${REPLY}"
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ Xid\ \(([^\)]*)\):\ ([0-9]+) && "${fatal}" == *" ${BASH_REMATCH[2]} "* ]]; then
            count=$((count + 1))
            found="XID ${BASH_REMATCH[2]} at ${BASH_REMATCH[1]}"
        fi
    done <<<"${OUTPUT}"
    judge gpu_xid "${count}" le 0 "fatal XIDs in ${hours} h" fail "${found}"
}
