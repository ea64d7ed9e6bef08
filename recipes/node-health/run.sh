#!/usr/bin/env bash
# Health of every node of the job: one result file per node, one verdict for the run.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh

main() {
    load_settings
    require VM_SIZE RESULTS_DIR TIMEOUT_S
    require_commands srun scontrol timeout
    new_results_folder
    if ! timeout "${TIMEOUT_S}" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${VCPUS:-1}" --mem=0 --kill-on-bad-exit=0 ./node.sh; then
        log "srun reported a failed task or ran past ${TIMEOUT_S} s"
    fi
    local node verdict failed=()
    while read -r node; do
        verdict=fail
        if [[ -e "${results}/${node}.done" ]]; then verdict="$(worst_in "${results}/${node}.tsv")"; fi
        if [[ "${verdict}" != pass ]]; then failed+=("${node}"); fi
        record "${results}/nodes.tsv" "${node}" "${verdict}" "" "" "" "$(
            if [[ -e "${results}/${node}.done" ]]; then awk -F '\t' '$2 != "pass" { printf "%s: %s; ", $1, $2 }' "${results}/${node}.tsv"
            else echo "no complete result"; fi
        )"
        log "${node}: ${verdict}"
    done < <(requested_nodes)
    results_json "${results}/nodes.tsv" >"${results}/nodes.json"
    if ((${#failed[@]})); then printf '%s\n' "${failed[@]}" >"${results}/failed_nodes.txt"; fi
    finish "$(worst_in "${results}/nodes.tsv")" "${#failed[@]} of $(wc -l <"${results}/nodes.tsv") nodes did not pass"
}
main "$@"
