#!/usr/bin/env bash
# `. /etc/cycleforge/mig.sh` in a job: names its MIG slices by their UUIDs, which CUDA and containers take for what they
# are. Slurm numbers slices; CUDA takes a number for a GPU and finds only the first slice that the job may open.
cycleforge_mig() {
    local -r table=/run/cycleforge/mig.tsv
    local part number uuid first last uuids=""
    local -a wanted=()
    if [[ ! -r "${table}" ]]; then return 0; fi
    IFS=',' read -r -a wanted <<<"${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-}}"
    for part in "${wanted[@]}"; do
        if [[ ! "${part}" =~ ^[0-9]{1,6}(-[0-9]{1,6})?$ ]]; then continue; fi
        first="${part%-*}" last="${part#*-}"
        while IFS=$'\t' read -r number uuid _; do
            if [[ "${number}" =~ ^[0-9]{1,6}$ ]] && ((10#${number} >= 10#${first} && 10#${number} <= 10#${last})); then uuids+="${uuids:+,}${uuid}"; fi
        done <"${table}"
    done
    if [[ -n "${uuids}" ]]; then export CUDA_VISIBLE_DEVICES="${uuids}" NVIDIA_VISIBLE_DEVICES="${uuids}"; fi
}
cycleforge_mig
unset -f cycleforge_mig
