# shellcheck shell=bash
# On the scheduler, behind common.sh: finds, submits, follows and reads one run of a job, for `cycleforge run`.
#
# A run is a folder below ~/jobs, <job>-<key>-<number>; the key stands for its files and settings. Its .cycleforge/ has
#   steps         batch files in their order, each with the options that sbatch gets for it, separated by tabs
#   environment   NAME=value lines for sbatch
#   who           who began it, and when
#   again         one line for each time that a failed run went on: the step at which it did
#   seen          there once somebody was told the result
#   STEP.asked    sbatch was called; without STEP.ids the answer is not known
#   STEP.ids      the job, and those that went on after it under its name; the last one counts
#   STEP.tasks    `id|state|exit code` of the last job, a line for each task of an array
#   STEP.out      the file that it writes its output to
#   STEP.floor    jobs up to this number belong to an earlier try
#   STEP.skipped  there where the user began at a later step
# Every file appears whole. Slurm knows a job by its name, <run>.<step>, so a job whose number was lost is found again.
readonly SETTLE_S="${CYCLEFORGE_SETTLE_S:-$((REQUEST_S + 5))}"
# Source: man squeue, JOB STATE CODES.
readonly ENDED='^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|BOOT_FAIL|DEADLINE|REVOKED|LAUNCH_FAILED|FORGOTTEN)$'

steps() {
    cut -f 1 .cycleforge/steps
}

# files_of STEP: what its files begin with.
files_of() {
    printf '.cycleforge/%s' "$1"
}

# look KEY: the newest run of this key, and the states of its steps.
look() {
    local newest
    command -v sbatch >/dev/null || die "sbatch is not on ${HOSTNAME}: this is no scheduler"
    say home "${HOME}"
    newest="$(cd -- "${HOME}/jobs" 2>/dev/null && find . -maxdepth 1 -type d -name "*-$1-[0-9]*" -printf '%f\n' | sort -t - -V | tail -n 1)" || newest=""
    if [[ -z "${newest}" ]]; then return 0; fi
    enter "${newest}"
    tell
}

# tell: what is known of the run that was entered.
tell() {
    local step
    say run "${run}" "$(head -n 1 .cycleforge/who 2>/dev/null)" "$(wc -l 2>/dev/null <.cycleforge/again || echo 0)"
    if [[ -e .cycleforge/seen ]]; then say seen; fi
    for step in $(steps); do
        look_at "${step}" || say silent "${REPLY//$'\n'/ }"
        tell_step "${step}"
    done
}

# tell_step STEP: its number, and each of its tasks.
tell_step() {
    local base task_id task_state code
    base="$(files_of "$1")"
    if [[ -e "${base}.skipped" ]]; then return 0; fi
    say step "$1" "$(last_id "${base}")"
    if [[ ! -e "${base}.tasks" ]]; then return 0; fi
    while IFS='|' read -r task_id task_state code; do say task "$1" "${task_id}" "${task_state}" "${code}"; done <"${base}.tasks"
}

last_id() {
    tail -n 1 "$1.ids" 2>/dev/null || true
}

# look_at STEP: brings its files to what Slurm says. 1: Slurm does not answer, its words are in REPLY. The reason for which it
# waits is in why.
look_at() {
    local base rows newest known
    base="$(files_of "$1")"
    why=""
    if [[ ! -e "${base}.asked" ]] || is_over "${base}"; then return 0; fi
    # By name, because Slurm answers a number that it has forgotten with an error, and a name with nothing.
    ask squeue --noheader --array --states=all "--name=${run}.$1" '--format=%F|%i|%T|%r' || return 1
    rows="$(grep -E '^[0-9]+\|' <<<"${REPLY}" || true)"
    newest="$(cut -d '|' -f 1 <<<"${rows}" | sort -n | tail -n 1)"
    known="$(last_id "${base}")"
    if [[ -n "${newest}" ]] && ((newest > ${known:-0} && newest > $(floor_of "${base}"))); then
        whole "${base}.ids" "$(cat "${base}.ids" 2>/dev/null && echo "${newest}" || echo "${newest}")"
        rm -f "${base}.tasks" "${base}.out"
        known="${newest}"
    fi
    if [[ -z "${known}" ]]; then return 0; fi
    merge "${base}" "${known}" "${rows}"
}

