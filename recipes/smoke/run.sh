#!/usr/bin/env bash
# One task per node: the node starts, runs a task and sees the same shared file system as the submitting side.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh

probe() {
    local -r file="${results:?}/marker"
    stat --file-system "${SHARED_DIR}" >/dev/null || die "${SHARED_DIR} does not answer on $(hostname -s)"
    keep_node_facts
    [[ "$(cat "${file}")" == "${SLURM_JOB_ID}" ]] || die "${file} does not contain the job id on $(hostname -s)"
    hostname -s >"${results}/${SLURMD_NODENAME}.node"
    log "$(hostname -s): $(nproc) CPUs, $(awk '/MemTotal/ { print $2 }' /proc/meminfo) kB"
}

main() {
    load_settings
    if [[ "${1:-}" == probe ]]; then
        probe
        return
    fi
    new_results_folder
    require SHARED_DIR TIMEOUT_S
    require_commands srun scontrol timeout
    # In the job's own folder, in a home folder: the root of the shared file system belongs to root.
    echo "${SLURM_JOB_ID}" >"${results}/marker"
    need_time
    if ! bounded "${TIMEOUT_S}" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task=1 --kill-on-bad-exit=0 "$(realpath "$0")" probe; then
        log "srun reported a failed task"
    fi
    local node
    while read -r node; do
        if [[ -s "${results}/${node}.node" ]]; then
            record "${results}/checks.tsv" answers pass "" "" "" "" "" "${node}"
        elif ! was_cut_off; then
            record "${results}/checks.tsv" answers fail "" "" "" "no answer from its task, which failed, hangs or never started" "" "${node}"
        fi
    done < <(requested_nodes)
    conclude "$(grep -c $'\tpass\t' "${results}/checks.tsv" 2>/dev/null || true) of ${SLURM_JOB_NUM_NODES} nodes answered"
}
main "$@"
