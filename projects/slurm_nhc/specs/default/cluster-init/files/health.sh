#!/usr/bin/env bash
# Node health beside healthagent: inventory and counters (quick), bandwidth (deep), each figure with its limit and unit.
#
#   health.sh quick             read counters, judge, drain or resume the node
#   health.sh epilog            the same after a job, within seconds; waits for a run in progress
#   health.sh deep boot         measure bandwidth before the node takes its first job
#   health.sh deep idle         the same on a node without jobs, when the last time is long ago
#   health.sh deep now          for a person: the same at once, on a node that is drained or idle
#   health.sh gate              for the prolog: refuse a job while anything stands against the node (standing.sh) or a
#                               verdict of this boot is owed, otherwise end a deep run
#   health.sh repaired          for a person: nothing stands against the node any more; resume it
#
# Exit code: 0 the checks ran (their verdict is in the result file), 3 the node is sick and must not get jobs but could
# not be drained, 1 the checks themselves could not run. Of "deep now": 0 they passed, 1 they could not run or not all of
# them, 2 the node is sick. Results: /var/lib/cycleforge/health/{quick,deep}.json.
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
# shellcheck source=standing.sh
. "${HERE}/standing.sh"
# shellcheck source=drain.sh
. "${HERE}/drain.sh"
# shellcheck source=idle.sh
. "${HERE}/idle.sh"
# shellcheck source=guard.sh
. "${HERE}/guard.sh"
# shellcheck source=strikes.sh
. "${HERE}/strikes.sh"

CF_PROJECT=slurm_nhc
readonly RESULTS="${CF_STATE_DIR}/health"
readonly RUN_DIR="${CF_ROOT}/run/cycleforge"
readonly NOT_DRAINED=3 SICK=2 QUICK_S=60 EPILOG_S=8 EPILOG_WAIT_S=2
# So long a run waits for another that tells Slurm; then it goes on without, because Slurm has to hear of it.
readonly STANDING_WAIT_S=30
# IS_HELD: the guard holds back the drain for what this run has found. It stands against the node all the same, so that its
# prolog takes no job before the scheduler keeps them away.
EXIT_CODE=0 IS_HOOK=false IS_HELD=false
# An empty file: when a hook of a job has begun here last.
readonly LAST_HOOK="${RUN_DIR}/hook"

boot_id() { read_line "${CF_ROOT}/proc/sys/kernel/random/boot_id"; }

# make_folders PATH...: they are there but for the first run of a boot, and each program that starts takes time from jobs.
make_folders() {
    local folder
    for folder in "$@"; do
        if [[ ! -d "${folder}" ]]; then mkdir -p "${folder}" || return; fi
    done
}

hook_begins() {
    make_folders "${RUN_DIR}" || return 0
    { : >"${LAST_HOOK}"; } 2>/dev/null || true
}

load() {
    cf_load_conf "${CF_CONF_DIR}/health.conf"
    make_folders "${RESULTS}" "${RUN_DIR}"
}

# take_lock NAME SECONDS: one run of a kind at a time; the lock ends with the process, so a killed run leaves none behind.
take_lock() {
    make_folders "${RUN_DIR}"
    exec 9>>"${RUN_DIR}/health-$1.lock"
    flock --wait "$2" 9
}

# settle KIND COMMAND: what the run has found joins what stands; COMMAND tells Slurm. On disk before Slurm is asked, and
# again with its answer.
settle() {
    local -r kind="$1"
    shift
    lock_standing "${STANDING_WAIT_S}" || cf_warn "another run does not end; going on beside it"
    read_standing
    if [[ "${kind}" == deep ]]; then note_tested; fi
    join_run "${kind}"
    if [[ "${kind}" == quick ]] && owes_verdict && slurmd_runs; then stand_untested; fi
    write_standing
    if ! "$@"; then
        EXIT_CODE="${NOT_DRAINED}"
        if [[ "${IS_HOOK}" == true ]]; then refuse; fi
    fi
    write_standing
    unlock_standing
}

