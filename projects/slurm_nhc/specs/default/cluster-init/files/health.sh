#!/usr/bin/env bash
# Node health beside healthagent: inventory and counters (quick), bandwidth (deep), each figure with its limit and unit.
#
#   health.sh quick             read counters, judge, drain or resume the node
#   health.sh epilog            the same after a job, within seconds; waits for a run in progress
#   health.sh deep boot         measure bandwidth before the node takes its first job
#   health.sh deep idle         the same on a node without jobs, when the last time is long ago
#   health.sh gate              for the prolog: end a deep run, refuse a job on a node whose deep checks failed in this boot
#   health.sh repaired          for a person: forget the failed deep checks of this boot and resume the node
#
# Exit code: 0 the checks ran (their verdict is in the result file), 3 the node is sick and must not get jobs but could
# not be drained, 1 the checks themselves could not run. Results: /var/lib/cycleforge/health/{quick,deep}.json.
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib disable=SC1091
set -euo pipefail
readonly HERE="${BASH_SOURCE[0]%/*}"
# shellcheck source=cycleforge.sh
. "${HERE}/cycleforge.sh"
# shellcheck source=verdicts.sh
. "${HERE}/verdicts.sh"
# shellcheck source=results.sh
. "${HERE}/results.sh"
# shellcheck source=engine.sh
. "${HERE}/engine.sh"
# shellcheck source=drain.sh
. "${HERE}/drain.sh"
# shellcheck source=idle.sh
. "${HERE}/idle.sh"
# shellcheck source=guard.sh
. "${HERE}/guard.sh"

CF_PROJECT=slurm_nhc
readonly RESULTS="${CF_STATE_DIR}/health"
readonly RUN_DIR="${CF_ROOT}/run/cycleforge"
readonly DEEP_VERDICT="${RESULTS}/deep.verdict"
readonly NOT_DRAINED=3 QUICK_S=60 EPILOG_S=8 EPILOG_WAIT_S=2
EXIT_CODE=0

boot_id() { read_line "${CF_ROOT}/proc/sys/kernel/random/boot_id"; }

load() {
    cf_load_conf "${CF_CONF_DIR}/health.conf"
    mkdir -p "${RESULTS}" "${RUN_DIR}"
}

# take_lock NAME SECONDS: one run of a kind at a time; the lock ends with the process, so a killed run leaves none behind.
take_lock() {
    mkdir -p "${RUN_DIR}"
    exec 9>>"${RUN_DIR}/health-$1.lock"
    flock --wait "$2" 9
}

# quick BUDGET_S WAIT_S
quick() {
    if ! take_lock quick "$2"; then
        cf_log "another quick run is going, this one is left out"
        return
    fi
    load
    start_results quick
    run_checks "${CF_CONF_DIR}/nhc/quick.conf" "$1"
    add_deep_failure
    conclude
    # First Slurm, then the file: a full disk must not keep a sick node in service.
    if ! act_on_results "${RUN_VERDICT}" "${RUN_REASON}" "${COUNTS[not_measured]}"; then EXIT_CODE="${NOT_DRAINED}"; fi
    write_results "${RESULTS}/quick.json"
    share_results "${RESULTS}/quick.json"
}

# deep: the measurement itself, for boot and idle.
deep() {
    start_results deep
    run_checks "${CF_CONF_DIR}/nhc/deep.conf" "${CF_CONF[deep_s]}"
    conclude
    boot_id
    cf_write "${DEEP_VERDICT}" 0644 <<<"${RUN_VERDICT} ${REPLY:-unknown} ${RUN_REASON}"
    write_results "${RESULTS}/deep.json"
    share_results "${RESULTS}/deep.json"
}

# slurmd runs already when somebody converges a node in use; jobs may own the GPUs then.
deep_at_boot() {
    if systemctl is-active --quiet slurmd.service; then
        cf_log "slurmd runs, so no deep checks now; they follow when the node is idle or boots"
        return
    fi
    take_lock deep 60 || cf_die "another deep run does not end" "" "see 'systemctl status cycleforge-health-deep'"
    load
    deep
}

# failed_in_this_boot: 0 with the reason in REPLY when the deep checks of this boot failed.
failed_in_this_boot() {
    local verdict boot reason
    [[ -r "${DEEP_VERDICT}" ]] || return 1
    read -r verdict boot reason <"${DEEP_VERDICT}" || return 1
    boot_id
    [[ "${verdict}" == fail && "${boot}" == "${REPLY:-unknown}" ]] || return 1
    REPLY="${reason}"
}

# The deep verdict of this boot counts in every quick run, because at boot Slurm is not up yet to drain the node.
add_deep_failure() {
    if failed_in_this_boot; then add_record "fail${FIELD}deep_checks${FIELD}${FIELD}${FIELD}${FIELD}${FIELD}${REPLY}"; fi
}

# A prolog has to be fast: one file is looked for and one is read. Slurm drains the node and starts the job elsewhere when
# this is not 0. The answer stands before Slurm is asked for anything, so a controller that hangs opens no gate.
gate() {
    stop_deep_run
    if ! failed_in_this_boot; then return 0; fi
    local -r reason="${REPLY}"
    EXIT_CODE="${NOT_DRAINED}"
    cf_log "deep checks failed in this boot: ${reason}" >&2
    SLURM_LIMIT_S=1
    drain_node "deep_checks (${reason})" || true
}

repaired() {
    rm -f "${DEEP_VERDICT}"
    resume_after_repair
}

main() {
    case "$*" in
        quick) quick "${QUICK_S}" 0 ;;
        epilog) quick "${EPILOG_S}" "${EPILOG_WAIT_S}" ;;
        "deep boot") deep_at_boot ;;
        "deep idle") deep_when_idle ;;
        gate) gate ;;
        repaired) repaired ;;
        *) cf_die "usage: health.sh quick | epilog | deep boot | deep idle | gate | repaired" ;;
    esac
    exit "${EXIT_CODE}"
}

cf_main main "$@"
