#!/usr/bin/env bash
# Trains an MPT model with LLM Foundry; the exit status says whether it ran to its end with a finite loss.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/lib/images.sh
. ./lib/images.sh

# overrides: `key=value` arguments of LLM Foundry, one a line.
overrides() {
    local -r data="${STAGE_PATH}/data/${DATASET//\//-}-${DATASET_SUBSET}"
    if [[ -n "${NVME_MOUNT}" ]]; then
        # The complete copy stays on the shared file system; the loader fills a cache on the local disks.
        printf '%s\n' "variables.data_remote=${data}" "variables.data_local=${NVME_MOUNT}/mds-${SLURM_JOB_ID}"
    else
        printf '%s\n' "variables.data_local=${data}"
    fi
    printf '%s\n' "train_loader.dataset.split=${TRAIN_SPLIT}" "eval_loader.dataset.split=${EVAL_SPLIT}" \
        "global_train_batch_size=${GLOBAL_BATCH}" "device_train_microbatch_size=${MICRO_BATCH}" \
        "run_name=${RUN_NAME}" "save_folder=${run_dir}/checkpoints" "save_interval=${SAVE_INTERVAL}" \
        "save_num_checkpoints_to_keep=${KEEP_CHECKPOINTS}" "fsdp_config.state_dict_type=${CHECKPOINT_STATE}" "autoresume=true"
    if [[ -n "${MAX_DURATION}" ]]; then echo "max_duration=${MAX_DURATION}"; fi
    local -a extra=()
    if [[ -n "${EXTRA_OVERRIDES}" ]]; then read -r -a extra <<<"${EXTRA_OVERRIDES}"; fi
    if ((${#extra[@]})); then printf '%s\n' "${extra[@]}"; fi
}

# judge_run LOG FILE: LLM Foundry prints `Train loss/train/total` after each batch and `Done.` at the end.
judge_run() {
    local loss verdict=fail
    loss="$(sed -nE 's/.*loss\/train\/total: *([^ ]+).*/\1/p' "$1" | tail -n 1)"
    if is_number "${loss}"; then verdict=pass; fi
    record "$2" loss "${verdict}" "${loss:-none}" "a positive number" "" ""
    verdict=fail
    if grep -qE '(^|[^A-Za-z])Done\.' "$1"; then verdict=pass; fi
    record "$2" finished "${verdict}" "" "Done." "" ""
}

main() {
    load_settings
    if [[ "${1:-}" == node ]]; then
        # In the container: the rank of the node is known only there.
        shift
        exec composer --nproc "${GPUS_PER_NODE}" --world_size "${WORLD_SIZE}" --node_rank "${SLURM_NODEID}" --master_addr "${MASTER_ADDR}" \
            --master_port "${MASTER_PORT}" --verbose /llm-foundry/scripts/train/train.py "/llm-foundry/scripts/train/yamls/pretrain/${MODEL}.yaml" "$@"
    fi
    require STAGE_PATH CONTAINER MODEL GPUS_PER_NODE VCPUS GLOBAL_BATCH MICRO_BATCH SAVE_INTERVAL KEEP_CHECKPOINTS DATASET DATASET_SUBSET
    require_commands srun scontrol getent
    export WORLD_SIZE=$((SLURM_JOB_NUM_NODES * GPUS_PER_NODE))
    ((GLOBAL_BATCH % WORLD_SIZE == 0)) || die "global batch ${GLOBAL_BATCH} is not a multiple of ${WORLD_SIZE} GPUs"
    (((GLOBAL_BATCH / WORLD_SIZE) % MICRO_BATCH == 0)) || die "batch $((GLOBAL_BATCH / WORLD_SIZE)) per GPU is not a multiple of micro-batch ${MICRO_BATCH}"
    RUN_NAME="${RUN_NAME:-${MODEL}-${SLURM_JOB_ID}}"
    readonly run_dir="${STAGE_PATH}/runs/${RUN_NAME}"
    mkdir -p "${run_dir}/checkpoints"
    new_results_folder
    load_nccl_env
    local image mounts
    image="$(stage_image "${CONTAINER}")"
    mounts="${STAGE_PATH}:${STAGE_PATH},${results}:${results},${PWD}:${PWD}"
    if [[ -n "${NVME_MOUNT}" ]]; then mounts+=",${NVME_MOUNT}:${NVME_MOUNT}"; fi
    if [[ -d /opt/microsoft ]]; then mounts+=",/opt/microsoft:/opt/microsoft:ro"; fi
    MASTER_ADDR="$(getent hosts "$(requested_nodes | sed -n 1p)" | awk 'NR == 1 { print $1 }')"
    [[ -n "${MASTER_ADDR}" ]] || die "the first node has no address"
    MASTER_PORT="$(free_port)"
    export MASTER_ADDR MASTER_PORT HF_HOME="${STAGE_PATH}/huggingface" HF_HUB_OFFLINE=1 TRITON_CACHE_DIR="/tmp/triton-${SLURM_JOB_ID}"
    local -a arguments
    mapfile -t arguments < <(overrides)
    printf '%s\n' "${arguments[@]}" >"${results}/overrides.txt"
    local launched=0
    srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${VCPUS}" --cpu-bind=none --gpus-per-node="${GPUS_PER_NODE}" --mem=0 --kill-on-bad-exit=1 \
        --container-image="${image}" --container-mounts="${mounts}" --container-workdir="${PWD}" \
        --container-env=NCCL_TOPO_FILE,HF_HOME,HF_HUB_OFFLINE ./run.sh node "${arguments[@]}" 2>&1 | tee "${results}/train.log" || launched=$?
    if ((launched != 0)); then record "${results}/checks.tsv" launch error "${launched}" 0 "exit status" "srun or composer failed"; fi
    judge_run "${results}/train.log" "${results}/checks.tsv"
    results_json "${results}/checks.tsv" >"${results}/checks.json"
    finish "$(worst_in "${results}/checks.tsv")" "run ${RUN_NAME}, checkpoints in ${run_dir}/checkpoints"
}
main "$@"
