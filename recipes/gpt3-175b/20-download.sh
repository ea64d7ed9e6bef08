#!/usr/bin/env bash
# Fetches the corpus: one file first, then every node its share; a file is whole or not there. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"
# shellcheck source=recipes/lib/data.sh
. "${JOBS_LIB}/data.sh"

# Downloads of one node: at most DOWNLOADS_PER_NODE at a time.
worker() {
    local remote name number=0 running=0
    readonly failed="${raw}/.failed-${SLURM_JOB_ID}-${SLURM_PROCID}"
    while read -r remote name; do
        number=$((number + 1))
        ((number % SLURM_NTASKS == SLURM_PROCID)) || continue
        if [[ -s "${raw}/${name}" ]]; then continue; fi
        pace
        if ((running >= DOWNLOADS_PER_NODE)); then
            wait -n || true
            running=$((running - 1))
        fi
        { fetch_file "${SOURCE}/${remote}" "${raw}/${name}" || echo "${remote}" >>"${failed}"; } &
        running=$((running + 1))
    done < <(corpus_files)
    wait
    [[ ! -s "${failed}" ]]
}

# pace: waits before a file is asked for, so that all nodes together stay below what the source allows one address. One
# after the other, not so many at once in each window: nobody knows when that of the source begins.
pace() {
    if [[ "${SOURCE}" != https://huggingface.co/* ]] || ((DOWNLOADS_PER_5_MINUTES == 0)); then return 0; fi
    local -r milliseconds=$((300000 * SLURM_NTASKS / DOWNLOADS_PER_5_MINUTES))
    sleep "$((milliseconds / 1000)).$(printf '%03d' "$((milliseconds % 1000))")"
}

main() {
    load_settings
    require STAGE_PATH DATA DOWNLOADS_PER_NODE DOWNLOADS_PER_5_MINUTES
    corpus
    if [[ "${DATA}" == mock ]]; then
        log "DATA is mock: nothing to fetch"
        return
    fi
    require DATASET_LAST_INDEX DATASET_FILES
    require_commands curl
    raw="$(data_folder)/raw"
    if [[ "${1:-}" == worker ]]; then
        worker
        return
    fi
    mkdir -p "${raw}"
    local source expected have
    find_source
    export SOURCE="${source}"
    expected="$(corpus_files | wc -l)"
    with_progress "${raw}" "${corpus_pattern}" "${expected}" \
        srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${SLURM_CPUS_ON_NODE}" --kill-on-bad-exit=0 ./20-download.sh worker ||
        log "some downloads failed"
    have="$(corpus_files | while read -r _ name; do if [[ -s "${raw}/${name}" ]]; then echo; fi; done | wc -l)"
    ((have == expected)) || die "${have} of ${expected} files in ${raw}; submit this step again"
    log "${have} files in ${raw}"
}
main "$@"
