#!/usr/bin/env bash
# Deep checks on a node that has nothing to do, and how a job that starts ends them; what follows when a boot has no verdict
# of deep checks. Sourced by health.sh.
#
# The run has a session of its own, so that everything it started can be ended without looking at anybody's command line.
# It writes down its session before it asks Slurm whether the node is idle, and a prolog runs after Slurm has given the node
# away: one of the two always sees the other.
# shellcheck disable=SC2034 # EXIT_CODE is for health.sh

readonly SESSION_FILE="${CF_ROOT}/run/cycleforge/health-deep.session"
readonly STOP_S=2
# The boot that has a verdict of deep checks. A run that was killed, at whatever moment, leaves none.
readonly TESTED="${CF_ROOT}/run/cycleforge/deep.tested"
readonly UNTESTED="no verdict since this boot: not tested"

# is_tested: whether some deep run of this boot has come to its verdict.
is_tested() {
    local tested
    read_line "${TESTED}"
    tested="${REPLY}"
    boot_id
    [[ -n "${tested}" && "${tested}" == "${REPLY}" ]]
}

# owes_verdict: whether a node without a verdict of this boot takes no job: it is not measured, and `unmeasured: drain` says
# what that means.
owes_verdict() { [[ "${CF_CONF[unmeasured]:-}" == drain && "${CF_CONF[deep_s]:-0}" != 0 ]] && ! is_tested; }

# slurmd_runs: it starts when the unit of the deep checks has ended, in whatever way; before that a boot owes nothing.
slurmd_runs() { [[ "$(systemctl is-active slurmd.service 2>/dev/null || true)" == @(active|activating) ]]; }

# stand_untested: what a boot owes stands like a failure, until a deep run has a verdict.
stand_untested() {
    if [[ -z "${FOUND[deep heal]:-}" ]] && owes_verdict; then stand_against deep heal "${UNTESTED}"; fi
}

# note_tested: a deep run has come to its verdict, which takes the place of none.
note_tested() {
    boot_id
    cf_write "${TESTED}" 0644 2>/dev/null <<<"${REPLY}" || cf_warn "${TESTED} cannot be written: this node counts as not tested"
    if [[ "${FOUND[deep heal]:-}" == *" ${UNTESTED}" ]]; then unset 'FOUND[deep heal]'; fi
}

# deep_is_due: whether the last deep run of any kind is older than the definition wants, or this boot's has no verdict.
deep_is_due() {
    local -r file="${RESULTS}/deep.json" hours="${CF_CONF[idle_deep_h]:-0}"
    local now changed=0
    if ((hours == 0)); then return 1; fi
    if ! is_tested; then return 0; fi
    printf -v now '%(%s)T' -1
    if [[ -e "${file}" ]]; then changed="$(stat -c %Y "${file}")"; fi
    ((now - changed >= hours * 3600))
}

# node_is_idle: exactly idle; a node that is drained, reserved, powering down or not responding is none of our business.
node_is_idle() {
    read_node || return 1
    [[ "${NODE_STATE}" =~ ^IDLE(\+(CLOUD|DYNAMIC_NORM|DYNAMIC_FUTURE))*$ ]]
}

# awaits_retest: whether our drain waits for deep checks, after an epilog that failed (adopt_drain) or a boot without verdict,
# and no job is left on the node.
awaits_retest() {
    read_standing
    [[ "${NOTES[drain]}" == ours && -n "${FOUND[deep heal]:-}" ]] || return 1
    [[ "${NOTES[drain_reason]}" =~ ${EPILOG_FAILED} || "${FOUND[deep heal]}" == *" ${UNTESTED}" ]] || return 1
    read_node || return 1
    [[ "${NODE_STATE}" =~ ^IDLE(\+(CLOUD|DRAIN|DYNAMIC_NORM|DYNAMIC_FUTURE))*$ ]] && is_our_drain
}

# node_has_no_job: what a person may test at once.
node_has_no_job() {
    read_node || return 1
    [[ "${NODE_STATE}" =~ ^IDLE(\+(CLOUD|DRAIN|DYNAMIC_NORM|DYNAMIC_FUTURE|MAINTENANCE|RESERVED|PLANNED))*$ ]]
}

