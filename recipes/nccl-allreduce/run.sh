#!/usr/bin/env bash
# NCCL all-reduce over all GPUs of the job with data checking; the exit status is the verdict on the bus bandwidth.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
# shellcheck source=recipes/nccl-allreduce/parse.sh
. ./parse.sh

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

all_reduce() {
    local -r tasks=$((TASKS_PER_NODE * SLURM_JOB_NUM_NODES))
    local -a options=(--mpi=pmix "--ntasks=${tasks}" "--cpus-per-task=${CPUS_PER_TASK}" --gpus-per-node="${GPUS_PER_NODE}")
    options+=(--ntasks-per-node="${TASKS_PER_NODE}" "--cpu-bind=${CPU_BIND}" --mem=0)
    if [[ -n "${CONTAINER}" ]]; then
        options+=(--container-image="${CONTAINER}" --container-mounts="${CONTAINER_MOUNTS},${results}:${results}")
        options+=("--container-env=NCCL_DEBUG,NCCL_DEBUG_FILE,NCCL_TOPO_FILE")
    else
        load_modules
        if [[ -n "${MPI_MODULE}" ]] && declare -F module >/dev/null; then module load "${MPI_MODULE}"; fi
    fi
    # The log of each rank tells which algorithm NCCL used; a baseline holds for its algorithm only.
    export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING NCCL_DEBUG_FILE="${results}/nccl.%h.%p.log"
    timeout "${TIMEOUT_S}" srun "${options[@]}" "${NCCL_TEST_BINARY}" \
        -b "${MESSAGE_SIZE}" -e "${MESSAGE_SIZE}" -f 2 -g 1 -c 1 -n "${ITERATIONS}" | tee "${results}/all_reduce.log"
}

main() {
    load_settings
    require GPUS_PER_NODE TASKS_PER_NODE CPUS_PER_TASK CPU_BIND MESSAGE_SIZE ITERATIONS NCCL_TEST_BINARY TIMEOUT_S
    require_commands srun scontrol timeout
    new_results_folder
    load_nccl_env
    count_gpus
    if [[ "$(worst_in "${results}/checks.tsv")" != pass ]]; then
        results_json "${results}/checks.tsv" >"${results}/checks.json"
        finish fail "a node lacks a GPU"
    fi
    if all_reduce; then
        judge_all_reduce "${results}/all_reduce.log" "${results}/checks.tsv"
    else
        record "${results}/checks.tsv" all_reduce error "" "" "" "all_reduce_perf or srun failed or ran past ${TIMEOUT_S} s"
    fi
    results_json "${results}/checks.tsv" >"${results}/checks.json"
    finish "$(worst_in "${results}/checks.tsv")" "busbw ${bus_bandwidth:-unknown} GB/s at ${MESSAGE_SIZE} on ${SLURM_JOB_NUM_NODES} nodes, algorithm ${algorithm:-unknown}"
}
main "$@"
