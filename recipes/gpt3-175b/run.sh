#!/usr/bin/env bash
# Trains a GPT-3 model with Megatron-LM on the tokenized SlimPajama chunks.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"
# shellcheck source=recipes/lib/megatron.sh
. "${JOBS_LIB}/megatron.sh"

main() {
    load_settings
    if [[ "${1:-}" == --status ]]; then
        show_status "${2:-}"
        return
    fi
    new_results_folder
    require STAGE_PATH CONTAINER MODEL GPUS_PER_NODE VCPUS TENSOR_PARALLEL PIPELINE_PARALLEL NUM_LAYERS HIDDEN_SIZE \
        NUM_ATTENTION_HEADS SEQUENCE GLOBAL_BATCH MICRO_BATCH LEARNING_RATE MIN_LEARNING_RATE ITERATIONS SAVE_INTERVAL CHUNKS
    require_commands srun scontrol
    check_layout
    DATA_CACHE_DIR="${DATA_CACHE_DIR:-${STAGE_PATH}/datacache}"
    local data
    data="$(data_arguments)"
    local -a arguments
    mapfile -t arguments <<<"${data}"
    run_folders
    load_nccl_env
    train "${arguments[@]}"
}
main "$@"
