#!/usr/bin/env bash
# When many nodes fail one check at once, they share the cause, and drains take away a cluster that is not sick. Figures and
# arithmetic, for the nodes (guard.sh) and for the scheduler (guard-watch.sh).
#
# Beside the folder of results, in a folder of the same name with .guard behind it:
#   claims/CHECK@PARTITION/NODE   an empty file: this node fails this check. Its time is when that began, by the clock of the
#                                 file server, so clocks of nodes are never compared. It goes when the check passes again.
#                                 Of a deep check the name is deep_checks.CHECK where the node is below its floor, and
#                                 deep_passed.CHECK where it is not; both stay until its next deep run.
#   state                         what guard-watch.sh sees, for the nodes: counts, members, alarms. Its time is a heartbeat.
#   record                        what guard-watch.sh remembers, for the other scheduler of two.
# Every node can write all of it, so it is data: read to a limit, taken only where each line has its form, and no link in it
# is followed or removed.

# shellcheck disable=SC2034 # results for the files that source this
declare -A GUARD=()
GUARD_ALWAYS=() GUARD_DEEP=()
readonly GUARD_NAME='[A-Za-z0-9][A-Za-z0-9._-]{0,62}' GUARD_CHECK='[a-z][a-z0-9_.-]{0,99}' GUARD_BYTES=1048576 GUARD_ROWS=50000

# guard_figures FILE: GUARD, GUARD_ALWAYS and GUARD_DEEP from the catalogue's table; 1 when it is not whole.
guard_figures() {
    local word value _
    GUARD=() GUARD_ALWAYS=() GUARD_DEEP=()
    [[ -r "$1" ]] || return 1
    while IFS=$'\t' read -r word value _; do
        case "${word}" in
            always) GUARD_ALWAYS+=("${value}") ;;
            deep) read -r -a GUARD_DEEP <<<"${value}" ;;
            percent | nodes | window_s | clear_percent | floor_percent | looks)
                if [[ "${value}" =~ ^[1-9][0-9]{0,5}$ ]]; then GUARD["${word}"]="${value}"; fi
                ;;
        esac
    done <"$1"
    ((${#GUARD[@]} == 6 && ${#GUARD_ALWAYS[@]} > 0 && ${#GUARD_DEEP[@]} > 0))
}

# guard_covers CHECK: whether many failures of it may have one cause. Hardware of a GPU breaks for itself.
guard_covers() {
    local name
    if [[ ! "$1" =~ ^${GUARD_CHECK}$ ]]; then return 1; fi
    for name in "${GUARD_ALWAYS[@]}"; do
        if [[ "$1" == "${name}" || "$1" == "${name}_"* ]]; then return 1; fi
    done
}

# guard_is_deep CHECK: whether a deep run has a check of this name. In a reason words stand where names do.
guard_is_deep() { [[ " ${GUARD_DEEP[*]} " == *" $1 "* ]]; }

# guard_trips FAILING TOTAL: whether so many nodes of so many that report have a shared cause.
guard_trips() { guard_counts "$@" && ((10#$1 >= GUARD[nodes] && 10#$1 * 100 > GUARD[percent] * 10#$2)); }

# guard_clears FAILING TOTAL: whether an alarm is over; earlier than it began, or it would come and go.
guard_clears() { guard_counts "$@" && ((10#$1 < GUARD[nodes] || 10#$1 * 100 <= GUARD[clear_percent] * 10#$2)); }

# guard_spreads MISSED MEASURED: whether so many of the nodes that measured something are below its floor that the floor, or
# the image, is at fault and not the nodes. No window: a deep run comes at boot, and once a day.
guard_spreads() { guard_counts "$@" && ((10#$1 >= GUARD[nodes] && 10#$1 * 100 > GUARD[floor_percent] * 10#$2)); }

guard_counts() { [[ "$1 $2" =~ ^[0-9]{1,6}\ [0-9]{1,6}$ ]]; }

# guard_densest SECONDS...: the most of these moments that lie within one window, in REPLY.
guard_densest() {
    local -a sorted=()
    local first=0 last most=0
    REPLY=0
    if (($# == 0)); then return; fi
    mapfile -t sorted < <(printf '%s\n' "$@" | grep -x -E '0|[1-9][0-9]{0,11}' | sort -n)
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

# guard_rows FOLDER TEST...: the plain files below claims/ that pass the tests of find, as `SECONDS CHECK@PARTITION/NODE`. find
# opens each folder without following a link, which no check before the use of a path could promise. Whoever reads takes a
# limited number of rows, and reads on to the end: find with nobody behind it fails, and the folder counts as silent.
guard_rows() {
    if [[ -L "$1" || ! -d "$1/claims" ]]; then return; fi
    guard_find "$1" "${@:2}" -printf '%Ts %P\n' | sed -n -E "s:^([0-9]{1,12} ${GUARD_CHECK}@${GUARD_NAME}/${GUARD_NAME})\$:\1:p"
}
readonly GUARD_FIND_S=8

# guard_remove FOLDER CHECK@PARTITION/NODE...: these claims, each of which has its form; `*` stands for any partition, and for any
# check but deep ones, which the deep run of a boot has left before its first quick run.
guard_remove() {
    local -a tests=()
    local path
    for path in "${@:2}"; do
        tests+=(-o -path "$1/claims/${path}")
        if [[ "${path}" == "*@"* ]]; then tests+=(! -path "$1/claims/deep_*"); fi
    done
    if [[ -L "$1" || ! -d "$1/claims" ]] || ((${#tests[@]} == 0)); then return; fi
    guard_find "$1" '(' "${tests[@]:1}" ')' -delete
}

# guard_find FOLDER EXPRESSION...: over the claims. A claim that a node takes back meanwhile (exit code 1) is no failure.
guard_find() {
    timeout --kill-after=1 "${GUARD_FIND_S}" find "$1/claims" -mindepth 2 -maxdepth 2 -type f "${@:2}" 2>/dev/null || (($? == 1))
}

# guard_folder: GUARD_FOLDER beside the results of CF_CONF, which are copied and read as a whole; 1 without a guard.
GUARD_FOLDER=""
guard_folder() {
    GUARD_FOLDER="${CF_ROOT}${CF_CONF[results]:-}.guard"
    [[ "${CF_CONF[guard]:-true}" == true && -n "${CF_CONF[results]:-}" ]]
}
