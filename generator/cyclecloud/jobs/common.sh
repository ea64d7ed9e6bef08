#!/usr/bin/env bash
# What runs.sh and proofs.sh share; it is sent in front of them. What they say is lines of words between tabs.
set -euo pipefail
export LC_ALL=C

readonly REQUEST_S="${CYCLEFORGE_REQUEST_S:-60}"
readonly POLL_S="${CYCLEFORGE_POLL_S:-5}"
readonly LOCK_S=300

say() {
    local IFS=$'\t'
    printf '%s\n' "$*"
}

die() {
    say error "$*"
    exit 0
}

# whole FILE TEXT: a reader finds a whole file or none.
whole() {
    { printf '%s\n' "$2" >"$1.partial.$$"; } 2>/dev/null && mv -f "$1.partial.$$" "$1" && return
    rm -f "$1.partial.$$"
    die "cannot write ${PWD}/${1} on ${HOSTNAME}; is the disk full?"
}

# ask COMMAND...: what Slurm answers, in REPLY; 1: it does not answer, and REPLY has its words.
ask() {
    REPLY="$(timeout --kill-after=5 "${REQUEST_S}" "$@" 2>&1)"
}

# enter RUN: goes into its folder.
enter() {
    cd -- "${HOME}/jobs/$1" 2>/dev/null || die "the folder ~/jobs/${1} is not on ${HOSTNAME} any more"
    run="$1"
}

# locked COMMAND...: one at a time for this run, whoever calls; the lock ends with its holder, however that ends.
locked() {
    exec 8>.cycleforge/lock
    flock --wait "${LOCK_S}" 8 || die "another \`cycleforge run\` holds ~/jobs/${run} for ${LOCK_S} s; try again"
    "$@"
    exec 8>&-
}

# settle RUN PARTIAL: gives the copy its name; copies that never got one go after a day.
settle() {
    cd -- "${HOME}/jobs" || die "there is no folder ~/jobs on ${HOSTNAME}"
    find . -maxdepth 1 -type d -name '.copy-*' -mmin +1440 -exec rm -rf {} + || true
    if [[ -d "$2" ]] && ! mv -T -- "$2" "$1" 2>/dev/null; then
        [[ -d "$1/.cycleforge" ]] || die "${PWD}/${2} cannot be renamed to ${1} on ${HOSTNAME}"
        # Somebody else has begun the same run meanwhile.
        rm -rf -- "$2"
        say joined
    fi
}

# new_lines NAME FILE IS_OVER: whole lines that a file has more than before; at its end the rest, too. The caller
# has `offset` by name, and `mark`, which stands before the offset in what is said.
new_lines() {
    local file="$2" size line
    local -i from
    from="${offset[$1]:-0}"
    size="$(stat -c %s -- "${file}" 2>/dev/null)" || return 0
    # Put back into the queue, a job begins its file anew.
    if ((size < from)); then from=0; fi
    if ((size == from)); then return 0; fi
    while IFS= read -r line || [[ -n "${line}" && -n "$3" ]]; do
        from+=$((${#line} + 1))
        say log "$1" "${mark}${from}" "${line}"
    done < <(tail -c "+$((from + 1))" -- "${file}" | head -c "$((size - from))" | tr '\000' ' ')
    offset["$1"]="${from}"
}
