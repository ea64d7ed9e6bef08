#!/usr/bin/env bash
# Trains a GPT-3 model with Megatron-LM on the tokenized SlimPajama chunks.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/lib/images.sh
. ./lib/images.sh
# shellcheck source=recipes/lib/megatron.sh
. ./lib/megatron.sh

# prefixes FILE...: the data path without its suffix, once each.
prefixes() {
    local file
    for file in "$@"; do echo "${file%.bin}"; done
}

# data_arguments: last CHUNKS files validate, the CHUNKS before them test, the rest trains; prints one argument a line.
data_arguments() {
    local -r data="${STAGE_PATH}/slimpajama/preprocessed" bpe="${STAGE_PATH}/slimpajama/bpe"
    local -a files
    mapfile -t files < <(find "${data}" -maxdepth 1 -name '*.bin' | sort)
    local -r count=${#files[@]}
    # Fewer files would put the same documents into two of the three sets.
    ((count > 2 * CHUNKS)) || die "${count} .bin files in ${data}; more than $((2 * CHUNKS)) are needed for CHUNKS=${CHUNKS}"
    [[ -s "${bpe}/vocab.json" && -s "${bpe}/merges.txt" ]] || die "vocab.json or merges.txt is missing in ${bpe}"
    printf '%s\n' --tokenizer-type GPT2BPETokenizer --vocab-file "${bpe}/vocab.json" --merge-file "${bpe}/merges.txt" --data-cache-path "${DATA_CACHE_DIR}"
    echo --train-data-path
    prefixes "${files[@]:0:count-2*CHUNKS}"
    echo --test-data-path
    prefixes "${files[@]:count-2*CHUNKS:CHUNKS}"
    echo --valid-data-path
    prefixes "${files[@]:count-CHUNKS:CHUNKS}"
}

main() {
    load_settings
    require STAGE_PATH CONTAINER MODEL GPUS_PER_NODE VCPUS TENSOR_PARALLEL PIPELINE_PARALLEL NUM_LAYERS HIDDEN_SIZE \
        NUM_ATTENTION_HEADS SEQUENCE GLOBAL_BATCH MICRO_BATCH ITERATIONS SAVE_INTERVAL CHUNKS
    require_commands srun scontrol
    check_layout
    DATA_CACHE_DIR="${DATA_CACHE_DIR:-${STAGE_PATH}/datacache}"
    local data
    data="$(data_arguments)"
    local -a arguments
    mapfile -t arguments <<<"${data}"
    new_results_folder
    run_folders
    load_nccl_env
    train "${arguments[@]}"
}
main "$@"
