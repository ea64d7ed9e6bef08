# shellcheck shell=bash
# On the scheduler, behind common.sh and slurm.sh: finds, submits, follows and reads one run of a job, for `cycleforge run`.
#
# A run is a folder below ~/jobs, <job>-<key>-<number>; the key stands for its files and settings. Its .cycleforge/ has
#   steps         batch files in their order, each with the options that sbatch gets for it, separated by tabs
#   environment   NAME=value lines for sbatch
#   who           who began it, and when
#   again         one line for each time that a failed run went on: the step at which it did
#   seen          there once somebody was told the result
#   STEP.asked    when sbatch was called; without STEP.ids the answer is not known
#   STEP.ids      the job, and those that went on after it under its name; the last one counts
#   STEP.tasks    `id|state|exit code` of the last job, a line for each task of an array or part of a heterogeneous job
#   STEP.out      `id|file` for each of them whose output was asked for; no file where its name is not known
#   STEP.floor    jobs up to this number belong to an earlier try
#   STEP.skipped  there where the user began at a later step
# Every file appears whole. Slurm knows a job by its name, <run>.<step>, so a job whose number was lost is found again.
readonly SETTLE_S="${CYCLEFORGE_SETTLE_S:-$((REQUEST_S + 5))}"

steps() {
    cut -f 1 .cycleforge/steps
}

# look KEY: the newest run of this key, and the states of its steps.
look() {
    local newest
    command -v sbatch >/dev/null || die "sbatch is not on ${HOSTNAME}: this is no scheduler"
    say home "${HOME}"
    # Not with find, which fails where a folder goes meanwhile: then there would be no run at all.
    newest="$(cd -- "${HOME}/jobs" 2>/dev/null && for each in *-"$1"-*; do if [[ -d "${each}" ]]; then printf '%s\n' "${each}"; fi; done | sort -V)" || newest=""
    newest="${newest##*$'\n'}"
    if [[ -z "${newest}" ]]; then return 0; fi
    enter "${newest}"
    tell
}

# tell: what is known of the run that was entered.
tell() {
    local step silent=""
    say run "${run}" "$(head -n 1 .cycleforge/who 2>/dev/null)" "$(wc -l 2>/dev/null <.cycleforge/again || echo 0)"
    if [[ -e .cycleforge/seen ]]; then say seen; fi
    for step in $(steps); do
        if [[ -z "${silent}" ]] && ! look_at "${step}"; then
            say silent "${REPLY}"
            silent=yes
        fi
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
            if ! is_good "${base}"; then return 0; fi
            # It may be one that Slurm has forgotten, for which nothing can wait.
            previous=""
        fi
    done <.cycleforge/steps
}

# begin_again STEP COUNT: forgets the jobs from this step on; what two people want at once happens once.
begin_again() {
    local step base found=no
    if (($(wc -l 2>/dev/null <.cycleforge/again || echo 0) != $(count_or 0 "$2"))); then return 0; fi
    rm -f .cycleforge/seen
    for step in $(steps); do
        if [[ "${step}" == "$1" ]]; then found=yes; fi
        base="$(files_of "${step}")"
        if [[ "${found}" == yes ]]; then
            if [[ -s "${base}.ids" ]]; then must_be_whole "${base}.floor" "$(last_id "${base}")"; fi
            rm -f "${base}.asked" "${base}.ids" "${base}.tasks" "${base}.out" "${base}.skipped"
        elif [[ ! -s "${base}.ids" ]]; then
            must_be_whole "${base}.skipped" skipped
        fi
    done
    # Last: killed before it, this is done once more.
    printf '%s\n' "$1" >>.cycleforge/again
}

