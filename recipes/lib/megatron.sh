# shellcheck shell=bash
# Launch, checks and verdict of Megatron-LM jobs. Sourced by run.sh after common.sh and images.sh.

# check_layout: the divisor rules of Megatron, before any node waits for another.
check_layout() {
    local -r world=$((SLURM_JOB_NUM_NODES * GPUS_PER_NODE)) block=$((TENSOR_PARALLEL * PIPELINE_PARALLEL))
    ((world % block == 0)) || die "${world} GPUs are not a multiple of tensor ${TENSOR_PARALLEL} x pipeline ${PIPELINE_PARALLEL}"
    local -r data=$((world / block))
    ((NUM_LAYERS % PIPELINE_PARALLEL == 0)) || die "${NUM_LAYERS} layers cannot be divided into ${PIPELINE_PARALLEL} stages"
    ((NUM_ATTENTION_HEADS % TENSOR_PARALLEL == 0)) || die "${NUM_ATTENTION_HEADS} heads cannot be divided among ${TENSOR_PARALLEL} GPUs"
    ((HIDDEN_SIZE % NUM_ATTENTION_HEADS == 0)) || die "hidden size ${HIDDEN_SIZE} cannot be divided among ${NUM_ATTENTION_HEADS} heads"
    ((GLOBAL_BATCH % (MICRO_BATCH * data) == 0)) || die "global batch ${GLOBAL_BATCH} is not a multiple of ${MICRO_BATCH} x ${data} replicas"
    ((TENSOR_PARALLEL <= GPUS_PER_NODE)) || die "tensor parallelism ${TENSOR_PARALLEL} exceeds the ${GPUS_PER_NODE} GPUs of a node"
    log "${world} GPUs: tensor ${TENSOR_PARALLEL}, pipeline ${PIPELINE_PARALLEL}, data ${data}; global batch ${GLOBAL_BATCH}"
}

# run_folders: a run has its own folder for checkpoints and logs; RUN_NAME with RESUME=1 continues one.
run_folders() {
    RUN_NAME="${RUN_NAME:-${MODEL}-${SLURM_JOB_ID}}"
    run_dir="${STAGE_PATH}/runs/${RUN_NAME}"
    if [[ -d "${run_dir}" && "${RESUME}" != 1 ]]; then die "${run_dir} exists; set RESUME=1 to continue it or choose another RUN_NAME"; fi
    mkdir -p "${run_dir}/checkpoints" "${run_dir}/tensorboard"
    DATA_CACHE_DIR="${DATA_CACHE_DIR:-${STAGE_PATH}/datacache}"
    mkdir -p "${DATA_CACHE_DIR}"
}

# model_arguments: prints one argument a line.
model_arguments() {
    printf '%s\n' --num-layers "${NUM_LAYERS}" --hidden-size "${HIDDEN_SIZE}" --num-attention-heads "${NUM_ATTENTION_HEADS}" \
        --seq-length "${SEQUENCE}" --max-position-embeddings "${SEQUENCE}" --attention-backend auto \
        --tensor-model-parallel-size "${TENSOR_PARALLEL}" --pipeline-model-parallel-size "${PIPELINE_PARALLEL}" \
        --use-distributed-optimizer --bf16 --micro-batch-size "${MICRO_BATCH}" --global-batch-size "${GLOBAL_BATCH}" \
        --train-iters "${ITERATIONS}" --lr "${LEARNING_RATE}" --min-lr 6e-6 --lr-decay-style cosine --lr-warmup-fraction .001 \
        --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.006 --clip-grad 1.0 \
        --log-interval "${LOG_INTERVAL}" --eval-iters "${EVAL_ITERATIONS}" --eval-interval "${EVAL_INTERVAL}" \
        --tensorboard-dir "${run_dir}/tensorboard"
    # Sequence parallelism needs tensor parallelism.
    if ((TENSOR_PARALLEL > 1)); then echo --sequence-parallel; fi
    if [[ "${USE_SHARP}" == 1 ]]; then echo --use-sharp; fi
    if ((SAVE_INTERVAL > 0)); then
        printf '%s\n' --save "${run_dir}/checkpoints" --save-interval "${SAVE_INTERVAL}" --ckpt-format torch_dist \
            --ckpt-fully-parallel-load --async-save --use-persistent-ckpt-worker --ckpt-assume-constant-structure
        if [[ -s "${run_dir}/checkpoints/latest_checkpointed_iteration.txt" ]]; then printf '%s\n' --load "${run_dir}/checkpoints"; fi
    fi
}

