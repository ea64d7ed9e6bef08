# shellcheck shell=bash
# What one job has shown: its record (run.json), and which nodes it names. Sourced by prove.sh.
#
# BASE.end   first line `verdict <tab> text <tab> run <tab> GPU seconds`, then `node <tab> physical host <tab> why` for each node
#            that the job shows to be bad. A job without a whole record, or with one that contradicts itself or Slurm, has
#            shown nothing: its verdict is error.

# of_intent BASE NAME: what the attempt was planned with.
of_intent() {
    local name value
    while IFS='=' read -r name value; do
        if [[ "${name}" == "$2" ]]; then printf '%s\n' "${value}"; fi
    done <"$1.intent"
}

# number_of_intent BASE NAME
number_of_intent() {
    local value
    value="$(of_intent "$1" "$2")"
    is_count "${value}" || die "${1}.intent has '${value:0:40}' for ${2}; begin anew with --new"
    echo "${value}"
}

# job_of BASE: the id of the job that was submitted, in REPLY. Not in a subshell, which die would not leave.
job_of() {
    REPLY="$(<"$1.job")"
    is_count "${REPLY}" || die "${1}.job has '${REPLY:0:40}' for the id of a job; begin anew with --new"
}

# count_of NODES: of a comma separated list.
count_of() {
    local -a names
    IFS=, read -r -a names <<<"$1"
    echo "${#names[@]}"
}

# job_setting JOB NAME: a setting as the job itself sees it.
job_setting() {
    (
        cd -- "$1"
        set +u
        # shellcheck source=/dev/null
        . ./settings.env
        own="SET_$2"
        printf '%s\n' "${!own:-${!2:-}}"
    )
}

