# shellcheck shell=bash
# Starts nccl-tests or rccl-tests on all GPUs of a job and judges what they print. Sourced after common.sh.
# COLLECTIVES names what is measured, MESSAGE_SIZE the message that is judged, SWEEP_FROM the smallest one of a sweep, LAUNCH
# how the programs are started:
#   pmix       srun with PMIx
#   container  the same in a container (pyxis), with the container's own programs
#   mpirun     bare mpirun with a host file, in a job of Slurm or without Slurm
# shellcheck disable=SC2154  # nccl_names is from load_nccl_env of common.sh
# shellcheck source=recipes/lib/nccl.sh
. "${JOBS_LIB}/nccl.sh"
# shellcheck source=recipes/lib/judge.sh
. "${JOBS_LIB}/judge.sh"
# shellcheck source=recipes/lib/hosts.sh
. "${JOBS_LIB}/hosts.sh"
# shellcheck source=recipes/lib/mpi.sh
. "${JOBS_LIB}/mpi.sh"

# Variables that mpirun hands on to the other nodes; those of Open MPI itself it does hand on.
readonly HANDED_ON='^((NCCL|RCCL|UCX|SHARP|CUDA|HIP|ROCR|HSA)_|(LD_LIBRARY_PATH|GPU_VENDOR|JOBS_LIB)$)'

# choose_launch: sets LAUNCH where the settings leave it open, and stops where the given one is not possible.
choose_launch() {
    if [[ -z "${LAUNCH}" ]]; then
        LAUNCH=pmix
        if [[ -n "${CONTAINER}" ]]; then LAUNCH=container; elif [[ -n "${NODES_OF_RUN:-}" ]]; then LAUNCH=mpirun; fi
    fi
    case "${LAUNCH}" in
        pmix | mpirun) [[ -z "${CONTAINER}" ]] || die "LAUNCH=${LAUNCH} starts no container; leave CONTAINER empty, or set LAUNCH=container" ;;
        container) require CONTAINER ;;
        *) die "LAUNCH is '${LAUNCH}'; set pmix, container or mpirun" ;;
    esac
    if [[ -n "${NODES_OF_RUN:-}" && "${LAUNCH}" != mpirun ]]; then die "LAUNCH=${LAUNCH} needs a job of Slurm; submit job.sbatch, or set LAUNCH=mpirun and HOSTFILE"; fi
    if [[ "${LAUNCH}" == mpirun ]]; then require_commands mpirun; else require_commands srun; fi
}

# without_slurm: the nodes of HOSTFILE and a number of the run, for a run that Slurm has not started.
without_slurm() {
    if [[ -n "${SLURM_JOB_ID:-}" ]]; then return 0; fi
    [[ -n "${HOSTFILE}" ]] || die "without Slurm, HOSTFILE must name a file of hosts; ./hosts.sh writes one"
    local nodes
    nodes="$(hosts_in "${HOSTFILE}")" || die "${HOSTFILE} is not a file of hosts; ./hosts.sh writes one"
    # Not exported: mpirun would take itself for a part of a job.
    printf -v SLURM_JOB_ID 'mpirun-%(%Y%m%dT%H%M%S)T-%s' -1 "$$"
    SLURM_JOB_NUM_NODES="$(wc -l <<<"${nodes}")"
    # shellcheck disable=SC2034  # for requested_nodes of common.sh
    NODES_OF_RUN="${nodes}"
}

# write_hostfile: the host file of this run in its results folder; in a job of Slurm a given one may name nodes of the job
# only, and all of them.
write_hostfile() {
    local given
    if [[ -n "${HOSTFILE}" ]]; then
        given="$(hosts_in "${HOSTFILE}")" || die "${HOSTFILE} is not a file of hosts; ./hosts.sh writes one"
        [[ "$(sort <<<"${given}")" == "$(requested_nodes | sort)" ]] || die "the hosts in ${HOSTFILE} are not the nodes of the job: $(requested_nodes | paste -sd ' ' -)"
    else
        given="$(requested_nodes)"
    fi
    host_lines "${TASKS_PER_NODE}" <<<"${given}" >"${results:?}/hosts"
}

# mpirun_options NP PER_NODE: one a line. Every host is started from here: a tree would need ssh between all of them.
mpirun_options() {
    local name bind=none
    # The GPUs of a node are near one of its NUMA nodes each; Open MPI binds in the order of the ranks.
    if [[ "${CPU_BIND}" == mask_cpu:* && "$2" != 1 ]]; then bind=numa; fi
    printf '%s\n' --hostfile "${results}/hosts" -np "$1" --map-by "ppr:$2:node" --bind-to "${bind}" \
        --mca plm_rsh_no_tree_spawn 1 --mca plm_rsh_num_concurrent 800 --mca coll_hcoll_enable 0
    if ((EUID == 0)); then echo --allow-run-as-root; fi
    while read -r name; do printf '%s\n' -x "${name}"; done < <(compgen -e | grep -E "${HANDED_ON}")
}

