#!/usr/bin/env bash
# On the scheduler: job hooks for all nodes, in the folders that slurm.conf of cyclecloud-slurm 4.x names.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

# Slurm runs several hooks in reverse alphabetical order, so ours comes before healthagent's 10-health_*.
readonly NAME=20-cycleforge_health.sh

install_hooks() {
    local changed
    cf_slurm_hook prolog "${NAME}" "${CYCLECLOUD_SPEC_PATH}/files/prolog.sh"
    changed="${CF_CHANGED}"
    cf_slurm_hook epilog "${NAME}" "${CYCLECLOUD_SPEC_PATH}/files/epilog.sh"
    cf_outcome "$((changed + CF_CHANGED)) of 2 hooks changed"
}

# Where nodes leave a copy of their results, for a table of the whole cluster.
make_results_folder() {
    cf_attribute cycleforge.health.results /sched/cycleforge-health
    if [[ "${REPLY}" == off ]]; then
        cf_outcome "off"
        return
    fi
    cf_attribute_path cycleforge.health.results /sched/cycleforge-health
    local -r folder="${CF_ROOT}${REPLY}"
    if [[ -d "${folder}" ]]; then
        cf_outcome "${REPLY} is there"
    elif [[ -d "${folder%/*}" ]]; then
        mkdir -m 0755 "${folder}"
        cf_outcome "${REPLY} made"
    else
        cf_outcome "${REPLY%/*} is not there, results stay on the nodes"
    fi
}

remove_hooks() {
    local kind changed=0
    for kind in prolog epilog; do
        cf_remove "${CF_ROOT}/etc/slurm/${kind}.d/${NAME}"
        changed=$((changed + CF_CHANGED))
    done
    cf_outcome "${changed} hooks removed"
}

main() {
    cf_role
    if [[ "${REPLY}" != scheduler ]]; then
        cf_log "job hooks are written by the scheduler, this node is: ${REPLY}"
        return
    fi
    cf_attribute_bool cycleforge.health.enabled true
    if [[ "${REPLY}" == true ]]; then
        cf_step "job hooks" install_hooks
        cf_step "folder of results" make_results_folder
    else
        cf_step "job hooks" remove_hooks
    fi
}

cf_main main "$@"