# launch DATA_ARGUMENT...: torchrun on every node, in the container; the log is in $results/train.log.
launch() {
    # `set -e` is off in a function whose status is tested, so each step that may fail returns by itself.
    local image head port mounts
    image="$(stage_image "${CONTAINER}")" || return
    head="$(requested_nodes | sed -n 1p)" || return
    port="$(free_port)" || return
    # Everything that is written must be mounted, or it is lost with the container.
    mounts="${STAGE_PATH}:${STAGE_PATH},${results:?}:${results},${PWD}:${PWD}"
    if [[ -d /opt/microsoft ]]; then mounts+=",/opt/microsoft:/opt/microsoft:ro"; fi
    if [[ "${DATA_CACHE_DIR}" != "${STAGE_PATH}"/* ]]; then mounts+=",${DATA_CACHE_DIR}:${DATA_CACHE_DIR}"; fi
    export CUDA_DEVICE_MAX_CONNECTIONS=1
    local -a arguments extra=()
    mapfile -t arguments < <(model_arguments)
    if [[ -n "${EXTRA_ARGUMENTS}" ]]; then read -r -a extra <<<"${EXTRA_ARGUMENTS}"; fi
    printf '%q ' "${arguments[@]}" "$@" "${extra[@]}" >"${results}/arguments.txt"
    srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${VCPUS}" --gpus-per-node="${GPUS_PER_NODE}" --mem=0 --kill-on-bad-exit=1 \
        --container-image="${image}" --container-mounts="${mounts}" --container-env=CUDA_DEVICE_MAX_CONNECTIONS,NCCL_TOPO_FILE \
        --container-workdir="${STAGE_PATH}/Megatron-LM" \
        torchrun --nproc_per_node "${GPUS_PER_NODE}" --nnodes "${SLURM_JOB_NUM_NODES}" --rdzv_id "${SLURM_JOB_ID}" \
        --rdzv_backend c10d --rdzv_endpoint "${head}:${port}" pretrain_gpt.py "${arguments[@]}" "$@" "${extra[@]}" 2>&1 |
        tee "${results}/train.log"
}

# judge_training LOG FILE: the last iteration must be reached with a finite loss and no skipped or NaN step.
judge_training() {
    local -r output="$1" file="$2"
    local last iteration loss nan milliseconds verdict
    last="$(grep -E 'iteration +[0-9]+/ *[0-9]+ \|' "${output}" | tail -n 1 || true)"
    if [[ -z "${last}" ]]; then
        record "${file}" iterations error "" "${ITERATIONS}" iterations "no iteration line in the log"
        return
    fi
    iteration="$(sed -E 's/.*iteration +([0-9]+)\/.*/\1/' <<<"${last}")"
    loss="$(sed -nE 's/.*lm loss: *([^ |]+).*/\1/p' <<<"${last}")"
    nan="$(sed -nE 's/.*number of nan iterations: *([0-9]+).*/\1/p' <<<"${last}")"
    milliseconds="$(sed -nE 's/.*elapsed time per iteration \(ms\): *([0-9.]+).*/\1/p' <<<"${last}")"
    verdict=fail
    # The last line is printed at a multiple of the log interval.
    if ((iteration + LOG_INTERVAL > ITERATIONS)); then verdict=pass; fi
    record "${file}" iterations "${verdict}" "${iteration}" "${ITERATIONS}" iterations ""
    verdict=fail
    if [[ "${loss}" =~ ^[0-9.]+([eE][+-]?[0-9]+)?$ ]] && is_number "${loss}"; then verdict=pass; fi
    record "${file}" loss "${verdict}" "${loss:-none}" "a positive number" "" ""
    verdict=fail
    if [[ "${nan}" == 0 ]]; then verdict=pass; fi
    record "${file}" nan_iterations "${verdict}" "${nan:-none}" 0 iterations ""
    verdict=fail
    if is_number "${milliseconds}"; then verdict=pass; fi
    record "${file}" iteration_time "${verdict}" "${milliseconds:-none}" "a positive number" ms ""
}

# prune_checkpoints: Megatron keeps all; the newest KEEP_CHECKPOINTS stay, and always the one that `latest` names.
prune_checkpoints() {
    ((SAVE_INTERVAL > 0 && KEEP_CHECKPOINTS > 0)) || return 0
    local latest folder
    latest="$(cat "${run_dir}/checkpoints/latest_checkpointed_iteration.txt" 2>/dev/null || true)"
    [[ "${latest}" =~ ^[0-9]+$ ]] || return 0
    while read -r folder; do
        # A folder above `latest` may still be written.
        if ((10#${folder##*iter_} < latest)); then
            log "removing ${folder}"
            rm -rf -- "${folder}"
        fi
    done < <(find "${run_dir}/checkpoints" -maxdepth 1 -type d -name 'iter_[0-9]*' | sort -r | tail -n +$((KEEP_CHECKPOINTS + 1)))
}

# prune_in_background: keeps pruning while the job trains.
prune_in_background() {
    while sleep 300; do prune_checkpoints; done
}

# train DATA_ARGUMENT...: launch, prune, judge, exit with the verdict.
train() {
    prune_in_background >>"${results}/prune.log" 2>&1 &
    local -r pruner=$!
    local launched=0
    launch "$@" || launched=$?
    kill "${pruner}" 2>/dev/null || true
    prune_checkpoints
    if ((launched != 0)); then
        record "${results}/checks.tsv" launch error "${launched}" 0 "exit status" "srun or torchrun failed"
    fi
    judge_training "${results}/train.log" "${results}/checks.tsv"
    results_json "${results}/checks.tsv" >"${results}/checks.json"
    finish "$(worst_in "${results}/checks.tsv")" "run ${RUN_NAME}, checkpoints in ${run_dir}/checkpoints"
}
