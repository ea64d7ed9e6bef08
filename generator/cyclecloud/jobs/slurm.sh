# shellcheck shell=bash
# What Slurm says of the jobs of a run, in the files of its steps; between common.sh and runs.sh, which names the files.

readonly REQUEST_S="${CYCLEFORGE_REQUEST_S:-60}"
# Source: man squeue, JOB STATE CODES.
readonly ENDED='COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|BOOT_FAIL|DEADLINE|REVOKED|LAUNCH_FAILED|FORGOTTEN'
# Outputs that are followed at once; of an array with more tasks none is.
readonly FOLLOWED=32

# files_of STEP: what its files begin with.
files_of() {
    printf '.cycleforge/%s' "$1"
}

last_id() {
    tail -n 1 "$1.ids" 2>/dev/null | head -c 20 | grep -x -E '[0-9]+' || true
}

# floor_of BASE: jobs up to this number belong to an earlier try.
floor_of() {
    count_or 0 "$(head -c 20 "$1.floor" 2>/dev/null)"
}

# is_over BASE: all tasks have ended, as was read before.
is_over() {
    [[ -s "$1.tasks" ]] && ! grep -qvE "^[^|]*\|(${ENDED})\|" "$1.tasks"
}

# is_good BASE: all of them well.
is_good() {
    ! grep -qvE '^[^|]*\|COMPLETED\|' "$1.tasks"
}

# look_at STEP: brings its files to what Slurm says. 1: that was not possible, and REPLY says why. The reason for which it
# waits is in why.
look_at() {
    local base rows newest known
    base="$(files_of "$1")"
    why=""
    if [[ ! -e "${base}.asked" ]] || is_over "${base}"; then return 0; fi
    # By name, because Slurm answers a number that it has forgotten with an error, and a name with nothing.
    slurm_says squeue --noheader --array --states=all "--name=${run}.$1" '--format=%i|%T|%r' || return 1
    rows="$(grep -E '^[0-9]+[^|]*\|' <<<"${REPLY}" || true)"
    newest="$(grep -oE '^[0-9]+' <<<"${rows}" | sort -n | tail -n 1 || true)"
    known="$(last_id "${base}")"
    if (($(count_or 0 "${newest}") > $(count_or 0 "${known}") && $(count_or 0 "${newest}") > $(floor_of "${base}"))); then
        whole "${base}.ids" "$(cat "${base}.ids" 2>/dev/null && echo "${newest}" || echo "${newest}")" || return 1
        rm -f "${base}.tasks" "${base}.out"
        known="${newest}"
    fi
    if [[ -z "${known}" ]]; then return 0; fi
    if ! grep -qE "^${known}([^0-9|][^|]*)?\|" <<<"${rows}"; then
        by_number "${known}" || return 1
        rows="${REPLY}"
    fi
    merge "${base}" "$1" "${known}" "${rows}"
}

# by_number ID: rows of a job that has another name by now, in REPLY; a number may also be given a second time.
by_number() {
    if ! ask squeue --noheader --array --states=all "--jobs=$1" '--format=%i|%T|%r|%Z'; then
        if [[ "${REPLY}" != *'Invalid job id'* ]]; then
            REPLY="Slurm does not answer: ${REPLY}"
            return 1
        fi
        REPLY=""
    fi
    REPLY="$(awk -F '|' -v folder="$(pwd -P)" '$4 == folder { print $1 "|" $2 "|" $3 }' <<<"${REPLY}")"
}

# ask COMMAND...: what Slurm answers, in REPLY; if it does not, REPLY has its words in one line, and this fails.
ask() {
    local -i status=0
    REPLY="$(timeout --kill-after=5 "${REQUEST_S}" "$@" 2>&1)" || status="$?"
    if ((status == 0)); then return 0; fi
    REPLY="${REPLY//[$'\n\t']/ }"
    REPLY="${REPLY:-$1 says nothing within ${REQUEST_S} s}"
    return "${status}"
}

# slurm_says COMMAND...: what it answers, in REPLY; 1: nothing, and REPLY says so.
slurm_says() {
    ask "$@" && return
    REPLY="Slurm does not answer: ${REPLY}"
    return 1
}