# by_mpirun SECONDS NP PER_NODE COMMAND...
by_mpirun() {
    local -r limit_s="$1"
    local -a options
    mapfile -t options < <(mpirun_options "$2" "$3")
    shift 3
    # By its path, so that it finds its own daemon on the other nodes.
    bounded "${limit_s}" "$(command -v mpirun)" "${options[@]}" "$@"
}

# gpus_here: how many GPUs this node has. The kernel's own list of AMD's GPUs needs no tool.
gpus_here() {
    if [[ "${GPU_VENDOR:-}" == AMD ]]; then
        grep -lE '^simd_count [1-9]' "${CF_SYS:-/sys}"/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null | wc -l
    else
        nvidia-smi --list-gpus | grep -c "^GPU "
    fi
}

# count_gpus: first of all, because a node that lacks one must fail for that, not hang in NCCL.
count_gpus() {
    local node count
    # shellcheck disable=SC2016  # expanded on each node
    local -r command='set -euo pipefail
        . ./library.sh; . "${JOBS_LIB}/collective.sh"
        export results="$1" GPU_VENDOR="$2" SLURMD_NODENAME="${SLURMD_NODENAME:-$(hostname -s)}"
        keep_node_facts
        printf "%s %s\n" "${SLURMD_NODENAME}" "$(gpus_here)"'
    local -a words=(bash -c "${command}" count "${results}" "${GPU_VENDOR}")
    need_time
    if [[ -n "${NODES_OF_RUN:-}" ]]; then
        by_mpirun 300 "${SLURM_JOB_NUM_NODES}" 1 "${words[@]}" >"${results}/gpus.txt" || log "not every node has counted its GPUs"
    else
        bounded 300 srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpu-bind=none --cpus-per-task=1 \
            --kill-on-bad-exit=0 "${words[@]}" >"${results}/gpus.txt" || log "not every node has counted its GPUs"
    fi
    while read -r node; do
        count="$(untagged "${results}/gpus.txt" | awk -v node="${node}" '$1 == node { print $2 }')"
        if [[ "${count}" == "${GPUS_PER_NODE}" ]]; then
            record "${results}/checks.tsv" gpus pass "${count}" "${GPUS_PER_NODE}" GPUs "" "" "${node}"
        elif [[ -n "${count}" ]] || ! was_cut_off; then
            record "${results}/checks.tsv" gpus fail "${count:-none}" "${GPUS_PER_NODE}" GPUs "counted on the node" "" "${node}"
        fi
    done < <(requested_nodes)
    end_if_cut_off
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

# launch COLLECTIVE: the test program of that collective on all GPUs; its output is in <collective>.log of the results.
launch() {
    local -r tasks=$((TASKS_PER_NODE * SLURM_JOB_NUM_NODES))
    local binary="${NCCL_TEST_BINARY}"
    local -a options=(--mpi=pmix "--ntasks=${tasks}" "--cpus-per-task=${CPUS_PER_TASK}" --gpus-per-node="${GPUS_PER_NODE}")
    local -a sizes=(-b "${SWEEP_FROM:-${MESSAGE_SIZE}}" -e "${MESSAGE_SIZE}" -f 2 -g $((GPUS_PER_NODE / TASKS_PER_NODE)) -c 1 -n "${ITERATIONS}")
    options+=(--ntasks-per-node="${TASKS_PER_NODE}" "--cpu-bind=${CPU_BIND}" --mem=0)
    # The others would wait for a rank that has died until the time is up.
    options+=(--kill-on-bad-exit=1)
    # The log of rank 0 tells which algorithm NCCL used; a baseline holds for its algorithm only.
    export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING NCCL_DEBUG_FILE="${results}/nccl.${1}.%h.%p.log"
    if [[ "${LAUNCH}" == container ]]; then
        local -a inside
        mapfile -t inside < <(container_options)
        options+=("${inside[@]}")
        binary="${CONTAINER_TEST_BINARY}"
    fi
    # The settings name the programs of all collectives by one text.
    binary="${binary//COLLECTIVE/${1}}"
    if [[ "${LAUNCH}" == mpirun ]]; then
        by_mpirun "${TIMEOUT_S}" "${tasks}" "${TASKS_PER_NODE}" "${binary}" "${sizes[@]}"
    else
        bounded "${TIMEOUT_S}" srun "${options[@]}" "${binary}" "${sizes[@]}"
    fi | tee "${results}/${1}.log"
}

# measure COLLECTIVE: launches and judges it; sets `failed` where the launch did not end well.
measure() {
    local -a logs
    local status=0 problem
    need_time
    launch "$1" || status=$?
    # A launch may fail by itself. What ran out of time, or has begun to print figures, counts.
    if ((status != 0 && status != 124 && status != 137)) && [[ -z "$(tests_rows "${results}/${1}.log")" ]]; then
        log "${1}_perf or its launcher ended with ${status}; launched once more"
        rm -f "${results}/nccl.${1}."*.log
        status=0
        launch "$1" || status=$?
    fi
    if ((status != 0)); then
        problem="failed with exit status ${status}"
        if ((status == 124)); then problem="ran past ${TIMEOUT_S} s"; fi
        if was_cut_off; then problem="was ended, because the job ends"; fi
        record "${results}/checks.tsv" "$1" error "" "" "" "${1}_perf or its launcher ${problem}"
        failed="$1"
        return
    fi
    logs=("${results}/nccl.${1}."*.log)
    judge_collective "$1" "${results}/${1}.log" "${results}/checks.tsv" "${logs[@]}"
    version nccl "$(nccl_version "${results}/${1}.log" "${logs[@]}")"
    log "${1}: ${bus_bandwidth:-unknown} GB/s at ${measured_bytes:-unknown} bytes, NCCL $(nccl_version "${results}/${1}.log" "${logs[@]}"), algorithm ${algorithm}, fabric ${fabric}"
    summary+="${summary:+, }${1} ${bus_bandwidth:-unknown}"
}

# is_judged COLLECTIVE: it has a check of its bandwidth, or one that says why not; ranks that pass are no measurement.
is_judged() {
    awk -F '\t' -v name="$1" '$1 == name || (index($1, name " ") == 1 && $2 != "pass") { found = 1 } END { exit !found }' "${results:?}/checks.tsv"
}

# check_settings: what stops the job before it asks anything of a node.
check_settings() {
    local name size
    require COLLECTIVES GPUS_PER_NODE TASKS_PER_NODE CPUS_PER_TASK CPU_BIND MESSAGE_SIZE ITERATIONS NCCL_TEST_BINARY \
        CONTAINER_TEST_BINARY TIMEOUT_S MEDIAN_FAIL_PERCENT MEDIAN_WARN_PERCENT MEDIAN_MIN_RUNS
    require_commands timeout awk paste
    for name in ${COLLECTIVES}; do
        [[ -n "${NCCL_FUNCTION[${name}]:-}" ]] || die "COLLECTIVES has '${name}'; known are ${!NCCL_FUNCTION[*]}"
    done
    for name in MESSAGE_SIZE SWEEP_FROM; do
        size="${!name:-}"
        [[ -z "${size}" ]] || bytes_of "${size}" >/dev/null || die "${name} is '${size}'; give a number with K, M or G, for example 8G"
    done
    if [[ -n "${SWEEP_FROM:-}" ]]; then
        sweep_reaches "$(bytes_of "${SWEEP_FROM}")" "$(bytes_of "${MESSAGE_SIZE}")" || die "a sweep from ${SWEEP_FROM} by factors of two does not reach ${MESSAGE_SIZE}"
    fi
    ((TASKS_PER_NODE > 0 && GPUS_PER_NODE % TASKS_PER_NODE == 0)) || die "${GPUS_PER_NODE} GPUs of a node cannot be divided among ${TASKS_PER_NODE} tasks"
}

# sweep_reaches FROM TO: whether doubling leads from one to the other.
sweep_reaches() {
    local -i size="$1"
    ((size > 0)) || return 1
    while ((size < $2)); do size=$((size * 2)); done
    ((size == $2))
}

# run_collectives: the whole job.
run_collectives() {
    local name failed=""
    summary=""
    load_settings
    without_slurm
    new_results_folder
    choose_launch
    check_settings
    forget_tuning
    load_nccl_env
    if [[ "${LAUNCH}" != container ]]; then load_modules; fi
    if [[ "${LAUNCH}" == mpirun ]]; then write_hostfile; fi
    count_gpus
    if [[ "$(worst_in "${results}/checks.tsv")" != pass ]]; then conclude "a node lacks a GPU"; fi
    for name in ${COLLECTIVES}; do
        # What stopped one stops the others, each after its own time limit.
        if [[ -n "${failed}" ]]; then
            record "${results}/checks.tsv" "${name}" error "" "" "" "not started, because ${failed} did not end well"
        else
            measure "${name}"
        fi
        is_judged "${name}" || record "${results}/checks.tsv" "${name}" error "" "" "" "was not judged"
    done
    conclude "busbw in GB/s at ${MESSAGE_SIZE} on ${SLURM_JOB_NUM_NODES} nodes: ${summary:-nothing was measured}"
}
