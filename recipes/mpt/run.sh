#!/usr/bin/env bash
# Trains an MPT model with LLM Foundry; the exit status says whether it ran to its end with a finite loss.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"
# shellcheck source=recipes/lib/long-runs.sh
. "${JOBS_LIB}/long-runs.sh"
# shellcheck source=recipes/lib/run-status.sh
. "${JOBS_LIB}/run-status.sh"
# shellcheck source=recipes/lib/throughput.sh
. "${JOBS_LIB}/throughput.sh"
# shellcheck source=recipes/mpt/splits.sh
. ./splits.sh
# shellcheck source=recipes/mpt/checkpoints.sh
. ./checkpoints.sh

# overrides: `key=value` arguments of LLM Foundry, one a line.
overrides() {
    if [[ -n "${NVME_MOUNT}" ]]; then
        # The complete copy stays on the shared file system; the loader fills a cache on the local disks.
        printf '%s\n' "variables.data_remote=${data}" "variables.data_local=${NVME_MOUNT}/mds-${SLURM_JOB_ID}"
    else
        printf '%s\n' "variables.data_local=${data}"
    fi
    printf '%s\n' "train_loader.dataset.split=${TRAIN_SPLIT}" "eval_loader.dataset.split=${EVAL_SPLIT}" \
        "global_train_batch_size=${GLOBAL_BATCH}" "device_train_microbatch_size=${MICRO_BATCH}" "precision=${PRECISION}" \
        "run_name=${RUN_NAME}" "save_folder=${checkpoints}" "save_interval=${SAVE_INTERVAL}" \
        "save_num_checkpoints_to_keep=${KEEP_CHECKPOINTS}" "fsdp_config.state_dict_type=${CHECKPOINT_STATE}" "autoresume=true" \
        "code_paths=['${PWD}/exit_clock.py']" "callbacks.exit_clock={}"
    if [[ -n "${MAX_DURATION}" ]]; then echo "max_duration=${MAX_DURATION}"; fi
    local -a extra=()
    if [[ -n "${EXTRA_OVERRIDES}" ]]; then read -r -a extra <<<"${EXTRA_OVERRIDES}"; fi
    if ((${#extra[@]})); then printf '%s\n' "${extra[@]}"; fi
}

# judge_run LOG FILE: the last batch must be reached with a finite loss, and LLM Foundry must say that it is done.
judge_run() {
    local step="" steps="" loss="" verdict=fail
    composer_progress "$1" >"${results}/progress.tsv"
    IFS=$'\t' read -r step steps loss _ < <(tail -n 1 "${results}/progress.tsv") || true
    if [[ -n "${step}" && "${step}" == "${steps}" ]]; then verdict=pass; fi
    record "$2" batches "${verdict}" "${step}" "${steps:-a report of progress}" batches ""
    verdict=fail
    if is_number "${loss}"; then verdict=pass; fi
    record "$2" loss "${verdict}" "${loss:-none}" "a positive number" "" ""
    verdict=fail
    if whole_lines "$1" | grep -cE 'llmfoundry\.command_utils\.train: Done\.' >/dev/null; then verdict=pass; fi
    record "$2" finished "${verdict}" "" "Done." "" ""
    judge_progress "${results}/progress.tsv" "$2"
}

# prepare_launch: the image, on the nodes of the launch, and where they meet.
prepare_launch() {
    image="$(stage_image "${CONTAINER}")"
    address="$(getent hosts "${run_nodes[0]}" | awk 'NR == 1 { print $1 }')"
    [[ -n "${address}" ]] || die "the first node has no address"
    port="$(free_port)"
}

# launch: Composer's launcher on every node, in the container.
launch() {
    local mounts
    mounts="${STAGE_PATH}:${STAGE_PATH},${results:?}:${results},${PWD}:${PWD}"
    if [[ -n "${DATA_REMOTE}" ]]; then mounts+=",${DATA_REMOTE}:${DATA_REMOTE}:ro"; fi
    if [[ -n "${CHECKPOINT_DIR}" ]]; then mounts+=",${CHECKPOINT_DIR}:${CHECKPOINT_DIR}"; fi
    if [[ -n "${NVME_MOUNT}" ]]; then mounts+=",${NVME_MOUNT}:${NVME_MOUNT}"; fi
    if [[ -d /opt/microsoft ]]; then mounts+=",/opt/microsoft:/opt/microsoft:ro"; fi
    export HF_HOME="${STAGE_PATH}/huggingface" HF_HUB_OFFLINE=1 TRITON_CACHE_DIR="/tmp/triton-${SLURM_JOB_ID}"
    local -a arguments
    mapfile -t arguments < <(overrides)
    printf '%s\n' "${arguments[@]}" >"${results}/overrides.txt"
    # What the launcher must know goes in as arguments: enroot's hook for PyTorch and pyxis replace MASTER_ADDR,
    # MASTER_PORT, WORLD_SIZE, RANK and LOCAL_RANK. Only the rank of the node is known on the node alone, and nobody
    # replaces SLURM_NODEID.
    # shellcheck disable=SC2016  # expanded in the container
    srun "${srun_places[@]}" --ntasks="${wanted_nodes}" --ntasks-per-node=1 --cpus-per-task="${VCPUS}" --cpu-bind=none --gpus-per-node="${GPUS_PER_NODE}" --mem=0 --kill-on-bad-exit=1 \
        --container-image="${image}" --container-mounts="${mounts}" --container-workdir="${run_dir}" \
        --container-env="$(kept_in_container HF_HOME HF_HUB_OFFLINE TRITON_CACHE_DIR)" \
        bash -c 'exec composer --node_rank "${SLURM_NODEID}" "$@"' composer \
        --nproc "${GPUS_PER_NODE}" --world_size "$((wanted_nodes * GPUS_PER_NODE))" --master_addr "${address}" --master_port "${port}" --verbose \
        /llm-foundry/scripts/train/train.py "/llm-foundry/scripts/train/yamls/pretrain/${MODEL}.yaml" "${arguments[@]}"
}

# run_is_finished STATUS: LLM Foundry says when it is done, also when exit_clock.py has stopped it before its end.
run_is_finished() {
    (($1 == 0)) && ! grep -q '^exit_clock: stopped' "${launch_log}" && whole_lines "${launch_log}" | grep -cE 'llmfoundry\.command_utils\.train: Done\.' >/dev/null
}

judge_long_run() {
    judge_run "${results}/train.log" "${results}/checks.tsv"
}

main() {
    load_settings
    if [[ "${1:-}" == --status ]]; then
        show_status "${2:-}"
        return
    fi
    new_results_folder
    require STAGE_PATH CONTAINER MODEL GPUS_PER_NODE VCPUS GLOBAL_BATCH MICRO_BATCH SAVE_INTERVAL KEEP_CHECKPOINTS DATA SEQUENCE
    splits
    [[ -s "${data}/${TRAIN_SPLIT}/index.json" ]] || die "${data} has no split ${TRAIN_SPLIT}; run the step that prepares the data first"
    require_commands srun scontrol getent
    local -r gpus=$(((SLURM_JOB_NUM_NODES - SPARE_NODES) * GPUS_PER_NODE))
    ((GLOBAL_BATCH % gpus == 0)) || die "global batch ${GLOBAL_BATCH} is not a multiple of ${gpus} GPUs"
    (((GLOBAL_BATCH / gpus) % MICRO_BATCH == 0)) || die "batch $((GLOBAL_BATCH / gpus)) per GPU is not a multiple of micro-batch ${MICRO_BATCH}"
    begin_long_run "${MODEL}"
    # On the shared file system, or below a mount of your own, such as a blob container.
    if [[ -n "${CHECKPOINT_DIR}" ]]; then on_a_mount "${CHECKPOINT_DIR}"; fi
    readonly checkpoints="${CHECKPOINT_DIR:-${STAGE_PATH}/runs}/${RUN_NAME}/checkpoints"
    mkdir -p "${checkpoints}"
    load_nccl_env
    train_to_the_end
}
main "$@"
