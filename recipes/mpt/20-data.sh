#!/usr/bin/env bash
# Downloads C4 and converts it for streaming. The converter refuses a folder that holds a split, so it works beside
# the final one and the result is moved into place. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/lib/images.sh
. ./lib/images.sh

main() {
    load_settings
    require STAGE_PATH CONTAINER DATASET DATASET_SUBSET DATASET_WORKERS SEQUENCE TOKENIZER TRAIN_SPLIT EVAL_SPLIT
    local -r data="${STAGE_PATH}/data/${DATASET//\//-}-${DATASET_SUBSET}"
    if [[ -s "${data}/${TRAIN_SPLIT}/index.json" && -s "${data}/${EVAL_SPLIT}/index.json" ]]; then
        log "data is there: ${data}"
        return
    fi
    local -r partial="${data}.partial-${SLURM_JOB_ID}"
    rm -rf "${partial}"
    mkdir -p "$(dirname "${data}")" "${data}"
    export NVIDIA_VISIBLE_DEVICES=void MELLANOX_VISIBLE_DEVICES=void HF_HOME="${STAGE_PATH}/huggingface"
    srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_ON_NODE}" --cpu-bind=none --mem=0 --container-image="$(squash_path "${CONTAINER}")" \
        --container-mounts="${STAGE_PATH}:${STAGE_PATH}" \
        --container-env=NVIDIA_VISIBLE_DEVICES,MELLANOX_VISIBLE_DEVICES,HF_HOME \
        python3 /llm-foundry/scripts/data_prep/convert_dataset_hf.py --dataset "${DATASET}" --data_subset "${DATASET_SUBSET}" \
        --out_root "${partial}" --splits "${TRAIN_SPLIT}" "${EVAL_SPLIT}" --concat_tokens "${SEQUENCE}" \
        --tokenizer "${TOKENIZER}" --eos_text '<|endoftext|>' --num_workers "${DATASET_WORKERS}"
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