# submit STEP PREVIOUS OPTION...: once, whatever was lost before.
submit() {
    local -r step="$1" previous="$2"
    local -r name="${run}.${step}"
    local base said age tries
    shift 2
    base="$(files_of "${step}")"
    if [[ -e "${base}.asked" ]]; then
        # Whoever asked was killed before Slurm's answer, and the request may still be on its way.
        # In the file, because the clock of a file server is another one.
        age=$(($(date +%s) - $(count_or 0 "$(cat "${base}.asked")")))
        if ((age < SETTLE_S)); then sleep $((SETTLE_S - (age < 0 ? 0 : age))); fi
        find_again "${step}"
        if [[ -s "${base}.ids" ]]; then return 0; fi
    fi
    local -a options=(--parsable "--job-name=${name}" --kill-on-invalid-dep=yes "$@")
    if [[ -n "${previous}" ]]; then options+=("--dependency=afterok:${previous}"); fi
    must_be_whole "${base}.asked" "$(date +%s)"
    # In a shell of its own, where a setting may have any name.
    # shellcheck disable=SC2016  # its own variables
    said="$(
        as_login bash -c '
            unset SBATCH_WAIT
            while IFS= read -r _setting; do export "${_setting?}" || exit; done <.cycleforge/environment
            exec "$@"
        ' submit "$(type -P timeout)" --kill-after=5 "${REQUEST_S}" "$(type -P sbatch)" "${options[@]}" "${step}" 2>&1 8>&-
    )" || said="refused: ${said}"
    # A federated cluster answers `id;cluster`.
    if [[ "${said}" =~ (^|$'\n')([0-9]+)(;[^$'\n']*)?$ && "${said}" != refused:* ]]; then
        must_be_whole "${base}.ids" "${BASH_REMATCH[2]}"
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
    look_at "$1" || die "${HOSTNAME}: ${REPLY}"
    if [[ -s "${base}.ids" ]]; then return 0; fi
    floor="$(floor_of "${base}")"
    accounts_say "--name=${run}.$1" --starttime=now-14days --format=JobIDRaw || die "${HOSTNAME}: ${REPLY}"
    REPLY="$(grep -E '^[0-9]+$' <<<"${REPLY}" | sort -n | tail -n 1 || true)"
    if (($(count_or 0 "${REPLY}") > floor)); then
        must_be_whole "${base}.ids" "${REPLY}"
        look_at "$1" || true
    fi
}

# follow RUN [STEP=TASK:OFFSET]...: states and new lines of the output, as they come, until all has ended.
follow() {
    local step line open silent
    local -A shown=() offset=() inode=() state=() ending=()
    enter "$1"
    shift
    for line in "$@"; do offset["${line%:*}"]="${line##*:}"; done
    while :; do
        open="" silent=""
        for step in $(steps); do
            if [[ -e "$(files_of "${step}").skipped" ]]; then continue; fi
            why=""
            if ! look_at "${step}"; then
                silent="${REPLY}" open=yes
                # The next ones would not be answered either.
                break
            fi
            show_step "${step}"
        done
        if [[ -n "${silent}" ]]; then say silent "${silent}"; fi
        if [[ -z "${open}" ]]; then
            say over
            return 0
        fi
        # Whoever reads may have gone: then this ends by SIGPIPE.
        say tick
        sleep "${POLL_S}"
    done
}

# show_step STEP: its state, if it is another one than before, and what is new in its output. Sets open, of follow.
show_step() {
    local base told over="" task file
    base="$(files_of "$1")"
    # Not submitted, because one before it has failed already.
    if [[ ! -e "${base}.tasks" ]]; then return 0; fi
    told="$(last_id "${base}") $(cut -d '|' -f 2 "${base}.tasks" | sort | uniq -c | awk '{ printf "%s%s%s", (NR > 1 ? ", " : ""), ($1 > 1 ? $1 " " : ""), $2 }')"
    if [[ "${told}${why}" != "${shown[$1]:-}" ]]; then
        shown["$1"]="${told}${why}"
        say state "$1" "${told%% *}" "${told#* }" "${why}"
    fi
    if is_over "${base}"; then over=yes; else open=yes; fi
    if [[ ! -e "${base}.out" ]]; then return 0; fi
    if (($(wc -l <"${base}.tasks") > FOLLOWED)); then
        if [[ -z "${shown["$1=many"]+there}" ]]; then say note "$1" "of more than ${FOLLOWED} tasks the output is not followed"; fi
        shown["$1=many"]=yes
        return 0
    fi
    # Tasks may share a file.
    while IFS='|' read -r task file; do
        if [[ -n "${file}" ]]; then new_lines "$1" "${task}" "${file}" "${over}"; fi
    done < <(sort -t '|' -k 2 -u "${base}.out" | sort -V)
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
    must_be_whole .cycleforge/seen seen
}

main() {
    local run why=""
    case "$1" in
        state) enter "$2"; tell ;;
        look | go | follow | result | seen) "$@" ;;
        *) die "runs.sh does not know '$1'" ;;
    esac
}
main "$@"
