#!/usr/bin/env bash
# NCCL all-reduce over all GPUs of the job with data checking; the exit status is the verdict on the bus bandwidth.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/lib/nccl.sh
. ./lib/nccl.sh
# shellcheck source=recipes/nccl-allreduce/judge.sh
. ./judge.sh

# The GPUs are counted first: a node that lacks one must fail for that, not hang in NCCL.
count_gpus() {
    local node count
    # shellcheck disable=SC2016  # expanded on each node
    srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpu-bind=none --cpus-per-task=1 --kill-on-bad-exit=0 \
        bash -c 'printf "%s %s\n" "${SLURMD_NODENAME}" "$(nvidia-smi --list-gpus | grep -c "^GPU ")"' \
        >"${results}/gpus.txt" || log "srun reported a failed GPU count"
    while read -r node; do
        count="$(awk -v node="${node}" '$1 == node { print $2 }' "${results}/gpus.txt")"
        if [[ "${count}" == "${GPUS_PER_NODE}" ]]; then
            record "${results}/checks.tsv" "gpus ${node}" pass "${count}" "${GPUS_PER_NODE}" GPUs ""
        else
            record "${results}/checks.tsv" "gpus ${node}" fail "${count:-none}" "${GPUS_PER_NODE}" GPUs "counted by nvidia-smi"
        fi
    done < <(requested_nodes)
}

# load_modules: defines `module` where the image has it. The whole of /etc/profile would replace PATH.
load_modules() {
    local file
    for file in /etc/profile.d/modules.sh /usr/share/modules/init/bash /etc/profile.d/lmod.sh; do
        if declare -F module >/dev/null || [[ ! -r "${file}" ]]; then continue; fi
        set +u
        # shellcheck source=/dev/null
        . "${file}"
        set -u
    done
}

# container_options: the container runs its own nccl-tests. Those of the node are built for the node's CUDA, MPI and C
# library. Variables of the machine win over those of the image, but for the path of libraries that only the node has.
container_options() {
    local mounts="${results}:${results}"
    # The topology files of the node; a link there names another file below the same folder.
    if [[ "${NCCL_TOPO_FILE:-}${NCCL_GRAPH_FILE:-}" == */opt/microsoft/* ]]; then mounts+=",/opt/microsoft:/opt/microsoft:ro"; fi
    if [[ -n "${CONTAINER_MOUNTS}" ]]; then mounts+=",${CONTAINER_MOUNTS}"; fi
    printf '%s\n' "--container-image=${CONTAINER}" "--container-mounts=${mounts}" \
        "--container-env=NCCL_DEBUG,NCCL_DEBUG_SUBSYS,NCCL_DEBUG_FILE$(printf ',%s' "${nccl_names[@]}")"
    # PMIx checks that the user in the container is the one who started the job.
    echo --no-container-remap-root
}

all_reduce() {
    local -r tasks=$((TASKS_PER_NODE * SLURM_JOB_NUM_NODES))
    local -a options=(--mpi=pmix "--ntasks=${tasks}" "--cpus-per-task=${CPUS_PER_TASK}" --gpus-per-node="${GPUS_PER_NODE}")
    local binary="${NCCL_TEST_BINARY}"
    options+=(--ntasks-per-node="${TASKS_PER_NODE}" "--cpu-bind=${CPU_BIND}" --mem=0)
    # The log of rank 0 tells which algorithm NCCL used; a baseline holds for its algorithm only.
    export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING NCCL_DEBUG_FILE="${results}/nccl.%h.%p.log"
    if [[ -n "${CONTAINER}" ]]; then
        local -a inside
        mapfile -t inside < <(container_options)
        options+=("${inside[@]}")
        binary="${CONTAINER_TEST_BINARY}"
    else
        load_modules
        if [[ -n "${MPI_MODULE}" ]] && declare -F module >/dev/null; then module load "${MPI_MODULE}"; fi
    fi
    timeout "${TIMEOUT_S}" srun "${options[@]}" "${binary}" \
        -b "${MESSAGE_SIZE}" -e "${MESSAGE_SIZE}" -f 2 -g $((GPUS_PER_NODE / TASKS_PER_NODE)) -c 1 -n "${ITERATIONS}" | tee "${results}/all_reduce.log"
}

# conclude TEXT: writes the results and ends the job with the worst verdict.
conclude() {
    local verdict
    verdict="$(worst_in "${results}/checks.tsv")"
    results_json "${results}/checks.tsv" >"${results}/checks.json.partial"
    mv "${results}/checks.json.partial" "${results}/checks.json"
    finish "${verdict}" "$1"
}

main() {
    load_settings
    require GPUS_PER_NODE TASKS_PER_NODE CPUS_PER_TASK CPU_BIND MESSAGE_SIZE ITERATIONS NCCL_TEST_BINARY CONTAINER_TEST_BINARY TIMEOUT_S \
        MEDIAN_FAIL_PERCENT MEDIAN_WARN_PERCENT MEDIAN_MIN_RUNS
    require_commands srun scontrol timeout awk paste
    bytes_of "${MESSAGE_SIZE}" >/dev/null || die "MESSAGE_SIZE is '${MESSAGE_SIZE}'; give a number with K, M or G, for example 8G"
    ((TASKS_PER_NODE > 0 && GPUS_PER_NODE % TASKS_PER_NODE == 0)) || die "${GPUS_PER_NODE} GPUs of a node cannot be divided among ${TASKS_PER_NODE} tasks"
    new_results_folder
    load_nccl_env
    count_gpus
    if [[ "$(worst_in "${results}/checks.tsv")" != pass ]]; then conclude "a node lacks a GPU"; fi
    local -a logs
    if all_reduce; then
        logs=("${results}"/nccl.*.log)
        judge_all_reduce "${results}/all_reduce.log" "${results}/checks.tsv" "${logs[@]}"
        log "NCCL $(nccl_version "${results}/all_reduce.log" "${logs[@]}"), algorithm ${algorithm:-unknown}, fabric ${fabric:-unknown}"
    else
        record "${results}/checks.tsv" all_reduce error "" "" "" "all_reduce_perf or srun failed or ran past ${TIMEOUT_S} s"
    fi
    conclude "busbw ${bus_bandwidth:-unknown} GB/s at ${measured_bytes:-${MESSAGE_SIZE}} bytes on ${SLURM_JOB_NUM_NODES} nodes, algorithm ${algorithm:-unknown}"
}
main "$@"
