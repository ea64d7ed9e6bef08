# shellcheck shell=bash
# Launch, checks and verdict of Megatron-LM jobs. Sourced by run.sh after common.sh and images.sh.
# shellcheck source=recipes/lib/long-runs.sh
. "${JOBS_LIB}/long-runs.sh"
# shellcheck source=recipes/lib/run-status.sh
. "${JOBS_LIB}/run-status.sh"
# shellcheck source=recipes/lib/throughput.sh
. "${JOBS_LIB}/throughput.sh"
# shellcheck source=recipes/lib/data.sh
. "${JOBS_LIB}/data.sh"
# shellcheck source=recipes/lib/megatron-checkpoints.sh
. "${JOBS_LIB}/megatron-checkpoints.sh"

# check_layout: the divisor rules of Megatron, before any node waits for another.
check_layout() {
    local -r world=$(((SLURM_JOB_NUM_NODES - SPARE_NODES) * GPUS_PER_NODE)) block=$((TENSOR_PARALLEL * PIPELINE_PARALLEL * CONTEXT_PARALLEL))
    ((world % block == 0)) || die "${world} GPUs are not a multiple of tensor ${TENSOR_PARALLEL} x pipeline ${PIPELINE_PARALLEL} x context ${CONTEXT_PARALLEL}"
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
    begin_long_run "${MODEL}"
    mkdir -p "${run_dir}/tensorboard"
    DATA_CACHE_DIR="${DATA_CACHE_DIR:-${STAGE_PATH}/datacache}"
    mkdir -p "${DATA_CACHE_DIR}"
}

# model_arguments: prints one argument a line.
model_arguments() {
    printf '%s\n' --num-layers "${NUM_LAYERS}" --hidden-size "${HIDDEN_SIZE}" --num-attention-heads "${NUM_ATTENTION_HEADS}" \
        --seq-length "${SEQUENCE}" --max-position-embeddings "${SEQUENCE}" --attention-backend auto \
        --tensor-model-parallel-size "${TENSOR_PARALLEL}" --pipeline-model-parallel-size "${PIPELINE_PARALLEL}" \
        --use-distributed-optimizer "--${PRECISION}" --micro-batch-size "${MICRO_BATCH}" --global-batch-size "${GLOBAL_BATCH}" \
        --train-iters "${ITERATIONS}" --lr "${LEARNING_RATE}" --min-lr "${MIN_LEARNING_RATE}" --lr-decay-style cosine --lr-warmup-fraction .001 \
        --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.006 --clip-grad 1.0 \
        --log-interval "${LOG_INTERVAL}" --eval-iters "${EVAL_ITERATIONS}" --eval-interval "${EVAL_INTERVAL}" \
        --tensorboard-dir "${run_dir}/tensorboard" --log-throughput
    # Which rank is slow is written at the level of information only.
    if ((wanted_nodes * GPUS_PER_NODE > 1)); then printf '%s\n' --log-straggler --straggler-minmax-count 1 --logging-level 20; fi
    # Sequence parallelism needs tensor parallelism.
    if ((TENSOR_PARALLEL > 1)); then echo --sequence-parallel; fi
    if ((CONTEXT_PARALLEL > 1)); then printf '%s\n' --context-parallel-size "${CONTEXT_PARALLEL}"; fi
    if ((NUM_EXPERTS > 0)); then printf '%s\n' --num-experts "${NUM_EXPERTS}" --expert-model-parallel-size "${EXPERT_PARALLEL}"; fi
    case "${RECOMPUTE}" in
        selective) echo --recompute-activations ;;
        full) printf '%s\n' --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 ;;
    esac
    if [[ "${USE_SHARP}" == 1 ]]; then echo --use-sharp; fi
    if ((SAVE_INTERVAL > 0)); then
        printf '%s\n' --save "${run_dir}/checkpoints" --save-interval "${SAVE_INTERVAL}" --ckpt-format torch_dist \
            --ckpt-fully-parallel-load --async-save --use-persistent-ckpt-worker --ckpt-assume-constant-structure
        if [[ -n "$(run_mark)" ]]; then printf '%s\n' --load "${run_dir}/checkpoints" --exit-on-missing-checkpoint; fi
        # By its own clock first: whoever signals torchrun leaves the ranks half a minute. Source: PyTorch,
        # torch/distributed/elastic/multiprocessing/api.py.
        echo --exit-signal-handler
        local now
        printf -v now '%(%s)T' -1
        if [[ -n "${STOP_AT:-}" ]]; then printf '%s\n' --exit-duration-in-mins "$((STOP_AT - now > 120 ? (STOP_AT - now) / 60 : 1))"; fi
        # On the local disks they are lost with the node, and quick; it needs nvidia-resiliency-ext in the image.
        if ((LOCAL_SAVE_INTERVAL > 0)) && [[ -n "${NVME_MOUNT}" ]]; then
            printf '%s\n' --non-persistent-save-interval "${LOCAL_SAVE_INTERVAL}" --non-persistent-ckpt-type local \
                --non-persistent-local-ckpt-dir "${NVME_MOUNT}/checkpoints-${RUN_NAME}"
        fi
    fi
}

