#!/usr/bin/env bash
# Node health beside healthagent: inventory and counters (quick), bandwidth (deep), each figure with its limit and unit.
#
#   health.sh quick [SECONDS]   read counters, judge, drain or resume the node; waits SECONDS for a run in progress
#   health.sh deep              measure bandwidth; before the node takes its first job
#   health.sh gate              for the prolog: refuse a job on a node whose deep checks failed in this boot
#
# Exit code: 0 the checks ran (their verdict is in the result file), 3 the node is sick and must not get jobs but could
# not be drained, 1 the checks themselves could not run. Results: /var/lib/cycleforge/health/{quick,deep}.json.
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib disable=SC1091
set -euo pipefail
# shellcheck source=cycleforge.sh
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"
# shellcheck source=judge.sh
. "${BASH_SOURCE[0]%/*}/judge.sh"
# shellcheck source=drain.sh
. "${BASH_SOURCE[0]%/*}/drain.sh"
# shellcheck source=checks-node.sh
. "${BASH_SOURCE[0]%/*}/checks-node.sh"
# shellcheck source=checks-infiniband.sh
. "${BASH_SOURCE[0]%/*}/checks-infiniband.sh"
# shellcheck source=checks-gpu.sh
. "${BASH_SOURCE[0]%/*}/checks-gpu.sh"
# shellcheck source=checks-deep.sh
. "${BASH_SOURCE[0]%/*}/checks-deep.sh"

CF_PROJECT=slurm_nhc
readonly HERE="${BASH_SOURCE[0]%/*}"
readonly RESULTS="${CF_STATE_DIR}/health"
readonly DEEP_VERDICT="${RESULTS}/deep.verdict"
readonly NOT_DRAINED=3
EXIT_CODE=0

boot_id() { REPLY="$(cat "${CF_ROOT}/proc/sys/kernel/random/boot_id" 2>/dev/null || true)"; }

load() {
    cf_load_conf "${CF_CONF_DIR}/health.conf"
    cf_load_figures "${HERE}/vm_sizes.tsv" "${CF_CONF[vm_size]}"
    mkdir -p "${RESULTS}"
}

# One run at a time; the lock ends with the process, so a killed run leaves none behind.
take_lock() {
    mkdir -p "${CF_ROOT}/run/lock"
    exec 9>"${CF_ROOT}/run/lock/cycleforge-health.lock"
    flock --wait "$1" 9
}

quick() {
    if ! take_lock "${1:-0}"; then
        cf_log "another health run is going, this one is left out"
        return
    fi
    load
    start_results quick
    check_node
    check_infiniband
    check_gpus
    add_deep_failure
    conclude
    # First Slurm, then the file: a full disk must not keep a sick node in service.
    if ! act_on_results "${RUN_VERDICT}" "${RUN_REASON}" "${COUNTS[not_measured]}"; then EXIT_CODE="${NOT_DRAINED}"; fi
    write_results "${RESULTS}/quick.json"
}

deep() {
    take_lock 60 || cf_die "another health run does not end"
    load
    start_results deep
    check_bandwidth
    check_image_nhc
    conclude
    boot_id
    cf_write "${DEEP_VERDICT}" 0644 <<<"${RUN_VERDICT} ${REPLY} ${RUN_REASON}"
    write_results "${RESULTS}/deep.json"
}

# The deep verdict of this boot counts in every quick run, because only then Slurm is up and can drain the node.
add_deep_failure() {
    local verdict boot reason
    [[ -r "${DEEP_VERDICT}" ]] || return 0
    read -r verdict boot reason <"${DEEP_VERDICT}" || return 0
    boot_id
    if [[ "${verdict}" == fail && "${boot}" == "${REPLY}" ]]; then
        record fail deep_checks "" "" "" "" "${reason}"
    fi
}

# A prolog has to be fast: one file is read. Slurm drains the node and starts the job elsewhere when this is not 0.
gate() {
    local verdict boot reason
    [[ -r "${DEEP_VERDICT}" ]] || return 0
    read -r verdict boot reason <"${DEEP_VERDICT}" || return 0
    boot_id
    if [[ "${verdict}" != fail || "${boot}" != "${REPLY}" ]]; then return 0; fi
    cf_log "deep checks failed in this boot: ${reason}" >&2
    drain_node "${reason}" || true
    EXIT_CODE="${NOT_DRAINED}"
}

main() {
    case "${1:-}" in
        quick) quick "${2:-0}" ;;
        deep) deep ;;
        gate) gate ;;
        *) cf_die "usage: health.sh quick [SECONDS] | deep | gate" ;;
    esac
    exit "${EXIT_CODE}"
}

cf_main main "$@"
