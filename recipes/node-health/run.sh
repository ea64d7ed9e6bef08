#!/usr/bin/env bash
# Health of every node of the job: one result file per node, one verdict for the run.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh

main() {
    load_settings
    new_results_folder
    require VM_SIZE TIMEOUT_S
    require_commands srun scontrol timeout
    need_time
    if ! bounded "${TIMEOUT_S}" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${VCPUS:-1}" --mem=0 --kill-on-bad-exit=0 ./node.sh; then
        log "srun reported a failed task"
    fi
    local node verdict failed=()
    while read -r node; do
        verdict=fail
        if [[ -e "${results}/${node}.done" ]]; then verdict="$(worst_in "${results}/${node}.tsv")"; fi
        if [[ -s "${results}/${node}.tsv" ]]; then cat "${results}/${node}.tsv" >>"${results}/checks.tsv"; fi
        if [[ ! -e "${results}/${node}.done" ]] && was_cut_off; then
            log "${node}: had no time for a complete result"
            continue
        fi
        if [[ "${verdict}" != pass ]]; then failed+=("${node}"); fi
        if [[ ! -e "${results}/${node}.done" ]]; then
            record "${results}/checks.tsv" complete fail "" "" "" "no complete result" "" "${node}"
        fi
        log "${node}: ${verdict}"
    done < <(requested_nodes)
    if ((${#failed[@]})); then printf '%s\n' "${failed[@]}" >"${results}/failed_nodes.txt"; fi
    conclude "${#failed[@]} of ${SLURM_JOB_NUM_NODES} nodes did not pass"
}
main "$@"