# merge BASE STEP ID ROWS: BASE.tasks from what Slurm says of the job now and what was known before.
merge() {
    local -r base="$1" step="$2" id="$3"
    local -A state_of=() code_of=() out_of=() is_there=()
    local -a order=()
    local task state code reason before other text="" records="" accounts="" outs=""
    before="$(cat "${base}.tasks" 2>/dev/null)" || before=""
    while IFS='|' read -r task state code; do
        if [[ -z "${task}" ]]; then continue; fi
        order+=("${task}") state_of["${task}"]="${state}" code_of["${task}"]="${code}"
    done <<<"${before}"
    while IFS='|' read -r task state reason; do
        if [[ "${task%%[!0-9]*}" != "${id}" || -z "${id}" ]]; then continue; fi
        if [[ -z "${state_of[${task}]+there}" ]]; then order+=("${task}"); fi
        state_of["${task}"]="${state}" is_there["${task}"]=yes
        if [[ "${state}" == PENDING && "${reason}" != None ]]; then why="${reason}"; fi
    done <<<"$4"
    if ((${#order[@]} == 0)); then order=("${id}") state_of["${id}"]=""; fi
    while IFS='|' read -r task text; do
        if [[ -n "${task}" ]]; then out_of["${task}"]="${text}"; fi
    done < <(cat "${base}.out" 2>/dev/null || true)
    if must_ask; then
        slurm_says scontrol --oneliner show job "${id}" || return 1
        records="$(records_in <<<"${REPLY}")"
    fi
    while IFS='|' read -r task code text; do
        if [[ -z "${task}" || -z "${is_there[${task}]+there}" ]]; then continue; fi
        if has_ended "${state_of[${task}]}" && [[ -z "${code_of[${task}]:-}" ]]; then code_of["${task}"]="${code}"; fi
        if [[ "${state_of[${task}]}" != PENDING ]]; then out_of["${task}"]="${text}"; fi
    done <<<"${records}"
    text=""
    for task in "${order[@]}"; do
        state="${state_of[${task}]}"
        if [[ -z "${is_there[${task}]+there}" ]] && ! has_ended "${state}"; then
            # Slurm has forgotten it: only the accounts know.
            if [[ -z "${accounts}" ]]; then
                remembered "${id}" "${step}" || return 1
                accounts="${REPLY:-none}"
            fi
            state=FORGOTTEN code_of["${task}"]=""
            while IFS='|' read -r other reason code; do
                if [[ "${other}" != "${task}" ]]; then continue; fi
                state="${reason}" code_of["${task}"]="${code}"
            done <<<"${accounts}"
            # They learn it later than Slurm forgets it, or never: a runaway job.
            if ! has_ended "${state}"; then
                REPLY="Slurm has forgotten job ${task}, and its accounts still say ${state}"
                return 1
            fi
        fi
        if ! has_ended "${state}"; then code_of["${task}"]=""; fi
        text+="${text:+$'\n'}${task}|${state}|${code_of[${task}]:-}"
        if [[ -n "${out_of[${task}]+there}" ]]; then outs+="${outs:+$'\n'}${task}|${out_of[${task}]}"; fi
    done
    if [[ -n "${outs}" && "${outs}" != "$(cat "${base}.out" 2>/dev/null)" ]]; then whole "${base}.out" "${outs}" || return 1; fi
    if [[ "${text}" != "${before}" ]]; then whole "${base}.tasks" "${text}" || return 1; fi
}

has_ended() {
    [[ "|${ENDED}|" == *"|$1|"* && -n "$1" ]]
}

# must_ask: whether a task has ended or begun of which the exit code or the output is not known; of merge, which has the tables.
must_ask() {
    local task
    for task in "${!is_there[@]}"; do
        if has_ended "${state_of[${task}]}" && [[ -z "${code_of[${task}]:-}" ]]; then return 0; fi
        if [[ "${state_of[${task}]}" != PENDING && -z "${out_of[${task}]+there}" ]]; then return 0; fi
    done
    return 1
}

# records_in: `id|exit code|output` of what scontrol shows, with the numbers that squeue has for tasks and parts of a job. The
# output is empty where its name is not known.
records_in() {
    awk '
        {
            job = array = task = het = part = code = out = ""
            for (i = 1; i <= NF; i++) {
                value = $i
                sub(/^[^=]*=/, "", value)
                if ($i ~ /^JobId=/ && job == "") job = value
                else if ($i ~ /^ArrayJobId=/) array = value
                else if ($i ~ /^ArrayTaskId=/) task = value
                else if ($i ~ /^HetJobId=/) het = value
                else if ($i ~ /^HetJobOffset=/) part = value
                else if ($i ~ /^ExitCode=/) code = value
            }
            if (match($0, / StdOut=/)) {
                out = substr($0, RSTART + 8)
                sub(/ [A-Z][A-Za-z]*=.*/, "", out)
                sub(/ +$/, "", out)
            }
            if (out ~ /%/) out = ""
            if (job != "") print (array != "" ? array "_" task : het != "" ? het "+" part : job) "|" code "|" out
        }
    '
}

# remembered ID STEP: what the accounts know of it, `id|state|exit code` in REPLY; nothing where none are kept. 1: they do not
# answer.
remembered() {
    accounts_say "--jobs=$1" --format=JobID,State,ExitCode,JobName,WorkDir || return 1
    # `CANCELLED by 1000`
    REPLY="$(awk -F '|' -v name="${run}.$2" -v folder="$(pwd -P)" '
        ($4 == name || $5 == folder) && $1 ~ /^[0-9]/ { sub(/ .*/, "", $2); print $1 "|" $2 "|" $3 }
    ' <<<"${REPLY}")"
}

# accounts_say OPTION...: what sacct answers, in REPLY; nothing where no accounts are kept. 1: they do not answer.
accounts_say() {
    local -i status=0
    ask sacct --noheader --allocations --parsable2 "$@" || status="$?"
    # Source: src/sacct/options.c, parse_command_line; 126 and 127 are the shell's.
    if ((status == 126 || status == 127)) || [[ "${REPLY}" == *'accounting storage is disabled'* ]]; then
        REPLY=""
    elif ((status)); then
        REPLY="Slurm's accounts do not answer: ${REPLY}"
        return 1
    fi
}
