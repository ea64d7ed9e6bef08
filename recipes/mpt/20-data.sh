#!/usr/bin/env bash
# Fetches the corpus or takes your files, and converts them for streaming. The converters refuse a folder that holds a
# split, so they work beside the final one and the result is moved into place. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"
# shellcheck source=recipes/mpt/splits.sh
. ./splits.sh

# converted SCRIPT ARGUMENT...: LLM Foundry's converter in the container.
converted() {
    srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_ON_NODE}" --cpu-bind=none --mem=0 --container-image="${image}" \
        --container-mounts="${STAGE_PATH}:${STAGE_PATH}${DATA_FILES:+,${DATA_FILES}:${DATA_FILES}:ro}${DATA_FILES_EVAL:+,${DATA_FILES_EVAL}:${DATA_FILES_EVAL}:ro}" \
        --container-env=NVIDIA_VISIBLE_DEVICES,MELLANOX_VISIBLE_DEVICES,HF_HOME \
        python3 "/llm-foundry/scripts/data_prep/$1" "${@:2}" --concat_tokens "${SEQUENCE}" --tokenizer "${TOKENIZER}" --eos_text '<|endoftext|>'
}

# from_hub SPLIT...: each request of the converter counts against the limits of Hugging Face, hence the few workers.
from_hub() {
    converted convert_dataset_hf.py --dataset "${DATASET}" --data_subset "${DATASET_SUBSET}" --out_root "${partial}" --splits "$@" --num_workers "${DATASET_WORKERS}"
}

# from_files FOLDER SPLIT: to the converter every file is of the split `train`.
from_files() {
    [[ -d "$1" && -n "$(find "$1" -maxdepth 1 -name '*.jsonl' -size +0 -print -quit)" ]] || die "no *.jsonl in '$1'; set DATA_FILES and DATA_FILES_EVAL to folders with your files"
    converted convert_dataset_json.py --path "$1" --out_root "${partial}/$2" --split train
}

# to_remote: the converted splits into DATA_REMOTE, the index of each last, because it says that the split is whole.
to_remote() {
    local split
    for split in "${TRAIN_SPLIT}" "${EVAL_SPLIT}"; do
        if [[ -s "${DATA_REMOTE}/${split}/index.json" ]]; then continue; fi
        log "copying ${split} to ${DATA_REMOTE}"
        mkdir -p "${DATA_REMOTE}/${split}"
        find "${data}/${split}" -type f ! -name index.json -printf '%P\n' |
            while read -r file; do
                mkdir -p "$(dirname "${DATA_REMOTE}/${split}/${file}")"
                cp "${data}/${split}/${file}" "${DATA_REMOTE}/${split}/${file}"
            done
        cp "${data}/${split}/index.json" "${DATA_REMOTE}/${split}/index.json"
    done
    log "data is in ${DATA_REMOTE}; ${data} can be removed"
}

main() {
    load_settings
    require STAGE_PATH CONTAINER DATASET DATASET_SUBSET DATASET_WORKERS SEQUENCE TOKENIZER DATA
    splits
    if [[ -s "${data}/${TRAIN_SPLIT}/index.json" && -s "${data}/${EVAL_SPLIT}/index.json" ]]; then
        log "data is there: ${data}"
        return
    fi
    if [[ -n "${DATA_REMOTE}" ]]; then
        on_a_mount "${DATA_REMOTE}"
        local_folder
        convert
        to_remote
        return
    fi
    convert
}

# convert: the splits into $data, if they are not there yet.
convert() {
    if [[ -s "${data}/${TRAIN_SPLIT}/index.json" && -s "${data}/${EVAL_SPLIT}/index.json" ]]; then
        log "data is there: ${data}"
        return
    fi
    image="$(squash_path "${CONTAINER}")"
    readonly image partial="${data}.partial-${SLURM_JOB_ID}"
    rm -rf "${partial}"
    mkdir -p "$(dirname "${data}")" "${data}"
    export NVIDIA_VISIBLE_DEVICES=void MELLANOX_VISIBLE_DEVICES=void HF_HOME="${STAGE_PATH}/huggingface"
    if [[ "${DATA}" == files ]]; then
        mkdir -p "${partial}"
        from_files "${DATA_FILES}" "${TRAIN_SPLIT}"
        from_files "${DATA_FILES_EVAL}" "${EVAL_SPLIT}"
    else
        log "${DATASET}: ODC-BY 1.0 and the terms of use of Common Crawl, see https://huggingface.co/datasets/${DATASET}"
        from_hub "${TRAIN_SPLIT}" "${EVAL_SPLIT}"
    fi
    local split
    for split in "${TRAIN_SPLIT}" "${EVAL_SPLIT}"; do
        [[ -s "${partial}/${split}/index.json" ]] || die "the converter wrote no index for split ${split}"
        rm -rf "${data:?}/${split}"
        mv "${partial}/${split}" "${data}/${split}"
    done
    rm -rf "${partial}"
    log "data is in ${data}"
}
main "$@"