# results_of JOB ID: the results folder of the job's last start, in REPLY; empty: it has none.
results_of() {
    local -r job="$1" id="$2"
    local folder root
    root="$(job_setting "${job}" RESULTS_DIR)"
    root="${root:-results}"
    if [[ "${root}" != /* ]]; then root="${job}/${root}"; fi
    REPLY=""
    # The last restart has the highest number.
    while read -r folder; do
        if [[ -d "${folder}" ]]; then REPLY="${folder}"; fi
    done < <(printf '%s\n' "${root}/${id}" "${root}/${id}"-restart* | sort -V)
}

declare -A RECORD=()
# read_record FILE: the record, but for its curves, into RECORD by path; 1: not there or not whole.
read_record() {
    local text path _form value
    RECORD=()
    [[ -s "$1" ]] || return 1
    text="$(awk -v SKIP=series -f prove.d/json.awk "$1")" || return 1
    while IFS=$'\t' read -r path _form value; do
        # A null is as good as nothing here, and the text "null" is none of ours.
        if [[ "${value}" == null ]]; then value=""; fi
        if [[ -n "${path}" ]]; then RECORD["${path}"]="${value}"; fi
    done <<<"${text}"
}

# fault_of_record ID JOB STATE NODES: why the record proves nothing, in REPLY; empty: it counts.
fault_of_record() {
    local -r id="$1" job="$2" slurm_state="$3" nodes="$4"
    local -i number
    local node covered=,
    REPLY=""
    if [[ "${RECORD[format]:-}" != 1 ]]; then
        REPLY="run.json has the form '${RECORD[format]:-none}', and prove.sh reads form 1"
    elif [[ "${RECORD[run]:-}" != "${id}" && "${RECORD[run]:-}" != "${id}"-restart* ]]; then
        REPLY="run.json belongs to run '${RECORD[run]:-}', not to job ${id}"
    elif [[ "${RECORD[job]:-}" != "${job}" ]]; then
        REPLY="run.json belongs to job folder '${RECORD[job]:-}', not to ${job}"
    elif [[ -z "${RECORD[ended]:-}" ]]; then
        REPLY="the job stopped before its end (Slurm: ${slurm_state:-job unknown})"
    elif [[ ! "${RECORD[verdict]:-}" =~ ^(pass|warn|fail|no_baseline|error)$ ]]; then
        REPLY="run.json has the verdict '${RECORD[verdict]:-}', which is none"
    fi
    if [[ -n "${REPLY}" || "${RECORD[verdict]}" != @(pass|warn) ]]; then return 0; fi
    # What follows would make a pass of something that was not all tested.
    if [[ "${RECORD[verdict]}" == pass && -n "${slurm_state}" && "${slurm_state}" != COMPLETED ]]; then
        REPLY="run.json says pass, but Slurm says that the job ended as ${slurm_state}"
        return 0
    fi
    for ((number = 0; ; number++)); do
        node="${RECORD[nodes.${number}.name]:-}"
        if [[ -z "${node}" ]]; then break; fi
        covered+="${node},"
    done
    for node in ${nodes//,/ }; do
        if [[ "${covered}" != *",${node},"* ]]; then REPLY="run.json says ${RECORD[verdict]}, but does not name ${node}"; fi
    done
    [[ -n "${RECORD[checks.0.verdict]:-}" ]] || REPLY="run.json says ${RECORD[verdict]} without a single check"
    for ((number = 0; ; number++)); do
        if [[ -z "${RECORD[checks.${number}.verdict]:-}" ]]; then break; fi
        if [[ "${RECORD[checks.${number}.verdict]}" == fail ]]; then
            REPLY="run.json says ${RECORD[verdict]}, but its check '${RECORD[checks.${number}.check]:-}' failed"
        fi
    done
}

# named_nodes FOLDER NODES: `node <tab> physical host <tab> why` of each node that the record names as bad, in REPLY.
# A check that belongs to several nodes says that something between them is bad, not which. So only checks of one
# node name one; where none does, failed_nodes.txt of the job.
named_nodes() {
    local -r folder="$1" nodes="$2"
    local -i number
    local node why
    local -A reason=()
    for ((number = 0; ; number++)); do
        if [[ -z "${RECORD[checks.${number}.verdict]:-}" ]]; then break; fi
        node="${RECORD[checks.${number}.nodes.0]:-}"
        # Without nodes a check belongs to all of the job.
        if [[ -z "${node}" && "${nodes}" != *,* ]]; then node="${nodes}"; fi
        if [[ "${RECORD[checks.${number}.verdict]}" != fail || -z "${node}" || -n "${RECORD[checks.${number}.nodes.1]:-}" ]]; then continue; fi
        why="${RECORD[checks.${number}.check]:-}"
        if [[ -n "${RECORD[checks.${number}.value]:-}" ]]; then why+=" ${RECORD[checks.${number}.value]} ${RECORD[checks.${number}.unit]:-}"; fi
        if [[ -n "${RECORD[checks.${number}.expected]:-}" ]]; then why+=", expected ${RECORD[checks.${number}.expected]}"; fi
        if [[ -n "${RECORD[checks.${number}.detail]:-}" ]]; then why+=" (${RECORD[checks.${number}.detail]})"; fi
        reason["${node}"]="${reason[${node}]:+${reason[${node}]}; }${why}"
    done
    if ((${#reason[@]} == 0)) && [[ -s "${folder}/failed_nodes.txt" ]]; then
        while read -r node; do
            if [[ -n "${node}" ]]; then reason["${node}"]="in failed_nodes.txt of the job"; fi
        done <"${folder}/failed_nodes.txt"
    fi
    REPLY=""
    for node in ${nodes//,/ }; do
        if [[ -z "${reason[${node}]:-}" ]]; then continue; fi
        REPLY+="${REPLY:+$'\n'}${node}"$'\t'"$(host_of "${node}")"$'\t'"${reason[${node}]}"
    done
}

# telling_checks VERDICT: the first three checks that a verdict is from, in REPLY; nothing for a pass.
telling_checks() {
    local -i number count=0
    local detail
    REPLY=""
    if [[ "$1" == pass ]]; then return 0; fi
    for ((number = 0; ; number++)); do
        if [[ -z "${RECORD[checks.${number}.verdict]:-}" ]]; then break; fi
        if [[ "${RECORD[checks.${number}.verdict]}" != "$1" ]]; then continue; fi
        count=$((count + 1))
        if ((count > 3)); then continue; fi
        detail="${RECORD[checks.${number}.detail]:-}"
        REPLY+="${REPLY:+; }${RECORD[checks.${number}.check]:-}${detail:+: ${detail}}"
    done
    if ((count > 3)); then REPLY+="; and $((count - 3)) more"; fi
}

# host_of NODE: its physical host by the record, `-` if nobody knows it.
host_of() {
    local -i number
    local host="-"
    for ((number = 0; ; number++)); do
        if [[ -z "${RECORD[nodes.${number}.name]:-}" ]]; then break; fi
        if [[ "${RECORD[nodes.${number}.name]}" == "$1" ]]; then host="${RECORD[nodes.${number}.physical_host]:-}"; fi
    done
    printf '%s\n' "${host:--}"
}

# gpu_seconds BASE: what the job has cost, by its record; all that it might have where that does not say.
gpu_seconds() {
    local -r base="$1"
    local -i seconds most
    local begin end minutes gpus
    minutes="$(number_of_intent "${base}" minutes)"
    gpus="$(number_of_intent "${base}" gpus)"
    most=$((minutes * 60)) seconds=${most}
    if begin="$(date -d "${RECORD[started]:--}" +%s 2>/dev/null)" && end="$(date -d "${RECORD[ended]:--}" +%s 2>/dev/null)"; then
        seconds=$((end - begin))
        if ((seconds < 0 || seconds > most)); then seconds=${most}; fi
    fi
    echo $((seconds * $(count_of "$(of_intent "${base}" nodes)") * gpus))
}

# judge BASE WORD: BASE.end, from the job's record and Slurm's last word.
judge() {
    local -r base="$1" word="$2"
    local id job nodes verdict=error text="" named="" folder="" cost
    job_of "${base}"
    id="${REPLY}"
    job="$(of_intent "${base}" job)"
    nodes="$(of_intent "${base}" nodes)"
    results_of "${job}" "${id}"
    folder="${REPLY}"
    if [[ "${word}" == lost ]]; then
        RECORD=()
        verdict=fail text="nodes went away while the job waited for them"
        named="$(awk -F '\t' '{ print $1 "\t-\tSlurm: " $2 }' "${base}.lost")"
    elif [[ "${word}" == late ]]; then
        RECORD=()
        text="the time of this run is over (--max-hours), job ${id} was cancelled"
    elif ! read_record "${folder:-.}/run.json"; then
        text="job ${id} left no whole run.json (Slurm: ${word:-job unknown})"
    else
        fault_of_record "${id}" "${job}" "${word}" "${nodes}"
        if [[ -n "${REPLY}" ]]; then
            text="${REPLY}"
        else
            telling_checks "${RECORD[verdict]}"
            verdict="${RECORD[verdict]}" text="${RECORD[summary]:-}${REPLY:+ [${REPLY}]}"
            if [[ "${verdict}" == fail ]]; then
                named_nodes "${folder}" "${nodes}"
                named="${REPLY}"
            fi
        fi
    fi
    # A node that broke under the job is down by now.
    if [[ "${verdict}" == error && "${word}" == @(NODE_FAIL|BOOT_FAIL) ]] && lost_nodes "${nodes}" && [[ -n "${REPLY}" ]]; then
        verdict=fail named="$(awk -F '\t' '{ print $1 "\t-\tSlurm: " $2 }' <<<"${REPLY}")"
    fi
    cost="$(gpu_seconds "${base}")"
    # It never ran.
    if [[ "${word}" == lost ]]; then cost=0; fi
    whole "${base}.end" "${verdict}"$'\t'"$(plain_line "${text:-no text}")"$'\t'"${RECORD[run]:-${id}}"$'\t'"${cost}${named:+$'\n'}${named}"
}

# judge_step BASE WORD GPUS: BASE.end of a set-up step, which leaves no record: Slurm's last word alone. no_baseline: Slurm has
# forgotten how it ended. The time in the queue counts as cost, too: nothing else is known for certain.
judge_step() {
    local -r base="$1" word="$2"
    local -i seconds most
    local verdict=error text minutes id
    job_of "${base}"
    id="${REPLY}"
    minutes="$(number_of_intent "${base}" minutes)"
    most=$((minutes * 60))
    seconds=$(($(date +%s) - $(stat -c %Y "${base}.asked")))
    if ((seconds < 0 || seconds > most)); then seconds=${most}; fi
    text="job ${id} ended as ${word}; what it said is in ${base}.slurm-${id}.out"
    case "${word}" in
        COMPLETED) verdict=pass ;;
        "") verdict=no_baseline text="nobody knows how job ${id} ended" ;;
        late) text="the time of this run is over (--max-hours), job ${id} was cancelled" ;;
    esac
    whole "${base}.end" "${verdict}"$'\t'"${text}"$'\t-\t'$((seconds * $3))
}

# plain_line TEXT: as one field of a table.
plain_line() {
    printf '%s\n' "${1//[$'\t\n']/ }"
}
