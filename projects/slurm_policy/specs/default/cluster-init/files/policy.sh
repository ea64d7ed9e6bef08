#!/usr/bin/env bash
# The scheduling policy of the definition, on the scheduler.
#
#   policy.sh load [--dry-run] [--again]   accounts, users and QoS into slurmdbd, reservations into slurmctld
#   policy.sh apply FILE [--dry-run]       a new policy on the running cluster: cluster/policy.rows of the built folder
#   policy.sh partitions                   limits of partitions and further partitions into azslurm's azure.conf
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
# shellcheck source=database.sh
. "${HERE}/database.sh"
# shellcheck source=reservations.sh
. "${HERE}/reservations.sh"

CF_PROJECT=slurm_policy
readonly POLICY="${CF_CONF_DIR}/policy.rows"
readonly NOT_YET=75
DRY_RUN=false AGAIN=false

usage() {
    sed -n '4,6s/^# *//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

# One at a time, also when a person types it while the timer runs. A cluster without accounting has no database.
load() {
    local lock
    mkdir -p "${CF_ROOT}/run/cycleforge"
    exec {lock}>"${CF_ROOT}/run/cycleforge/policy.lock"
    flock "${lock}"
    read_wanted "${POLICY}"
    find_cluster
    edit_partitions
    read_record
    if [[ "${AGAIN}" == true ]]; then forget_all; fi
    if is_recorded "${POLICY}"; then return; fi
    if ! slurm_answers; then
        cf_log "Slurm does not answer yet, the policy is loaded when it does"
        return "${NOT_YET}"
    fi
    load_database
    load_reservations
    if [[ "${DRY_RUN}" == false ]]; then record_file "${POLICY}"; fi
    cf_log "policy: ${DONE} changes, ${LEFT} left to the administrator${DRY_MARK}"
}

# What the rows need: slurmctld for reservations and shares, slurmdbd for accounts.
slurm_answers() {
    timeout 30 scontrol ping >/dev/null 2>&1 || return 1
    if ((${#OF_DATABASE[@]} == 0)); then return 0; fi
    [[ "$(timeout 60 sacctmgr -nP show cluster "${CLUSTER}" format=cluster 2>/dev/null)" == "${CLUSTER}" ]]
}

apply() {
    local -r file="$1"
    if [[ ! -r "${file}" ]]; then cf_die "${file} cannot be read"; fi
    read_wanted "${file}"
    if [[ "${DRY_RUN}" == false ]]; then
        cf_write "${POLICY}" 0644 <"${file}"
        find_cluster
        edit_partitions
        if ((CF_CHANGED)); then
            timeout 120 scontrol reconfigure
            cf_log "slurmctld has read its partitions anew"
        fi
        load
    else
        load_dry
    fi
}

load_dry() {
    find_cluster
    edit_partitions
    read_record
    load_database
    load_reservations
    cf_log "policy: ${DONE} changes, ${LEFT} left to the administrator${DRY_MARK}"
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
        partitions)
            read_wanted "${POLICY}"
            find_cluster
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
