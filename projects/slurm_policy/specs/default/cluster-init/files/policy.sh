#!/usr/bin/env bash
# The scheduling policy of the definition, on the scheduler.
#
#   policy.sh load [--dry-run] [--again]   accounts, users and QoS into slurmdbd, reservations into slurmctld
#   policy.sh apply FILE [--dry-run]       a new policy on the running cluster: cluster/policy.rows of the built folder
#   policy.sh qos                          QoS that partitions name into slurmdbd, before slurmctld starts
#   policy.sh partitions                   limits of partitions and further partitions into azslurm's azure.conf, before it
#
# The order is slurmdbd, azure.conf, slurmctld: a partition that names a QoS which is not there yet stops slurmctld.
#
# A value is applied when the definition's own value changed since it was applied last; the record is on /sched, so it
# outlives this VM, and what an administrator changes in between stays. --dry-run says what would be done and does nothing,
# --again forgets the record and applies everything.
# Exit code: 0 done, 1 something failed (the next run goes on there), 75 Slurm does not answer yet, 2 wrong usage.
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib disable=SC1091
set -euo pipefail
readonly HERE="${BASH_SOURCE[0]%/*}"
# shellcheck source=cycleforge.sh
. "${HERE}/cycleforge.sh"
# shellcheck source=rows.sh
. "${HERE}/rows.sh"
# shellcheck source=partitions.sh
. "${HERE}/partitions.sh"
# shellcheck source=controller.sh
. "${HERE}/controller.sh"
# shellcheck source=database.sh
. "${HERE}/database.sh"
# shellcheck source=reservations.sh
. "${HERE}/reservations.sh"

CF_PROJECT=slurm_policy
readonly POLICY="${CF_CONF_DIR}/policy.rows"
readonly NOT_YET=75
DRY_RUN=false AGAIN=false STARTS=false

usage() {
    sed -n '4,7s/^# *//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

# one_at_a_time [OPTION...]: wait until no other policy.sh runs, such as the timer's. A start of slurmctld waits 10 s only.
one_at_a_time() {
    local lock
    mkdir -p "${CF_ROOT}/run/cycleforge"
    exec {lock}>"${CF_ROOT}/run/cycleforge/policy.lock"
    flock "$@" "${lock}"
}

# A row that Slurm refuses ends the run before azure.conf, because a partition may name the object of that row.
load() {
    local recorded=false too_early=false
    one_at_a_time
    read_wanted "${POLICY}"
    find_cluster
    read_record
    if [[ "${AGAIN}" == true ]]; then forget_all; fi
    if is_recorded "${POLICY}"; then
        recorded=true
    elif slurm_answers; then
        load_database
    else
        too_early=true
    fi
    edit_partitions
    reconfigure
    if [[ "${recorded}" == true ]]; then return; fi
    if [[ "${too_early}" == true ]]; then
        cf_log "Slurm does not answer yet, the policy is loaded when it does"
        return "${NOT_YET}"
    fi
    withdraw_all
    load_reservations
    record_file "${POLICY}"
    cf_log "policy: ${DONE} changes, ${LEFT} left to the administrator"
}

# What the rows need: slurmctld for reservations and shares, slurmdbd for accounts. A cluster without accounting has no database.
slurm_answers() {
    controller_answers || return 1
    if ((${#OF_DATABASE[@]} == 0)); then return 0; fi
    [[ "$(timeout 60 sacctmgr -nP show cluster "${CLUSTER}" format=cluster 2>/dev/null)" == "${CLUSTER}" ]]
}

apply() {
    local -r file="$1"
    if [[ ! -r "${file}" ]]; then cf_die "${file} cannot be read"; fi
    read_wanted "${file}"
    if [[ "${DRY_RUN}" == true ]]; then
        load_dry
    else
        cf_write "${POLICY}" 0644 <"${file}"
        load
    fi
}

load_dry() {
    find_cluster
    read_record
    edit_partitions
    reconfigure
    load_database
    withdraw_all
    load_reservations
    cf_log "policy: ${DONE} changes, ${LEFT} left to the administrator${DRY_MARK}"
}

before_start() {
    read_wanted "${POLICY}"
    find_cluster
    read_record
}

main() {
    local word verb="${1:-}" file=""
    local -a words=("${@:2}")
    for word in "${words[@]+"${words[@]}"}"; do
        case "${word}" in
            --dry-run) DRY_RUN=true DRY_MARK=" (dry run: nothing was done)" ;;
            --again) AGAIN=true ;;
            -*) usage ;;
            *) file="${word}" ;;
        esac
    done
    case "${verb}" in
        load) if [[ "${DRY_RUN}" == true ]]; then read_wanted "${POLICY}" && load_dry; else load; fi ;;
        apply)
            if [[ -z "${file}" ]]; then usage; fi
            apply "$(readlink -f "${file}")"
            ;;
        qos)
            one_at_a_time --timeout 10 || cf_die "another policy.sh works on the policy"
            before_start
            make_needed_qos
            ;;
        partitions)
            one_at_a_time --timeout 10 || cf_warn "another policy.sh works on the policy"
            STARTS=true
            before_start
            if ! controller_answers; then forget_failed_start; fi
            edit_partitions
            ;;
        *) usage ;;
    esac
}

# cf_main would take a relative FILE away: it changes the folder.
START_DIR="${PWD}"
main_there() {
    cd "${START_DIR}"
    main "$@"
}
cf_main main_there "$@"