# in_own_session COMMAND ENDED: the deep run, if COMMAND says that the node is free for it; 1 if not. A job that starts ends
# it with exit code ENDED.
in_own_session() {
    local -r free="$1"
    # shellcheck disable=SC2064 # the exit code of now
    trap "cf_log 'deep: ended without a verdict, because a job starts or somebody asked for it'; exit $2" TERM
    cf_write "${SESSION_FILE}" 0644 <<<"$$"
    if ! "${free}"; then
        rm -f "${SESSION_FILE}"
        return 1
    fi
    deep act_on_standing
    rm -f "${SESSION_FILE}"
}

deep_when_idle() {
    local free=node_is_idle
    load
    if awaits_retest; then
        free=awaits_retest
    elif ! deep_is_due; then
        return 0
    fi
    if [[ -z "${CYCLEFORGE_OWN_SESSION:-}" ]]; then
        CYCLEFORGE_OWN_SESSION=1 exec setsid --wait bash "${HERE}/health.sh" deep idle
    fi
    if ! take_lock deep 0; then
        cf_log "another deep run is going, this one is left out"
        return 0
    fi
    in_own_session "${free}" 0 || true
}

# deep_now: a person waits for it. The run is in a session of its own, where the terminal's interrupt does not reach it.
deep_now() {
    local code=0
    load
    if [[ "${CF_CONF[deep_s]}" == 0 ]]; then
        cf_die "deep checks are off on this node" "cycleforge.health.deep_s is 0" "set it in the definition and build again"
    fi
    if [[ -z "${CYCLEFORGE_OWN_SESSION:-}" ]]; then
        trap 'stop_deep_run; exit 1' INT TERM
        CYCLEFORGE_OWN_SESSION=1 setsid --wait bash "${HERE}/health.sh" deep now &
        wait "$!" || code=$?
        EXIT_CODE="${code}"
        return
    fi
    take_lock deep 0 || cf_die "another deep run is going" "" "wait for its end: see /var/lib/cycleforge/health/deep.json"
    if ! in_own_session node_has_no_job 1; then
        cf_node_name
        cf_die "no deep checks: Slurm says that this node is ${NODE_STATE:-unknown}" \
            "they need the whole node, and would disturb a job" \
            "drain it, wait until its jobs have ended (squeue -w ${REPLY}), and type this again"
    fi
    say_what_follows
}

# say_what_follows: the verdict of "deep now" for the person who asked, and the exit code.
say_what_follows() {
    case "${RUN_VERDICT}" in
        fail) EXIT_CODE="${SICK}" ;;
        incomplete) EXIT_CODE=1 ;;
        *) EXIT_CODE=0 ;;
    esac
    describe_standing
    echo "deep checks: ${RUN_VERDICT}${RUN_REASON:+ (${RUN_REASON})}; all figures: ${RESULTS#"${CF_ROOT}"}/deep.json"
    if ((${#FOUND[@]} > 0)); then
        echo "The node takes no job: ${REPLY}"
        echo "When that is repaired, type: ${REPAIR}"
    elif is_our_drain; then
        echo "Nothing stands against the node any more; the next quick run that passes resumes it."
    elif [[ "${NODE_STATE}" == *DRAIN* ]]; then
        echo "Nothing stands against the node. It is drained by somebody else (${NODE_REASON}) and stays so."
    fi
}

# session_is_ours SESSION: whether some process of it carries our mark; a number alone may have been given to a stranger.
session_is_ours() {
    local process
    while read -r process; do
        if grep -q -s -z -x 'CYCLEFORGE_OWN_SESSION=1' "/proc/${process}/environ"; then return 0; fi
    done < <(pgrep --session "$1" || true)
    return 1
}

session_is_gone() { ! session_is_ours "$1"; }

# stop_deep_run: end a deep run on an idle node, or what a killed one has left; first asked, then forced. A deep run at boot
# has no session of its own: it comes before slurmd, so no prolog can meet it.
stop_deep_run() {
    local session=""
    if [[ ! -e "${SESSION_FILE}" ]]; then return 0; fi
    read -r session <"${SESSION_FILE}" || true
    if [[ "${session}" =~ ^[1-9][0-9]*$ ]] && session_is_ours "${session}"; then
        pkill -TERM --session "${session}" || true
        if ! CYCLEFORGE_POLL_S=0.1 cf_wait_for "${STOP_S}" session_is_gone "${session}"; then
            pkill -KILL --session "${session}" || true
            CYCLEFORGE_POLL_S=0.1 cf_wait_for 1 session_is_gone "${session}" || cf_log "processes of the deep run do not end" >&2
        fi
        cf_log "a deep run was ended because a job starts"
    fi
    rm -rf "${SESSION_FILE}" "${RUN_DIR}"/rows.deep.*
}