# prefixes FILE...: the data path without its suffix, once each.
prefixes() {
    local file
    for file in "$@"; do echo "${file%.bin}"; done
}

# data_arguments: Megatron's mock data, or the tokenized files of the corpus: the last CHUNKS files validate, the CHUNKS before them test, the rest trains; prints one argument a line.
data_arguments() {
    corpus
    if [[ "${DATA}" == mock ]]; then
        printf '%s\n' --mock-data --tokenizer-type NullTokenizer --vocab-size "${VOCABULARY}" --split 98,2,0
        return
    fi
    local -r data="$(data_folder)/preprocessed" bpe="${STAGE_PATH}/tokenizers/gpt2"
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

# prepare_launch: the image, on the nodes of the launch.
prepare_launch() {
    image="$(stage_image "${CONTAINER}")"
    port="$(free_port)"
}

# launch: torchrun on every node, in the container.
launch() {
    # `set -e` is off in a function whose status is tested, so each step that may fail returns by itself.
    local mounts pruner status=0
    # Everything that is written must be mounted, or it is lost with the container.
    mounts="${STAGE_PATH}:${STAGE_PATH},${results:?}:${results},${PWD}:${PWD}"
    if [[ -d /opt/microsoft ]]; then mounts+=",/opt/microsoft:/opt/microsoft:ro"; fi
    if [[ -n "${NVME_MOUNT}" ]]; then mounts+=",${NVME_MOUNT}:${NVME_MOUNT}"; fi
    if [[ "${DATA_CACHE_DIR}" != "${STAGE_PATH}"/* ]]; then mounts+=",${DATA_CACHE_DIR}:${DATA_CACHE_DIR}"; fi
    export CUDA_DEVICE_MAX_CONNECTIONS=1
    local -a arguments extra=()
    mapfile -t arguments < <(model_arguments)
    if [[ -n "${EXTRA_ARGUMENTS}" ]]; then read -r -a extra <<<"${EXTRA_ARGUMENTS}"; fi
    printf '%q ' "${arguments[@]}" "${data_of_run[@]}" "${extra[@]}" >"${results}/arguments.txt"
    prune_in_background >>"${results}/prune.log" 2>&1 </dev/null &
    pruner=$!
    # Each node is told its rank, so that ranks follow the order of the nodes: that of the switches, and the one in which a
    # slow rank is looked up. Without, torchrun sorts nodes by name, and hpc-10 comes before hpc-2.
    # shellcheck disable=SC2016  # expanded in the container
    srun "${srun_places[@]}" --ntasks="${wanted_nodes}" --ntasks-per-node=1 --cpus-per-task="${VCPUS}" --gpus-per-node="${GPUS_PER_NODE}" --mem=0 --kill-on-bad-exit=1 \
        --container-image="${image}" --container-mounts="${mounts}" --container-env="$(kept_in_container CUDA_DEVICE_MAX_CONNECTIONS)" \
        --container-workdir="${STAGE_PATH}/Megatron-LM-${MEGATRON_COMMIT}" \
        bash -c 'exec torchrun --node_rank "${SLURM_NODEID}" "$@"' torchrun \
        --nproc_per_node "${GPUS_PER_NODE}" --nnodes "${wanted_nodes}" --master_addr "${run_nodes[0]}" --master_port "${port}" pretrain_gpt.py "${arguments[@]}" "${data_of_run[@]}" "${extra[@]}" ||
        status=$?
    kill "${pruner}" 2>/dev/null || true
    return "${status}"
}

# run_is_finished STATUS: Megatron also ends well when its time is over, or when it is asked to.
run_is_finished() {
    local reached
    (($1 == 0)) || return 1
    # The last line is printed at a multiple of the log interval. A run whose end is saved has nothing left to print.
    reached="$(untagged "${launch_log}" | sed -nE 's/.* iteration +([0-9]{1,12})\/ *[0-9]+ \|.*/\1/p' | tail -n 1)"
    if ((10#${reached:-0} + LOG_INTERVAL > ITERATIONS)); then return 0; fi
    reached="$(run_mark)"
    is_count "${reached}" && ((reached >= ITERATIONS))
}

judge_long_run() {
    local text="${results}/train.log"
    prune_checkpoints
    # A job that found the training at its end has no line of its own.
    if ! grep -qE '[[:blank:]]iteration[[:blank:]]+[0-9]+/' "${text}"; then text="${run_dir}/train.log"; fi
    judge_training "${text}" "${results}/checks.tsv"
}

# judge_training LOG FILE: the last iteration must be reached with a finite loss and no skipped or NaN step.
judge_training() {
    local -r output="$1" file="$2"
    local last iteration loss nan verdict
    # A line that has no end says nothing: it is what a killed job wrote last.
    last="$(whole_lines "${output}" | grep -E 'iteration +[0-9]+/ *[0-9]+ \|.*number of nan iterations: +[0-9]+ \|' | tail -n 1 || true)"
    if [[ -z "${last}" ]]; then
        record "${file}" iterations error "" "${ITERATIONS}" iterations "no iteration line in the log"
        return
    fi
    iteration="$(sed -E 's/.*iteration +([0-9]+)\/.*/\1/' <<<"${last}")"
    loss="$(sed -nE 's/.*lm loss: *([^ |]+).*/\1/p' <<<"${last}")"
    nan="$(sed -nE 's/.*number of nan iterations: *([0-9]+).*/\1/p' <<<"${last}")"
    verdict=fail
    # The last line is printed at a multiple of the log interval.
    if is_count "${iteration}" && ((iteration + LOG_INTERVAL > ITERATIONS)); then verdict=pass; fi
    record "${file}" iterations "${verdict}" "${iteration}" "${ITERATIONS}" iterations ""
    verdict=fail
    if [[ "${loss}" =~ ^[0-9.]+([eE][+-]?[0-9]+)?$ ]] && is_number "${loss}"; then verdict=pass; fi
    record "${file}" loss "${verdict}" "${loss:-none}" "a positive number" "" ""
    verdict=fail
    if [[ "${nan}" == 0 ]]; then verdict=pass; fi
    record "${file}" nan_iterations "${verdict}" "${nan:-none}" 0 iterations ""
    megatron_progress "${output}" >"${results}/progress.tsv"
    judge_progress "${results}/progress.tsv" "${file}"
    if ((wanted_nodes * GPUS_PER_NODE > 1)); then judge_stragglers "${output}" "${file}"; fi
}

# train DATA_ARGUMENT...: to the end, over launches and jobs; exits with the verdict.
train() {
    data_of_run=("$@")
    train_to_the_end
}
