#!/usr/bin/env bash
# Downloads SlimPajama: every node takes its share of the files; a file is whole or not there. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/lib/images.sh
. ./lib/images.sh

# all_shards: `chunk shard` of every file that the data set has.
all_shards() {
    local -a last
    read -r -a last <<<"${DATASET_LAST_INDEX}"
    local chunk shard
    for chunk in "${!last[@]}"; do
        for ((shard = 0; shard <= last[chunk]; shard++)); do echo "$((chunk + 1)) ${shard}"; done
    done
}

fetch() {
    download "${DATASET_URL}/chunk${1}/example_train_${2}.jsonl.zst" "${raw}/example_train_chunk${1}_shard${2}.jsonl.zst" ||
        echo "chunk${1} ${2}" >>"${failed}"
}

# Downloads of one node: at most DOWNLOADS_PER_NODE at a time.
worker() {
    local chunk shard number=0 running=0
    readonly failed="${raw}/.failed-${SLURM_JOB_ID}-${SLURM_PROCID}"
    while read -r chunk shard; do
        number=$((number + 1))
        ((number % SLURM_NTASKS == SLURM_PROCID)) || continue
        if ((running >= DOWNLOADS_PER_NODE)); then
            wait -n || true
            running=$((running - 1))
        fi
        fetch "${chunk}" "${shard}" &
        running=$((running + 1))
    done < <(all_shards)
    wait
    [[ ! -s "${failed}" ]]
}

main() {
    load_settings
    require STAGE_PATH DATASET_URL DATASET_LAST_INDEX DATASET_FILES DOWNLOADS_PER_NODE
    require_commands curl
    readonly raw="${STAGE_PATH}/slimpajama/raw"
    if [[ "${1:-}" == worker ]]; then
        worker
        return
    fi
    mkdir -p "${raw}"
    srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${SLURM_CPUS_ON_NODE}" --kill-on-bad-exit=0 ./20-download.sh worker || log "some downloads failed"
    local have
    have="$(find "${raw}" -name '*.jsonl.zst' | wc -l)"
    ((have == DATASET_FILES)) || die "${have} of ${DATASET_FILES} files in ${raw}; submit this step again"
    log "${have} files in ${raw}"
}
main "$@"
