#!/usr/bin/env bash
# On the scheduler: job hooks for all nodes, in the folders that slurm.conf of cyclecloud-slurm 4.x names, and the programs
# that look at all nodes together.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/slurm_nhc"
readonly UNITS="${CF_ROOT}/etc/systemd/system"
# Slurm runs several hooks in reverse alphabetical order, so ours comes before healthagent's 10-health_*.
readonly NAME=20-cycleforge_health.sh

install_hooks() {
    local changed
    cf_slurm_hook prolog "${NAME}" "${CYCLECLOUD_SPEC_PATH}/files/prolog.sh"
    changed="${CF_CHANGED}"
    cf_slurm_hook epilog "${NAME}" "${CYCLECLOUD_SPEC_PATH}/files/epilog.sh"
    cf_outcome "$((changed + CF_CHANGED)) of 2 hooks changed"
}

# Where nodes leave a copy of their results, for a table of the whole cluster, and beside it what the guard needs.
RESULTS_FOLDER=""
make_results_folder() {
    cf_attribute cycleforge.health.results /sched/cycleforge-health
    if [[ "${REPLY}" == off ]]; then
        cf_outcome "off"
        return
    fi
    cf_attribute_path cycleforge.health.results /sched/cycleforge-health
    RESULTS_FOLDER="${REPLY}"
    local -r folder="${CF_ROOT}${REPLY}"
    if [[ -d "${folder}" && -d "${folder}.guard" ]]; then
        cf_outcome "${REPLY} is there"
    elif [[ -d "${folder%/*}" ]]; then
        mkdir -p "${folder}" "${folder}.guard"
        cf_outcome "${REPLY} made"
    else
        cf_outcome "${REPLY%/*} is not there, results stay on the nodes"
    fi
}

# install_watch NAME CONF SCRIPT...: a program that a timer starts on the scheduler, from files cycleforge-NAME.{service,timer},
# with its settings on standard input.
install_watch() {
    local -r unit="cycleforge-$1" settings="${CF_CONF_DIR}/$2"
    local changed
    shift 2
    cf_write "${settings}" 0644
    changed="${CF_CHANGED}"
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh "$@"
    changed=$((changed + CF_CHANGED))
    cf_unit "${unit}.service" <"${FILES}/${unit}.service"
    changed=$((changed + CF_CHANGED))
    cf_unit "${unit}.timer" <"${FILES}/${unit}.timer"
    changed=$((changed + CF_CHANGED))
    cf_own_unit "${unit}.timer" "${UNITS}/${unit}.timer:${UNITS}/${unit}.service"
    cf_outcome "${changed} files changed"
}

# drop_watch NAME: not any more.
drop_watch() {
    cf_drop_unit "cycleforge-$1.timer" "cycleforge-$1.timer" "cycleforge-$1.service"
    cf_outcome "${CF_CHANGED} files removed"
}

# The guard against one shared cause: it keeps jobs from a partition whose nodes fail all at once.
install_guard() {
    install_watch guard guard.conf guard-watch.sh guard-slurm.sh guard-record.sh guard-rule.sh guard.tsv \
        <<<"results=${RESULTS_FOLDER}"
}

# Drained nodes keep their VM (SuspendExcStates), so somebody has to hand it back.
install_release() {
    cf_attribute_int cycleforge.health.hand_back_h 0 0 8760
    install_watch release release.conf release.sh <<<"hours=${REPLY}"
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
        cf_step "drained VMs" install_release
        cf_attribute_bool cycleforge.health.guard true
        if [[ "${REPLY}" == true ]]; then cf_step "guard" install_guard; else cf_step "no guard" drop_watch guard; fi
    else
        cf_step "job hooks" remove_hooks
        cf_step "no drained VMs" drop_watch release
        cf_step "no guard" drop_watch guard
    fi
}

cf_main main "$@"
