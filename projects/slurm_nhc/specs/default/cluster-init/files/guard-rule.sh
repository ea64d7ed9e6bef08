#!/usr/bin/env bash
# When many nodes fail one check at once, they share the cause, and drains take away a cluster that is not sick. Figures and
# arithmetic, for the nodes (guard.sh) and for the scheduler (guard-watch.sh).
#
# Beside the folder of results, in a folder of the same name with .guard behind it:
#   claims/CHECK@PARTITION/NODE   an empty file: this node fails this check. Its time is when that began, by the clock of the
#                                 file server, so clocks of nodes are never compared. It goes when the check passes again.
#   state                         what guard-watch.sh sees, for the nodes: counts, members, alarms. Its time is a heartbeat.
#   record                        what guard-watch.sh remembers, for the other scheduler of two.

# shellcheck disable=SC2034 # results for the files that source this
declare -A GUARD=()
GUARD_ALWAYS=()

# guard_figures FILE: GUARD and GUARD_ALWAYS from the catalogue's table; 1 when it is not whole.
guard_figures() {
    local word value _
    GUARD=() GUARD_ALWAYS=()
    [[ -r "$1" ]] || return 1
    while IFS=$'\t' read -r word value _; do
        case "${word}" in
            always) GUARD_ALWAYS+=("${value}") ;;
            percent | nodes | window_s | clear_percent | looks)
                if [[ "${value}" =~ ^[1-9][0-9]{0,5}$ ]]; then GUARD["${word}"]="${value}"; fi
                ;;
        esac
    done <"$1"
    ((${#GUARD[@]} == 5 && ${#GUARD_ALWAYS[@]} > 0))
}

# guard_covers CHECK: whether many failures of it may have one cause. Hardware of a GPU breaks for itself.
guard_covers() {
    local name
    if [[ ! "$1" =~ ^[a-z][a-z0-9_.-]{0,99}$ ]]; then return 1; fi
    for name in "${GUARD_ALWAYS[@]}"; do
        if [[ "$1" == "${name}" || "$1" == "${name}_"* ]]; then return 1; fi
    done
}

# guard_trips FAILING TOTAL: whether so many nodes of so many that report have a shared cause.
guard_trips() { (($1 >= GUARD[nodes] && $1 * 100 > GUARD[percent] * $2)); }

# guard_clears FAILING TOTAL: whether an alarm is over; earlier than it began, or it would come and go.
guard_clears() { (($1 < GUARD[nodes] || $1 * 100 <= GUARD[clear_percent] * $2)); }

# guard_densest SECONDS...: the most of these moments that lie within one window, in REPLY.
guard_densest() {
    local -a sorted=()
    local first=0 last most=0
    REPLY=0
    if (($# == 0)); then return; fi
    mapfile -t sorted < <(printf '%s\n' "$@" | sort -n)
    for ((last = 0; last < ${#sorted[@]}; last++)); do
        while ((sorted[last] - sorted[first] > GUARD[window_s])); do first=$((first + 1)); done
        if ((last - first + 1 > most)); then most=$((last - first + 1)); fi
    done
    REPLY="${most}"
}

# guard_ask SECONDS COMMAND...: what it prints, in REPLY; not 0 when it has not ended in time. Whoever waits for a share that
# is gone cannot always be killed, so nobody waits for it, and it holds no lock of ours.
guard_ask() {
    local -r limit_s="$1"
    local answer child code=0
    shift
    REPLY=""
    exec {answer}< <(
        exec 9>&- 2>/dev/null
        set +e
        trap - ERR
        "$@" && printf '\0'
    )
    child=$!
    IFS= read -r -d '' -t "${limit_s}" -u "${answer}" REPLY || code=$?
    exec {answer}<&-
    if ((code != 0)); then kill -KILL "${child}" 2>/dev/null || true; fi
    return "${code}"
}

# guard_folder: GUARD_FOLDER beside the results of CF_CONF, which are copied and read as a whole; 1 without a guard.
GUARD_FOLDER=""
guard_folder() {
    GUARD_FOLDER="${CF_ROOT}${CF_CONF[results]:-}.guard"
    [[ "${CF_CONF[guard]:-true}" == true && -n "${CF_CONF[results]:-}" ]]
}
