# shellcheck shell=bash
# Which nodes of a job are fit to train: Slurm's view, then a short look from each node itself. It needs seconds, so that
# it comes before every launch; the longer checks are in the prolog and in the recipe node-health. Sourced by
# long-runs.sh after common.sh.

# choose_nodes: $run_nodes, as many as the run wants, and $bad_nodes. With too few of them the next job gets others.
choose_nodes() {
    local -a allocated=() up=()
    local node
    run_nodes=() bad_nodes=() srun_places=()
    rm -rf "${results:?}/gate"
    mkdir -p "${results}/gate"
    mapfile -t allocated < <(requested_nodes)
    slurms_verdict "${allocated[@]}"
    for node in "${allocated[@]}"; do
        if [[ ! -s "${results}/gate/${node}.bad" ]]; then up+=("${node}"); fi
    done
    if ((${#up[@]})); then ask_nodes "${up[@]}"; fi
    for node in "${allocated[@]}"; do
        if [[ -s "${results}/gate/${node}.bad" ]]; then
            bad_nodes+=("${node}")
            log "${node} is left out: $(<"${results}/gate/${node}.bad")"
            record "${results}/checks.tsv" node_gate warn "" "" "" "left out: $(<"${results}/gate/${node}.bad")" "" "${node}"
        elif ((${#run_nodes[@]} < ${wanted_nodes:?})); then
            run_nodes+=("${node}")
        fi
    done
    if ((${#run_nodes[@]} < wanted_nodes)); then
        ((${#bad_nodes[@]})) || die "${#allocated[@]} nodes for a run that wants ${wanted_nodes}"
        if ((${#bad_nodes[@]} == ${#allocated[@]})); then
            die "no node of this job is fit to train, so it is not the nodes: ${bad_nodes[0]}: $(<"${results}/gate/${bad_nodes[0]}.bad")"
        fi
        submit_next "${#run_nodes[@]} nodes are fit to train and ${wanted_nodes} are needed; left out: ${bad_nodes[*]}"
    fi
    # A step that ends because Slurm takes a lost node out of the job keeps the CPUs of the others ("unable to update job's
    # core use information due to job resizing"), and srun would ask for them without an end. Nobody else has steps here.
    # shellcheck disable=SC2034  # for launches
    srun_places=("--nodes=${wanted_nodes}" "--nodelist=$(IFS=,; echo "${run_nodes[*]}")" --overlap)
}

# slurms_verdict NODE...: nodes that are down, do not answer, or that a health check drains while the job runs.
# Source: man sinfo, NODE STATE CODES.
slurms_verdict() {
    local node state
    while IFS='|' read -r node state; do
        case "${state}" in
            down* | drain* | fail* | *\*) printf 'Slurm says %s\n' "${state}" >"${results}/gate/${node}.bad" ;;
        esac
    done < <(sinfo --noheader --Node --nodes="$(IFS=,; echo "$*")" --format='%N|%T' 2>/dev/null | sort -u)
}

# ask_nodes NODE...: one task on each; a node that does not say that it is fit is bad.
ask_nodes() {
    local node
    # shellcheck disable=SC2016  # expanded on each node
    bounded "${GATE_TIMEOUT_S:-180}" srun --nodes="$#" --nodelist="$(IFS=,; echo "$*")" --ntasks="$#" --ntasks-per-node=1 --cpus-per-task=1 \
        --cpu-bind=none --kill-on-bad-exit=0 bash -c '. ./library.sh; . "${JOBS_LIB}/node-gate.sh"; look_at_node' \
        >"${results}/gate/srun.log" 2>&1 || true
    if was_cut_off; then die "the job ends before its nodes could answer; submit it with a longer --time"; fi
    for node in "$@"; do
        if [[ ! -e "${results}/gate/${node}.fit" && ! -s "${results}/gate/${node}.bad" ]]; then
            printf 'it does not answer\n' >"${results}/gate/${node}.bad"
        fi
    done
}

# look_at_node: on the node, as a task. Fit, or bad with a reason.
look_at_node() {
    local -r name="${SLURMD_NODENAME:?}"
    local why=""
    keep_node_facts
    if ! { : >"${run_dir:?}/.gate-${name}"; } 2>/dev/null; then
        why="${run_dir} cannot be written"
    elif ((${GPUS_PER_NODE:-0} > 0)); then
        why="$(gpus_missing)"
    fi
    rm -f "${run_dir}/.gate-${name}" || true
    if [[ -z "${why}" && -n "${NVME_MOUNT:-}" ]] && ! mountpoint -q "${NVME_MOUNT}"; then why="${NVME_MOUNT} is not mounted"; fi
    if [[ -n "${why}" ]]; then printf '%s\n' "${why}" >"${results:?}/gate/${name}.bad"; else : >"${results:?}/gate/${name}.fit"; fi
}

# gpus_missing: why the GPUs are not those that the job counts on; nothing if they are.
gpus_missing() {
    local count=0 folder
    if [[ "${GPU_VENDOR:-}" == AMD ]]; then
        # Processors have no SIMD units. Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
        for folder in "${CF_SYS:-/sys}"/class/kfd/kfd/topology/nodes/*; do
            if grep -qE '^simd_count [1-9]' "${folder}/properties" 2>/dev/null; then count=$((count + 1)); fi
        done
    else
        count="$(timeout 60 nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ')" || true
        if timeout 60 nvidia-smi --query-remapped-rows=remapped_rows.pending,remapped_rows.failure --format=csv,noheader 2>/dev/null | grep -qiE 'yes|[1-9]'; then
            echo "a GPU waits for a reset to remap memory rows"
            return 0
        fi
    fi
    if ((count != GPUS_PER_NODE)); then echo "${count} of ${GPUS_PER_NODE} GPUs"; fi
}
