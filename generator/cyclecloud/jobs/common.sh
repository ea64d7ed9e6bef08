#!/usr/bin/env bash
# What runs.sh and proofs.sh share; it is sent in front of them. What they say is lines of words between tabs.
set -euo pipefail
# What the login has, for a job.
readonly LOGIN_LOCALE="${LC_ALL-}"
export LC_ALL=C

readonly POLL_S="${CYCLEFORGE_POLL_S:-5}"
readonly LOCK_S=300
# Of a file that is followed: what is read at once, what is shown of a line, and what is shown of what came since the last look.
readonly BLOCK=1048576 LINE=4000 NEWS="${CYCLEFORGE_NEWS:-16777216}"

say() {
    local IFS=$'\t'
    printf '%s\n' "$*"
}

die() {
    say error "$*"
    exit 0
}

# whole FILE TEXT: a reader finds a whole file or none. 1: it cannot be written, and REPLY says so.
whole() {
    { printf '%s\n' "$2" >"$1.partial.$$"; } 2>/dev/null && mv -f "$1.partial.$$" "$1" 2>/dev/null && return
    rm -f "$1.partial.$$" || true
    REPLY="cannot write ${PWD}/${1} on ${HOSTNAME}; is the disk full?"
    return 1
}

# must_be_whole FILE TEXT: the same, where nothing can go on without it.
must_be_whole() {
    whole "$@" || die "${REPLY}"
}

# count_or NUMBER TEXT: TEXT where it is a whole number of at most 15 digits, else NUMBER. What a file or a command says goes through
# here before it stands in arithmetic: there Bash takes text for an expression and runs the commands in `x[$(...)]`.
count_or() {
    if [[ "${2:-}" =~ ^(0|[1-9][0-9]{0,14})$ ]]; then echo "$2"; else echo "$1"; fi
}

# as_login COMMAND...: in the locale of the login, and not in ours.
as_login() {
    if [[ -n "${LOGIN_LOCALE}" ]]; then LC_ALL="${LOGIN_LOCALE}" "$@"; else env -u LC_ALL "$@"; fi
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

# new_lines STEP TASK FILE IS_OVER: whole lines that a file has more than before; at its end the rest, too. What is said has
# TASK and the offset in front. The caller has `offset`, `inode`, `state` and `ending` by STEP=TASK.
new_lines() {
    local -r key="$1=$2" file="$3"
    local identity moment used rest
    local -i from size end
    # A job may write to /dev/null, to a pipe, or where its user may not read.
    [[ -f "${file}" && -r "${file}" ]] || return 0
    read -r identity size moment < <(stat -L -c '%i %s %Y' -- "${file}" 2>/dev/null) || return 0
    from="$(count_or 0 "${offset[${key}]:-}")"
    if ((size == from)) && [[ "${state[${key}]:-}" == "${identity} ${size} ${moment}" ]]; then return 0; fi
    state["${key}"]="${identity} ${size} ${moment}"
    # Put back into the queue, a job begins its file anew; or a new file has taken its place.
    if ((size < from)) || [[ "${inode[${key}]:-${identity}}" != "${identity}" ]]; then
        from=0
    elif [[ -n "${ending[${key}]+there}" && "${ending[${key}]}" != "$(ending_of "${file}" "${from}")" ]]; then
        from=0
    fi
    inode["${key}"]="${identity}"
    if ((size - from > NEWS)); then
        say note "$1" "$((size - from - NEWS)) bytes of its output are left out here; all of it is in ${file}"
        from=$((size - NEWS))
    fi
    while ((from < size)); do
        rest="$4" end="${size}"
        # A line longer than a block is told in pieces.
        if ((size - from > BLOCK)); then end=$((from + BLOCK)) rest=""; fi
        { used="$(lines_of "$1" "$2" "${file}" "${from}" "$((end - from))" "${rest}" "$((end < size))" 4>&1 >&3 3>&-)"; } 3>&1
        used="$(count_or 0 "${used}")"
        if ((used == 0)); then break; fi
        from+="${used}"
    done
    offset["${key}"]="${from}" ending["${key}"]="$(ending_of "${file}" "${from}")"
}

# ending_of FILE OFFSET: what stands for the bytes before the offset, of which the last ones are told from others.
ending_of() {
    local -i bytes="$(($2 < 256 ? $2 : 256))"
    set +o pipefail
    tail -c "+$(($2 - bytes + 1))" -- "$1" | head -c "${bytes}" | cksum
}

# lines_of STEP TASK FILE FROM BYTES IS_OVER HAS_MORE: says the lines of this part, and on descriptor 4 how many bytes they were.
lines_of() {
    # Reading ends before the file does.
    set +o pipefail
    # shellcheck disable=SC2016  # awk's own
    tail -c "+$(($4 + 1))" -- "$3" | head -c "$5" | tr '\000' ' ' | awk -v step="$1" -v task="$2" -v from="$4" -v bytes="$5" \
        -v over="$6" -v more="$7" -v most="${LINE}" '
        {
            size = length($0) + 1
            if (used + size > bytes) {
                # The last one has no end yet.
                size--
                if (over == "" && !(more && used == 0)) {
                    # A progress bar comes back to the beginning of its line, and has said something by then.
                    if (!match($0, /.*\r/)) next
                    $0 = substr($0, 1, RLENGTH)
                    size = RLENGTH
                }
            }
            used += size
            sub(/\r+$/, "")
            sub(/.*\r/, "")
            if (length($0) > most) $0 = substr($0, 1, most) "..."
            printf "log\t%s\t%s:%d\t", step, task, from + used
            print
        }
        END { print used + 0 | "cat >&4" }
    '
}
