# shellcheck shell=bash
# What a run of prove.sh knows of itself, so that it can go on after any end. Sourced by prove.sh.
#
# prove.state/<id>/   run          NAME=value, what was asked for
#                     gates.tsv    the gates as they were planned
#                     out.tsv      nodes that are out: node, physical host, gate, how, why
#                     spent        seconds so far
#                     NN-gate/     attempts and the verdict of one gate
#                     ended        the exit status; missing: the run is not over
# Every file is written beside its place and moved there, so that a reader finds a whole file or none.

readonly STATE_ROOT=prove.state LOCK=prove.state/lock
# A holder of the lock on another host that has given no sign of life for so long is gone.
readonly SILENT_S=300

declare -A RUN=()
state="" lock_token="" spent_before=0

# whole FILE TEXT: writes the file whole or not at all; a disk that takes nothing ends prove.sh.
whole() {
    { printf '%s\n' "$2" >"$1.partial"; } 2>/dev/null && mv -f "$1.partial" "$1" && return
    die "cannot write ${1}; is the disk full? Type the same again when it is not"
}

# run_text: RUN as NAME=value lines.
run_text() {
    local name
    for name in "${!RUN[@]}"; do printf '%s=%s\n' "${name}" "${RUN[${name}]}"; done | sort
}

# new_state: the folder of a new run, from RUN and the planned gates in $gates_text. A run without `run` does not exist.
new_state() {
    local folder
    folder="${STATE_ROOT}/${RUN[id]}"
    mkdir "${folder}.new"
    whole "${folder}.new/gates.tsv" "${gates_text}"
    : >"${folder}.new/out.tsv"
    whole "${folder}.new/spent" 0
    whole "${folder}.new/run" "$(run_text)"
    mv -T "${folder}.new" "${folder}"
    state="${folder}"
}

# open_state FOLDER: the run of a folder into RUN.
open_state() {
    local name value odd
    state="$1"
    RUN=()
    # One who shares this folder may have left anything in it: a link, a pipe, numbers that are none.
    odd="$(find "${state}" '(' ! -type f ! -type d -o -type f -size +4096k ! -name '*.slurm-*.out' ')' -print -quit)"
    [[ -z "${odd}" ]] || die "${odd} is no plain file of at most 4 MiB; move ${state} away and begin anew"
    while IFS='=' read -r name value; do
        if [[ "${name}" =~ ^[a-z_]+$ ]]; then RUN["${name}"]="${value}"; fi
    done <"${state}/run"
    for name in max_s max_gpu_s burn_minutes; do
        is_count "${RUN[${name}]:-}" || die "${state}/run is damaged: ${name} is '${RUN[${name}]:0:40}'; move ${state} away and begin anew"
    done
    spent_before="$(<"${state}/spent")"
    is_count "${spent_before}" || die "${state}/spent is damaged; move ${state} away and begin anew"
}

# open_runs: the runs that are not over, the newest last.
open_runs() {
    local folder
    for folder in "${STATE_ROOT}"/*/; do
        folder="${folder%/}"
        if [[ -f "${folder}/run" && ! -e "${folder}/ended" && "${folder}" != *.new ]]; then printf '%s\n' "${folder}"; fi
    done
}

# spent: seconds that this run has taken, those of earlier starts included; kept for a later start.
spent() {
    REPLY=$((spent_before + SECONDS))
}

keep_spent() {
    spent
    whole "${state}/spent" "${REPLY}"
}

# begun PID: when a process began, in ticks since the boot; nothing when there is none.
begun() {
    local text
    text="$(cat "/proc/$1/stat" 2>/dev/null)" || return 0
    # The name, in brackets, may have spaces of its own.
    text="${text##*) }"
    awk '{ print $20 }' <<<"${text}"
}

# take_lock: one prove.sh at a time for this folder. The lock appears whole, by the rename of a folder, which fails where one is.
take_lock() {
    local holder
    lock_token="${HOSTNAME} $$ $(begun "$$") $(id -un 2>/dev/null || id -u)"
    mkdir -p "${STATE_ROOT}"
    mkdir "${LOCK}.$$" || die "${LOCK}.$$ is in the way; remove it"
    printf '%s\n' "${lock_token}" >"${LOCK}.$$/holder"
    : >"${LOCK}.$$/beat"
    until mv -T "${LOCK}.$$" "${LOCK}" 2>/dev/null; do
        holder="$(holder_of "${LOCK}")"
        if [[ ! -d "${LOCK}" ]]; then continue; fi
        if holder_lives "${holder}"; then
            rm -r "${LOCK:?}.$$"
            local host pid user
            read -r host pid _ user <<<"${holder}"
            die "${user:-someone} is proving from this folder already (process ${pid:-unknown} on ${host:-another host}); wait for it, or end it there: a later start goes on where it was"
        fi
        steal_lock "${holder}"
    done
}

# holder_of LOCK: what it says of its holder, in one line.
holder_of() {
    if [[ -f "$1/holder" ]]; then head --bytes=1000 -- "$1/holder" 2>/dev/null | head -n 1; fi
}

# holder_lives HOLDER: on this host by its process, on another by its last sign of life, by the file system's clock.
holder_lives() {
    local host pid since
    local -i beat now
    read -r host pid since _ <<<"$1"
    if [[ "${host}" == "${HOSTNAME}" && -n "${pid}" ]]; then
        [[ -n "${since}" && "$(begun "${pid}")" == "${since}" ]]
        return
    fi
    beat="$(stat -c %Y "${LOCK}/beat" 2>/dev/null)" || return 1
    : >"${LOCK}.$$/beat"
    now="$(stat -c %Y "${LOCK}.$$/beat")"
    ((now - beat < SILENT_S))
}

# steal_lock HOLDER: takes the lock of a holder that is gone out of the way; one that came meanwhile gets its own back.
steal_lock() {
    local -r gone="${LOCK}.gone.$$"
    mv -T "${LOCK}" "${gone}" 2>/dev/null || return 0
    if [[ "$(holder_of "${gone}")" != "$1" ]]; then
        mv -T "${gone}" "${LOCK}" 2>/dev/null || true
    fi
    if [[ -d "${gone}" ]]; then rm -r "${gone}"; fi
}

# holds_lock: whether the lock is still ours; a sign of life for others.
holds_lock() {
    [[ "$(holder_of "${LOCK}")" == "${lock_token}" ]] || return 1
    : >"${LOCK}/beat"
}

drop_lock() {
    if [[ -n "${lock_token}" ]] && holds_lock; then rm -r "${LOCK}"; fi
}
