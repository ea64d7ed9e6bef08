#!/usr/bin/env bash
# Trains a model of OPT's shape on synthetic data: a benchmark of GPUs, network and checkpoints without a data set.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/lib/images.sh
. ./lib/images.sh
# shellcheck source=recipes/lib/megatron.sh
. ./lib/megatron.sh

main() {
    load_settings
    require STAGE_PATH CONTAINER MODEL GPUS_PER_NODE VCPUS TENSOR_PARALLEL PIPELINE_PARALLEL NUM_LAYERS HIDDEN_SIZE \
        NUM_ATTENTION_HEADS SEQUENCE VOCABULARY GLOBAL_BATCH MICRO_BATCH ITERATIONS SAVE_INTERVAL
    require_commands srun scontrol
    check_layout
    new_results_folder
    run_folders
    load_nccl_env
    train --mock-data --tokenizer-type NullTokenizer --vocab-size "${VOCABULARY}" --split 98,2,0
}
main "$@"
