#!/usr/bin/env bash
# On the scheduler: the rows of the scheduling policy, and the units that apply them once Slurm runs.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/slurm_policy"
readonly UNITS="${CF_ROOT}/etc/systemd/system"
readonly TIMER=cycleforge-policy.timer SERVICE=cycleforge-policy.service
readonly QOS_DROP_IN=slurmctld.service.d/19-cycleforge-slurm_policy.conf
readonly DROP_IN=slurmctld.service.d/20-cycleforge-slurm_policy.conf
readonly FORMAT=1 MOST_PARTS=9999

# read_rows: the rows of all attributes, one a line, in ROWS; 1 when the node has none.
ROWS=""
read_rows() {
    local number part parts=1 place head rest
    ROWS=""
    for ((place = 1; place <= parts; place++)); do
        cf_attribute "cycleforge.policy.${place}" ""
        if [[ -z "${REPLY}" ]] && ((place == 1)); then return 1; fi
        head="${REPLY%% | *}" rest="${REPLY#* | }"
        if [[ ! "${head}" =~ ^([0-9]+)\ ([0-9]{1,4})/([0-9]{1,4})$ ]]; then
            cf_die "attribute cycleforge.policy.${place} is '${REPLY:0:60}', expected a part of the policy" "" \
                "import the cluster again with the template that CycleForge wrote"
        fi
        number="${BASH_REMATCH[1]}" part=$((10#${BASH_REMATCH[2]})) parts=$((10#${BASH_REMATCH[3]}))
        if ((10#${number} != FORMAT)); then
            cf_die "attribute cycleforge.policy.${place} has format ${number}, expected ${FORMAT}" \
                "template and project are of different releases of CycleForge" "build and import again"
        fi
        if ((part != place || parts > MOST_PARTS)); then
            cf_die "attribute cycleforge.policy.${place} says that it is part ${part} of ${parts}"
        fi
        ROWS+="${rest// | /$'\n'}"$'\n'
    done
}

write_rows() {
    cf_write "${CF_CONF_DIR}/policy.rows" 0644 <<<"${ROWS%$'\n'}"
    cf_outcome_file "$(grep -c . <<<"${ROWS}") rows"
}

# install_units FIRST: whether this is the first scheduler.
install_units() {
    local changed
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh policy.sh rows.sh partitions.sh controller.sh database.sh reservations.sh
    changed="${CF_CHANGED}"
    if [[ "$1" == true ]]; then
        cf_unit "${QOS_DROP_IN}" <"${FILES}/slurmctld-slurm_policy-qos.conf"
        changed=$((changed + CF_CHANGED))
    fi
    cf_unit "${DROP_IN}" <"${FILES}/slurmctld-slurm_policy.conf"
    changed=$((changed + CF_CHANGED))
    cf_unit "${SERVICE}" <"${FILES}/${SERVICE}"
    changed=$((changed + CF_CHANGED))
    cf_unit "${TIMER}" <"${FILES}/${TIMER}"
    cf_outcome "$((changed + CF_CHANGED)) files changed"
}

start_timer() {
    cf_own_unit "${TIMER}" "${UNITS}/${TIMER}:${UNITS}/${SERVICE}:${UNITS}/${QOS_DROP_IN}:${UNITS}/${DROP_IN}"
    cf_outcome_file "${TIMER}"
}

reload_units() {
    systemctl daemon-reload
    cf_outcome "the first scheduler loads the policy"
}

drop_all() {
    cf_drop_unit "${TIMER}" "${TIMER}" "${SERVICE}" "${QOS_DROP_IN}" "${DROP_IN}"
    cf_outcome "${CF_CHANGED} files removed"
}

main() {
    local first
    cf_role
    if [[ "${REPLY}" != scheduler ]]; then
        cf_log "the scheduler applies the policy, this node is: ${REPLY}"
        return
    fi
    if ! read_rows; then
        cf_step "no policy" drop_all
        return
    fi
    cf_step "policy" write_rows
    # The record is one; the second scheduler only needs the partitions before its slurmctld starts.
    cf_attribute_bool slurm.is_primary_scheduler true
    first="${REPLY}"
    cf_step "policy units" install_units "${first}"
    if [[ "${first}" == true ]]; then cf_step "policy timer" start_timer; else cf_step "policy units" reload_units; fi
}

cf_main main "$@"