# quick BUDGET_S WAIT_S
quick() {
    if ! take_lock quick "$2"; then
        cf_log "another quick run is going, this one is left out"
        return
    fi
    load
    start_results quick
    vm_since
    read_standing
    run_checks "${CF_CONF_DIR}/nhc/quick.conf" "$1"
    conclude
    if guard_holds; then IS_HELD=true; fi
    # First Slurm, then the result: a full disk must not keep a sick node in service.
    settle quick act_on_standing
    add_deep_failures
    conclude
    log_run
    keep_results "${RESULTS}/quick.json"
}

# deep COMMAND: the measurement itself, and what tells Slurm.
deep() {
    local check
    start_results deep
    vm_since
    read_standing
    run_checks "${CF_CONF_DIR}/nhc/deep.conf" "${CF_CONF[deep_s]}"
    guard_waives
    for check in ${REPLY}; do
        waive "${check}"
        cf_log "${check} only warns: most nodes that measured it miss it, so its floor or the image is at fault" >&2
    done
    conclude
    log_run
    settle deep "$@"
    keep_results "${RESULTS}/deep.json"
}

# slurmd runs already when somebody converges a node in use; jobs may own the GPUs then.
deep_at_boot() {
    if systemctl is-active --quiet slurmd.service; then
        cf_log "slurmd runs, so no deep checks now; they follow when the node is idle or boots"
        return
    fi
    take_lock deep 60 || cf_die "another deep run does not end" "" "see 'systemctl status cycleforge-health-deep'"
    load
    # Slurm does not know this node yet; the first quick run tells it, and the prolog refuses until then.
    deep true
}

# What deep runs have left standing counts in every quick result: a report that reads quick results must not miss it.
add_deep_failures() {
    local cure reason
    for cure in "${CURES[@]}"; do
        if [[ -z "${FOUND["deep ${cure}"]:-}" ]]; then continue; fi
        reason="${FOUND["deep ${cure}"]#* * }"
        add_record "fail${FIELD}deep_checks${FIELD}${FIELD}${FIELD}${FIELD}${FIELD}${reason}${FIELD}${cure}"
    done
}

# A prolog has to be fast: three short files are read, and nobody is asked. Slurm drains the node and starts the job elsewhere
# when this is not 0. The answer stands before Slurm is told, so a controller that hangs opens no gate.
gate() {
    hook_begins
    if [[ -r "${CF_CONF_DIR}/health.conf" ]]; then cf_load_conf "${CF_CONF_DIR}/health.conf"; fi
    # What is refused here has been counted when it was found.
    CF_CONF[strikes]=0
    read_standing asked
    stand_untested
    if ((${#FOUND[@]} == 0)); then
        stop_deep_run
        return
    fi
    EXIT_CODE="${NOT_DRAINED}"
    describe_standing
    cf_log "this node takes no job: ${REPLY}; after repair type on this node: ${REPAIR}" >&2
    SLURM_LIMIT_S=1
    if lock_standing 0; then
        if ! keep_out; then refuse; fi
        write_standing
    else
        keep_out || true
    fi
}

repaired() {
    mkdir -p "${RESULTS}" "${RUN_DIR}"
    # A quick run that is going has measured the node before its repair, and would write that down afterwards.
    if ! take_lock quick "$((QUICK_S + STANDING_WAIT_S))"; then
        cf_die "a quick run does not end" "what it has found would stand again" "see 'systemctl status cycleforge-health', then try again"
    fi
    lock_standing 60 || cf_die "another run does not end" "it tells Slurm about this node" "try again in a minute"
    read_standing
    describe_standing
    if [[ -n "${REPLY}" ]]; then cf_log "forgotten: ${REPLY}"; fi
    FOUND=() NOTES[passes]=0 NOTES[retested]=0
    printf -v 'NOTES[repaired]' '%(%s)T' -1
    write_standing
    resume_after_repair
    forget_drain
    NOTES[refused]=""
    write_standing
}

main() {
    case "$*" in
        quick) quick "${QUICK_S}" 0 ;;
        epilog)
            IS_HOOK=true
            hook_begins
            quick "${EPILOG_S}" "${EPILOG_WAIT_S}"
            ;;
        "deep boot") deep_at_boot ;;
        "deep idle") deep_when_idle ;;
        "deep now") deep_now ;;
        gate) gate ;;
        repaired) repaired ;;
        *) cf_die "usage: health.sh quick | epilog | deep boot | deep idle | deep now | gate | repaired" ;;
    esac
    exit "${EXIT_CODE}"
}

cf_main main "$@"
