#!/usr/bin/env bash
# What `nodes.sh` on the scheduler needs to tell old nodes from new ones: each node leaves a record of the generation with
# which it started, in a folder that the scheduler sees. The scheduler gets the programs of an administrator.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly PROGRAMS=(cycleforge.sh nodes.sh topology.sh)
# On the OS disk: it is as old as what is installed there, however often the scripts run and the node boots.
readonly STAMP="${CF_STATE_DIR}/generation"

stamp_generation() {
    if [[ -s "${STAMP}" ]]; then
        cf_outcome "$(<"${STAMP}")"
        return
    fi
    local now
    printf -v now '%(%s)T' -1
    cf_write "${STAMP}" 0644 <<<"$1 ${now}"
    cf_outcome "$(<"${STAMP}")"
}

# In the folder of this cluster on /sched, to which the links in /etc/slurm lead. A node works without its record, so nothing here fails.
leave_record() {
    local folder
    folder="$(readlink -f "${CF_ROOT}/etc/slurm/prolog.d" || true)"
    if [[ -z "${folder}" || ! -d "${folder}" ]]; then
        cf_warn "/etc/slurm/prolog.d is missing: nodes.sh will not know how old this node is"
        cf_outcome "not written"
        return
    fi
    folder="${folder%/*}/cycleforge/nodes"
    cf_node_name
    if [[ -L "${folder}" || -L "${folder%/*}" ]] || ! cf_write "${folder}/${REPLY}" 0644 <"${STAMP}"; then
        cf_warn "${folder} cannot be written: nodes.sh will not know how old this node is"
        cf_outcome "not written"
        return
    fi
    cf_outcome_file "${folder}/${REPLY}"
}

install_programs() {
    cf_install_files "${CYCLECLOUD_SPEC_PATH}/files" "${CF_ROOT}/opt/cycleforge/misc_ubuntu" "${PROGRAMS[@]}"
    cf_outcome "${CF_CHANGED} of ${#PROGRAMS[@]} files changed"
}

main() {
    local generation
    cf_role
    case "${REPLY}" in
        scheduler) cf_step "programs of the scheduler" install_programs ;;
        execute)
            cf_attribute cycleforge.generation ""
            generation="${REPLY}"
            if [[ -z "${generation}" ]]; then
                cf_log "no attribute cycleforge.generation: the template was made by an earlier CycleForge"
                return
            fi
            cf_step "generation" stamp_generation "${generation}"
            cf_step "record on /sched" leave_record
            ;;
        *) cf_log "nodes of the role ${REPLY} leave no record" ;;
    esac
}

cf_main main "$@"
