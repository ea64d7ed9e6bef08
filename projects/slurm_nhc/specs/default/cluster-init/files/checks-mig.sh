#!/usr/bin/env bash
# GPUs that are divided into MIG slices: the slices, and what stands in for a check that the driver does not answer then.
# Sourced by checks.sh.

# profile=P gpus=N count=N: MIG slices of all GPUs, which each have the same number; a slice of another profile counts for none.
check_mig_slices() {
    local line gpu="" bad=""
    local -i fitting=0 all=0 others=0 place have=0
    local -A of_gpu=()
    if [[ ! "${GIVEN[gpus]:-} ${GIVEN[count]:-}" =~ ^([1-9][0-9]?)\ ([1-9][0-9]{0,3})$ ]]; then
        no_baseline mig_slices slices
        return
    fi
    local -ri gpus="${BASH_REMATCH[1]}" each=$((BASH_REMATCH[2] / BASH_REMATCH[1]))
    if ! ask_smi list -L; then
        record_outcome mig_slices
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^GPU\ ([0-9]{1,3}): ]]; then
            gpu="${BASH_REMATCH[1]}"
            have=0
        elif [[ -n "${gpu}" && "${line}" =~ ^[[:space:]]+MIG[[:space:]]+([^[:space:]]+) ]]; then
            if [[ "${BASH_REMATCH[1]}" == "${GIVEN[profile]:-}" ]]; then
                have+=1
                of_gpu["${gpu}"]="${have}"
            else
                others+=1
            fi
        fi
    done <<<"${OUTPUT}"
    for ((place = 0; place < gpus; place++)); do
        have="${of_gpu[${place}]:-0}"
        all+=have
        fitting+=$((have < each ? have : each))
        if ((have != each)); then bad+="${bad:+, }GPU ${place}: ${have} of ${each}"; fi
    done
    # What one GPU has too many does not make up for what another one lacks.
    if ((fitting == gpus * each)); then fitting=all; fi
    if ((others > 0)); then bad+="${bad:+, }${others} of other profiles"; fi
    judge mig_slices "${fitting}" eq "${GIVEN[count]:-}" "slices of ${GIVEN[profile]:-}" fail "${bad}"
}

# gpus=N: in place of gpu_remap where the GPUs are divided. There the driver shows no remapped rows, but still how many banks of
# memory have no spare ones; each remap and each that failed is XID 63 or 64, all that there is where a driver does not know
# the field. Source: utkuozdemir/nvidia_gpu_exporter, internal/captures (h100-mig, h200-mig)
check_gpu_spare_rows() {
    local line
    local -a banks=()
    if ! ask_smi spare --query-gpu=index,remapped_rows.histogram.none --format=csv,noheader,nounits; then
        if [[ "${OUTPUT}" == *"is not a valid field"* ]]; then return; fi
        record_outcome gpu_spare_rows
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^([0-9]{1,3}),\ *(.*)$ ]]; then banks+=("GPU ${BASH_REMATCH[1]}:${BASH_REMATCH[2]}"); fi
    done <<<"${OUTPUT}"
    if ((${#banks[@]} == 0)); then
        not_measured gpu_spare_rows "nvidia-smi printed no GPU"
        return
    fi
    unlisted "${#banks[@]}"
    worst gpu_spare_rows le 0 "banks without spare rows" warn "${banks[@]}" "${UNLISTED[@]}"
}
