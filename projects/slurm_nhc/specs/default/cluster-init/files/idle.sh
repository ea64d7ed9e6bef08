#!/usr/bin/env bash
# Deep checks on a node that has nothing to do, and how a job that starts ends them. Sourced by health.sh.
#
# The run has a session of its own, so that everything it started can be ended without looking at anybody's command line.
# It writes down its session before it asks Slurm whether the node is idle, and a prolog runs after Slurm has given the node
# away: one of the two always sees the other.
# shellcheck disable=SC2034 # EXIT_CODE is for health.sh

readonly SESSION_FILE="${CF_ROOT}/run/cycleforge/health-deep.session"
readonly STOP_S=2

# deep_is_due: whether the last deep run of any kind is older than the definition wants.
deep_is_due() {
    local -r file="${RESULTS}/deep.json" hours="${CF_CONF[idle_deep_h]:-0}"
    local now changed=0
    if ((hours == 0)); then return 1; fi
    printf -v now '%(%s)T' -1
    if [[ -e "${file}" ]]; then changed="$(stat -c %Y "${file}")"; fi
    ((now - changed >= hours * 3600))
}

# node_is_idle: exactly idle; a node that is drained, reserved, powering down or not responding is none of our business.
node_is_idle() {
    read_node || return 1
    [[ "${NODE_STATE}" =~ ^IDLE(\+(CLOUD|DYNAMIC_NORM|DYNAMIC_FUTURE))*$ ]]
}

deep_when_idle() {
    load
    if ! deep_is_due; then return 0; fi
    if [[ -z "${CYCLEFORGE_OWN_SESSION:-}" ]]; then
        CYCLEFORGE_OWN_SESSION=1 exec setsid --wait bash "${HERE}/health.sh" deep idle
    fi
    if ! take_lock deep 0; then
        cf_log "another deep run is going, this one is left out"
        return 0
    fi
    trap 'cf_log "deep: a job starts, ended without a verdict"; exit 0' TERM
    cf_write "${SESSION_FILE}" 0644 <<<"$$"
    if ! node_is_idle; then
        rm -f "${SESSION_FILE}"
        return 0
    fi
    deep
    rm -f "${SESSION_FILE}"
    if [[ "${RUN_VERDICT}" == fail ]] && ! drain_node "deep_checks (${RUN_REASON})"; then EXIT_CODE="${NOT_DRAINED}"; fi
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