# floor_of BASE: jobs up to this number belong to an earlier try.
floor_of() {
    cat "$1.floor" 2>/dev/null || echo 0
}

# is_over BASE: all tasks have ended, as was read before.
is_over() {
    [[ -s "$1.tasks" ]] || return 1
    ! cut -d '|' -f 2 "$1.tasks" | grep -qvE "${ENDED}"
}

# merge BASE ID ROWS: BASE.tasks from what squeue says of the job and what was known before.
merge() {
    local -r base="$1" id="$2"
    local -A state_of=() code_of=()
    local -a order=()
    local job task_id task_state code reason before text=""
    before="$(cat "${base}.tasks" 2>/dev/null)" || before=""
    while IFS='|' read -r task_id task_state code; do
        if [[ -z "${task_id}" ]]; then continue; fi
        order+=("${task_id}")
        state_of["${task_id}"]="gone:${task_state}" code_of["${task_id}"]="${code}"
    done <<<"${before}"
    while IFS='|' read -r job task_id task_state reason; do
        if [[ "${job}" != "${id}" ]]; then continue; fi
        if [[ ! -v state_of["${task_id}"] ]]; then order+=("${task_id}"); fi
        state_of["${task_id}"]="${task_state}"
        if [[ "${task_state}" == PENDING && "${reason}" != None ]]; then why="${reason}"; fi
        if [[ -z "${code_of[${task_id}]:-}" && "${task_state}" =~ ${ENDED} ]]; then
            if ! ask scontrol --oneliner show job "${task_id}"; then REPLY=""; fi
            code_of["${task_id}"]="$(grep -oE ' ExitCode=[0-9]+:[0-9]+' <<<"${REPLY}" | head -n 1 | cut -d = -f 2 || true)"
        fi
    done <<<"$3"
    if ((${#order[@]} == 0)); then order=("${id}") state_of["${id}"]="gone:"; fi
    for task_id in "${order[@]}"; do
        task_state="${state_of[${task_id}]}" code="${code_of[${task_id}]:-}"
        if [[ "${task_state}" == gone:* ]]; then
            task_state="${task_state#gone:}"
            if [[ ! "${task_state}" =~ ${ENDED} ]]; then
                # Slurm has forgotten it: only the accounts know.
                remembered "${task_id}"
                IFS='|' read -r task_state code <<<"${REPLY}"
            fi
        fi
        text+="${text:+$'\n'}${task_id}|${task_state}|${code}"
    done
    if [[ "${text}" != "${before}" ]]; then whole "${base}.tasks" "${text}"; fi
    if [[ ! -e "${base}.out" ]]; then keep_output "${base}" "${id}"; fi
}

# remembered ID: `state|exit code` by the accounts, in REPLY. Where there are none, sacct fails.
remembered() {
    ask sacct --noheader --allocations --parsable2 "--jobs=$1" --format=State,ExitCode || REPLY=""
    REPLY="$(grep -m 1 -E '^[A-Z_]+[^|]*\|[0-9]+:[0-9]+$' <<<"${REPLY}" || true)"
    # `CANCELLED by 1000`
    REPLY="${REPLY%%[ |]*}|${REPLY##*|}"
    if [[ "${REPLY}" == '|' || ! "${REPLY%%|*}" =~ ${ENDED} ]]; then REPLY="FORGOTTEN|"; fi
}

# keep_output BASE ID: where the job's output goes; that of an array goes to many files.
keep_output() {
    local text
    if grep -q '_' "$1.tasks" 2>/dev/null || ! ask scontrol --oneliner show job "$2"; then return 0; fi
    text="$(grep -oE ' StdOut=[^ ]+' <<<"${REPLY}" | head -n 1 | cut -d = -f 2 || true)"
    if [[ -n "${text}" && "${text}" != *%* ]]; then whole "$1.out" "${text}"; fi
}

# go RUN PARTIAL STEP COUNT: makes the copy the run, unless it is one already, and submits what was not submitted.
# STEP: a run that has ended goes on there, if it did so COUNT times before; `-`: it does not. PARTIAL `-`: nothing was copied.
go() {
    if [[ "$2" != - ]]; then settle "$1" "$2"; fi
    enter "$1"
    locked submit_all "$3" "$4"
    tell
}

submit_all() {
    local step base previous=""
    local -a options
    if [[ "$1" != - ]]; then begin_again "$1" "$2"; fi
    while IFS=$'\t' read -r -a options; do
        step="${options[0]}" base="$(files_of "${options[0]}")"
        if [[ -e "${base}.skipped" ]]; then continue; fi
        if [[ ! -s "${base}.ids" ]]; then submit "${step}" "${previous}" "${options[@]:1}"; fi
        previous="$(last_id "${base}")"
        if [[ -z "${previous}" ]] || ! look_at "${step}"; then return 0; fi
        if is_over "${base}"; then
            if cut -d '|' -f 2 "${base}.tasks" | grep -qvx COMPLETED; then return 0; fi
            # It may be one that Slurm has forgotten, for which nothing can wait.
            previous=""
        fi
    done <.cycleforge/steps
}

# begin_again STEP COUNT: forgets the jobs from this step on; what two people want at once happens once.
begin_again() {
    local step base found=no
    if (($(wc -l 2>/dev/null <.cycleforge/again || echo 0) != $2)); then return 0; fi
    rm -f .cycleforge/seen
    for step in $(steps); do
        if [[ "${step}" == "$1" ]]; then found=yes; fi
        base="$(files_of "${step}")"
        if [[ "${found}" == yes ]]; then
            if [[ -s "${base}.ids" ]]; then whole "${base}.floor" "$(last_id "${base}")"; fi
            rm -f "${base}.asked" "${base}.ids" "${base}.tasks" "${base}.out" "${base}.skipped"
        elif [[ ! -s "${base}.ids" ]]; then
            whole "${base}.skipped" skipped
        fi
    done
    # Last: killed before it, this is done once more.
    printf '%s\n' "$1" >>.cycleforge/again
}

# submit STEP PREVIOUS OPTION...: once, whatever was lost before.
submit() {
    local -r step="$1" previous="$2"
    local -r name="${run}.${step}"
    local base said age tries setting
    shift 2
    base="$(files_of "${step}")"
    if [[ -e "${base}.asked" ]]; then
        # Whoever asked was killed before Slurm's answer, and the request may still be on its way.
        age=$(($(date +%s) - $(stat -c %Y "${base}.asked")))
        if ((age < SETTLE_S)); then sleep $((SETTLE_S - (age < 0 ? 0 : age))); fi
        find_again "${step}"
        if [[ -s "${base}.ids" ]]; then return 0; fi
    fi
    local -a options=(--parsable "--job-name=${name}" --kill-on-invalid-dep=yes "$@")
    if [[ -n "${previous}" ]]; then options+=("--dependency=afterok:${previous}"); fi
    whole "${base}.asked" asked
    said="$(
        while IFS= read -r setting; do export "${setting?}"; done <.cycleforge/environment
        timeout --kill-after=5 "${REQUEST_S}" sbatch "${options[@]}" "${step}" 2>&1 8>&-
    )" || said="refused: ${said}"
    # A federated cluster answers `id;cluster`.
    if [[ "${said}" =~ (^|$'\n')([0-9]+)(;[^$'\n']*)?$ && "${said}" != refused:* ]]; then
        whole "${base}.ids" "${BASH_REMATCH[2]}"
        look_at "${step}" || true
        return 0
    fi
    # An answer that was lost is no refusal: the job may be there.
    for ((tries = 0; tries < 2; tries++)); do
        find_again "${step}"
        if [[ -s "${base}.ids" ]]; then return 0; fi
        sleep 1
    done
    rm -f "${base}.asked"
    said="${said#refused: }"
    say refused "${step}" "${said//$'\n'/ }"
}

# find_again STEP: the job that was submitted by this name, into STEP.ids.
find_again() {
    local base floor
    base="$(files_of "$1")"
    look_at "$1" || die "Slurm does not answer on ${HOSTNAME}: ${REPLY//$'\n'/ }"
    if [[ -s "${base}.ids" ]]; then return 0; fi
    floor="$(floor_of "${base}")"
    ask sacct --noheader --allocations --parsable2 "--name=${run}.$1" --starttime=now-14days --format=JobIDRaw || return 0
    REPLY="$(grep -E '^[0-9]+$' <<<"${REPLY}" | sort -n | tail -n 1 || true)"
    if [[ -n "${REPLY}" ]] && ((REPLY > floor)); then
        whole "${base}.ids" "${REPLY}"
        look_at "$1" || true
    fi
}

# follow RUN [STEP=JOB:OFFSET]...: states and new lines of the output, as they come, until all has ended.
follow() {
    local step base open told line text id silent=""
    local -A shown=() offset=() of_job=()
    enter "$1"
    shift
    for line in "$@"; do
        step="${line%=*}" line="${line##*=}"
        of_job["${step}"]="${line%%:*}" offset["${step}"]="${line##*:}"
    done
    while :; do
        open=""
        for step in $(steps); do
            base="$(files_of "${step}")"
            if [[ -e "${base}.skipped" ]]; then continue; fi
            why=""
            if ! look_at "${step}"; then
                if [[ -z "${silent}" ]]; then say silent "${REPLY//$'\n'/ }"; fi
                silent=yes open=yes
                continue
            fi
            silent=""
            # Not submitted, because one before it has failed already.
            if [[ ! -e "${base}.tasks" ]]; then continue; fi
            told="$(last_id "${base}") $(cut -d '|' -f 2 "${base}.tasks" | sort | uniq -c | awk '{ printf "%s%s%s", (NR > 1 ? ", " : ""), ($1 > 1 ? $1 " " : ""), $2 }')"
            if [[ "${told}${why}" != "${shown[${step}]:-}" ]]; then
                shown["${step}"]="${told}${why}"
                say state "${step}" "${told%% *}" "${told#* }" "${why}"
            fi
            is_over "${base}" && text=yes || text=""
            id="$(last_id "${base}")"
            # A job that goes on after another one has an output of its own.
            if [[ "${of_job[${step}]:-}" != "${id}" ]]; then of_job["${step}"]="${id}" offset["${step}"]=0; fi
            mark="${id}:"
            if [[ -e "${base}.out" ]]; then new_lines "${step}" "$(<"${base}.out")" "${text}"; fi
            if [[ -z "${text}" ]]; then open=yes; fi
        done
        if [[ -z "${open}" ]]; then
            say over
            return 0
        fi
        # Whoever reads may have gone: then this ends by SIGPIPE.
        say tick
        sleep "${POLL_S}"
    done
}

# result RUN STEP: the record of the step's last job, if it has left one.
result() {
    local id folder root found=""
    enter "$1"
    id="$(last_id "$(files_of "$2")")"
    root="$(sed -nE "s/^RESULTS_DIR=//p" settings.env 2>/dev/null | tail -n 1)" || root=""
    root="${root//\'/}"
    while read -r folder; do
        if [[ -s "${folder}/run.json" ]]; then found="${folder}/run.json"; fi
    done < <(printf '%s\n' "${root:-results}/${id}" "${root:-results}/${id}"-restart* | sort -V)
    if [[ -n "${found}" ]]; then cat -- "${found}"; fi
}

# seen RUN: somebody knows the result; the same command begins anew.
seen() {
    enter "$1"
    whole .cycleforge/seen seen
}

main() {
    local run why="" mark=""
    case "$1" in
        state) enter "$2"; tell ;;
        look | go | follow | result | seen) "$@" ;;
        *) die "runs.sh does not know '$1'" ;;
    esac
}
main "$@"
