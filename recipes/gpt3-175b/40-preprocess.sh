#!/usr/bin/env bash
# Tokenizes every chunk with Megatron-LM's own tool, in the training container, on nodes without GPUs. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"
# shellcheck source=recipes/lib/data.sh
. "${JOBS_LIB}/data.sh"

# tokenize FILE: into a folder of its own, moved into place when both files are whole.
tokenize() {
    local name
    name="$(basename "$1" .jsonl)"
    # Not those of an earlier chunk of that name.
    if [[ -s "${out}/${name}_text_document.bin" && "${out}/${name}_text_document.idx" -nt "$1" ]]; then return 0; fi
    rm -f "${out}/${name}_text_document.bin" "${out}/${name}_text_document.idx"
    local -r partial="${out}/.partial-${name}"
    rm -rf "${partial}"
    mkdir -p "${partial}"
    python3 "${STAGE_PATH}/Megatron-LM-${MEGATRON_COMMIT}/tools/preprocess_data.py" --input "$1" --output-prefix "${partial}/${name}" \
        --vocab-file "${STAGE_PATH}/tokenizers/gpt2/vocab.json" --merge-file "${STAGE_PATH}/tokenizers/gpt2/merges.txt" \
        --tokenizer-type GPT2BPETokenizer --append-eod --workers "$(nproc)" 2>&1 | tee "${partial}/log"
    # It ends with status 0 also when the process that reads the documents has not; the index is written last.
    if [[ ! -s "${partial}/${name}_text_document.idx" ]]; then
        die "$1 has no tokens: $(tail -n 1 "${partial}/log"). Every line must be a JSON object with the key 'text'"
    fi
    mv "${partial}/${name}_text_document.bin" "${partial}/${name}_text_document.idx" "${out}/"
    rm -rf "${partial}"
}

main() {
    load_settings
    require STAGE_PATH CONTAINER DATA DATASET_FILES MEGATRON_COMMIT DATASET_FILES_PER_CHUNK
    corpus
    if [[ "${DATA}" == mock ]]; then
        log "DATA is mock: nothing to tokenize"
        return
    fi
    chunks="$(data_folder)/chunks" out="$(data_folder)/preprocessed"
    local -r expected=$((($(corpus_files | wc -l) + DATASET_FILES_PER_CHUNK - 1) / DATASET_FILES_PER_CHUNK))
    if [[ "${1:-}" == worker ]]; then
        local -a files
        mapfile -t files < <(find "${chunks}" -name 'train_chunk_*.jsonl' | sort)
        local number
        for ((number = SLURM_PROCID; number < ${#files[@]}; number += SLURM_NTASKS)); do tokenize "${files[number]}"; done
        return
    fi
    mkdir -p "${out}"
    local image
    image="$(squash_path "${CONTAINER}")"
    # Nodes without GPUs have no driver: the enroot hooks for GPU and InfiniBand must not look for one.
    export NVIDIA_VISIBLE_DEVICES=void MELLANOX_VISIBLE_DEVICES=void
    with_progress "${out}" '*_text_document.idx' "${expected}" \
        srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${SLURM_CPUS_ON_NODE}" --kill-on-bad-exit=0 --container-image="${image}" \
        --container-mounts="${STAGE_PATH}:${STAGE_PATH},${PWD}:${PWD},${JOBS_LIB}:${JOBS_LIB}" --container-workdir="${PWD}" \
        --container-env=NVIDIA_VISIBLE_DEVICES,MELLANOX_VISIBLE_DEVICES ./40-preprocess.sh worker || log "a worker failed"
    local bins indexes
    bins="$(find "${out}" -maxdepth 1 -name '*_text_document.bin' | wc -l)"
    indexes="$(find "${out}" -maxdepth 1 -name '*_text_document.idx' | wc -l)"
    all_there "${bins}" "${expected}" "files .bin" "${out}"
    all_there "${indexes}" "${expected}" "files .idx" "${out}"
    log "${bins} tokenized chunks in ${out}"
}
main "$@"
