# shellcheck shell=bash
# One gate after the other. Sourced by prove.sh.
#
# A gate is a row of gates.tsv; it is over when its folder has `verdict`: `verdict <tab> text`. Whatever happens before that
# happens again in the same way at a later start: attempts that have ended are read, a job that runs is waited for.

# How often one gate is run, the repeats without bad nodes included.
readonly ATTEMPTS=4
readonly GATE_COLUMNS=14
# A set-up step whose end Slurm has forgotten is run again: it asks first whether its work is done.
readonly SETUP_TRIES=2

# read_gate LINE: a row of gates.tsv into G_… (`-` is nothing).
read_gate() {
    local -a field
    local number
    IFS=$'\t' read -r -a field <<<"$1"
    ((${#field[@]} == GATE_COLUMNS)) || die "a row of the gates has ${#field[@]} columns instead of ${GATE_COLUMNS}; build the deployment folder again"
    for ((number = 0; number < GATE_COLUMNS; number++)); do
        if [[ "${field[number]}" == - ]]; then field[number]=""; fi
    done
    # Columns 2 to 4, partition, constraint and VM size, are the same for all gates of a run, and in RUN.
    G_NAME="${field[0]}" G_LEVEL="${field[1]}" G_JOB="${field[5]}"
    G_MIN_NODES="${field[6]:-1}" G_GPUS="${field[7]:-0}" G_MINUTES="${field[8]:-0}" G_FINDER="${field[9]}" G_SETTINGS="${field[10]}"
    for number in "${G_MIN_NODES}" "${G_GPUS}" "${G_MINUTES}"; do
        is_count "${number}" || die "gate ${G_NAME} has '${number:0:40}' for a number; build the deployment folder again"
    done
    G_WHAT="${field[11]}" G_REASON="${field[12]}" G_SETUP="${field[13]}"
    if [[ "${G_SETTINGS}" == *%BURN_* ]]; then
        G_MINUTES=$((G_MINUTES + RUN[burn_minutes]))
        G_SETTINGS="${G_SETTINGS//%BURN_MINUTES%/${RUN[burn_minutes]}}"
        G_SETTINGS="${G_SETTINGS//%BURN_SECONDS%/$((RUN[burn_minutes] * 60))}"
    fi
}

# gate_line NAME: the row of a gate by its name; nothing when there is none.
gate_line() {
    awk -F '\t' -v name="$1" '$1 == name' "${state}/gates.tsv"
}

# is_skipped GATE: the caller has left it out by --skip.
is_skipped() {
    [[ ",${RUN[skip]}," == *",$1,"* ]]
}

# remaining_nodes: the nodes that are not out, comma separated, in REPLY; one that Slurm has taken away meanwhile is out, too.
remaining_nodes() {
    local node text="" why
    local -a left=()
    for node in ${RUN[nodes]//,/ }; do
        if ! is_out "${node}"; then left+=("${node}"); fi
    done
    if ((${#left[@]})); then
        lost_nodes "$(IFS=,; echo "${left[*]}")" || return 1
        while IFS=$'\t' read -r node why; do
            if [[ -n "${node}" ]]; then put_out "${node}" - "${G_NAME}" "left out" "Slurm: ${why}"; fi
        done <<<"${REPLY}"
    fi
    for node in "${left[@]}"; do
        if ! is_out "${node}"; then text+="${text:+,}${node}"; fi
    done
    REPLY="${text}"
}

# is_out NODE: by out.tsv, which only put_out changes.
is_out() {
    local rows
    rows="$(<"${state}/out.tsv")"
    [[ $'\n'"${rows}" == *$'\n'"$1"$'\t'* ]]
}

# put_out NODE HOST GATE HOW WHY: the node is out for the rest of this run.
put_out() {
    if is_out "$1"; then return 0; fi
    local rows
    rows="$(<"${state}/out.tsv")"
    whole "${state}/out.tsv" "${rows}${rows:+$'\n'}$(printf '%s\t%s\t%s\t%s\t%s' "$1" "${2:--}" "$3" "$(plain_line "$4")" "$(plain_line "$5")")"
    log "${G_NAME}: ${1} is out: ${5} (${4})"
}

# gpu_seconds_left: what --max-gpu-hours leaves, in REPLY.
gpu_seconds_left() {
    REPLY=$((RUN[max_gpu_s] - $(spent_gpu_seconds)))
}

spent_gpu_seconds() {
    local file cost
    local -i sum=0
    for file in "${state}"/*/*.end; do
        if [[ ! -e "${file}" ]]; then continue; fi
        IFS=$'\t' read -r _ _ _ cost <"${file}"
        # What cannot be read may have cost all that is left.
        sum=$((sum + $(count_or "${RUN[max_gpu_s]}" "${cost}")))
    done
    echo "${sum}"
}

# may_start MINUTES GPUS: whether a job that takes so long at most and occupies so many GPUs fits into what is left; else REPLY
# says why not.
may_start() {
    local -ri minutes="$1" cost=$(($1 * 60 * $2))
    gpu_seconds_left
    if ((cost > REPLY)); then
        REPLY="the job may take $(hours "${cost}") GPU-hours, and $(hours "${REPLY}") are left of --max-gpu-hours"
        return 1
    fi
    spent
    if ((RUN[max_s] - REPLY < minutes * 60)); then
        REPLY="the job may take ${minutes} minutes, and $(((RUN[max_s] - REPLY) / 60)) are left of --max-hours"
        return 1
    fi
}

# name_of BASE: of its job. Slurm is asked for the job by its name, so no other job may have it.
name_of() {
    echo "prove-${RUN[id]}-$(basename "$(dirname "$1")")-${1##*/}"
}

# set_up FOLDER: the set-up steps of the gate that was read, in order, each once however often the gate runs; 1: one could not be
# run or did not end well, and REPLY says why.
set_up() {
    local step file minutes count gpus base verdict text
    local -i number=0 try
    for step in ${G_SETUP}; do
        number=$((number + 1))
        IFS=: read -r file minutes count gpus <<<"${step}"
        for ((try = 1; try <= SETUP_TRIES; try++)); do
            base="${1}/setup-${number}-${try}"
            set_up_step "${base}" "${file}" "${minutes}" "${count}" "${gpus}" || return 1
            IFS=$'\t' read -r verdict text _ <"${base}.end"
            if [[ "${verdict}" != no_baseline ]]; then break; fi
        done
        if [[ "${verdict}" != pass ]]; then
            REPLY="set-up step ${file%.sbatch}: ${text}"
            return 1
        fi
    done
}

# set_up_step BASE FILE MINUTES NODES GPUS: one batch file of the gate's job, on NODES nodes with GPUS GPUs each, wherever it may
# run, to BASE.end.
set_up_step() {
    local -r base="$1" file="$2" minutes="$3" count="$4" gpus="$5"
    if [[ -e "${base}.end" ]]; then return 0; fi
    if [[ ! -e "${base}.intent" ]]; then
        may_start "${minutes}" $((count * gpus)) || return 1
        whole "${base}.intent" "$(printf '%s=%s\n' job "${G_JOB}" step "${file}" minutes "${minutes}" settings "${G_SETTINGS}" \
            out "$(cut -f 1 "${state}/out.tsv" | paste -sd , -)" name "$(name_of "${base}")")"
    fi
    if [[ ! -e "${base}.job" ]]; then submit "${base}" || return 1; fi
    job_of "${base}"
    log "${G_NAME}: set-up ${file%.sbatch}, job ${REPLY}, at most ${minutes} minutes"
    wait_for "${base}"
    judge_step "${base}" "${REPLY}" $((count * gpus))
}

# attempt BASE NODES: one job of the gate that was read, from wherever it is to BASE.end. 1: it could not be started, REPLY says why.
attempt() {
    local -r base="$1" nodes="$2"
    if [[ -e "${base}.end" ]]; then return 0; fi
    if [[ ! -e "${base}.intent" ]]; then
        may_start "${G_MINUTES}" $((G_GPUS * $(count_of "${nodes}"))) || return 1
        whole "${base}.intent" "$(printf '%s=%s\n' job "${G_JOB}" nodes "${nodes}" minutes "${G_MINUTES}" gpus "${G_GPUS}" settings "${G_SETTINGS}" \
            name "$(name_of "${base}")")"
    fi
    if [[ ! -e "${base}.job" ]]; then
        submit "${base}" || return 1
        job_of "${base}"
        log "${G_NAME}: job ${REPLY} (${G_JOB}) on $(of_intent "${base}" nodes), at most ${G_MINUTES} minutes"
    else
        job_of "${base}"
        log "${G_NAME}: goes on with job ${REPLY} (${G_JOB}) on $(of_intent "${base}" nodes)"
    fi
    wait_for "${base}"
    judge "${base}" "${REPLY}"
}

# end_gate FOLDER VERDICT TEXT
end_gate() {
    whole "$1/verdict" "$2"$'\t'"$(plain_line "${3:-no text}")"
    log "${G_NAME}: $(shown_verdict "$2"): ${3}"
}

# shown_verdict VERDICT: as people read it; a verdict that is none of pass, warn and fail proves nothing.
shown_verdict() {
    case "$1" in
        pass | warn | fail | skipped) echo "$1" ;;
        *) echo "not proven" ;;
    esac
}

# unsuited: why the gate cannot run here at all, in REPLY; 1: it can.
unsuited() {
    local step
    REPLY=""
    if [[ -z "${G_JOB}" ]]; then
        REPLY="${G_REASON:-this deployment has no job for it}"
    elif [[ ! -f "${G_JOB}/job.sbatch" || ! -f "${G_JOB}/settings.env" ]]; then
        REPLY="the job folder ${G_JOB} is missing or not whole; copy it to ${PWD}"
    else
        for step in ${G_SETUP}; do
            if [[ ! -f "${G_JOB}/${step%%:*}" ]]; then REPLY="the job folder ${G_JOB} lacks ${step%%:*}; copy it to ${PWD}"; fi
        done
    fi
    [[ -n "${REPLY}" ]]
}

# enough_nodes NODES: whether they suffice for the gate's job; else REPLY says so.
enough_nodes() {
    if [[ -n "$1" ]] && (($(count_of "$1") >= G_MIN_NODES)); then return 0; fi
    REPLY="${G_JOB} needs at least $(counted "${G_MIN_NODES}" node), and ${1:-none} is left"
    return 1
}

# prove_gate FOLDER LINE: one gate to its verdict.
prove_gate() {
    local -r folder="$1" line="$2"
    local -i try
    local nodes verdict text bad history="" base
    read_gate "${line}"
    if [[ -e "${folder}/verdict" ]]; then return 0; fi
    mkdir -p "${folder}"
    if is_skipped "${G_NAME}"; then end_gate "${folder}" skipped "left out by --skip"; return; fi
    if unsuited; then end_gate "${folder}" no_baseline "${REPLY}"; return; fi
    for ((try = 1; try <= ATTEMPTS; try++)); do
        base="${folder}/${try}"
        if [[ -e "${base}.intent" ]]; then
            nodes="$(of_intent "${base}" nodes)"
        elif remaining_nodes; then
            nodes="${REPLY}"
        else
            end_unproven "${folder}" error "${history}" "Slurm did not answer until the time of this run was over"
            return
        fi
        if ! enough_nodes "${nodes}"; then
            end_unproven "${folder}" no_baseline "${history}" "${REPLY}"
            return
        fi
        if ! set_up "${folder}" || ! attempt "${base}" "${nodes}"; then
            end_unproven "${folder}" error "${history}" "${REPLY}"
            return
        fi
        IFS=$'\t' read -r verdict text _ <"${base}.end"
        if [[ "${verdict}" != fail ]]; then break; fi
        find_bad_nodes "${base}" "${nodes}" "${line}"
        bad="${REPLY}"
        if [[ -z "${bad}" ]]; then
            end_gate "${folder}" fail "${history}${text}; ${NOBODY}"
            return
        fi
        remove_nodes "${bad}"
        history+="failed with $(names_in "${bad}"): ${text}; then "
    done
    if [[ -z "${history}" ]]; then
        end_gate "${folder}" "${verdict}" "${text}"
    elif [[ "${verdict}" == fail ]]; then
        end_gate "${folder}" fail "${history}no more of ${ATTEMPTS} runs were left"
    else
        end_gate "${folder}" fail "${history}$(shown_verdict "${verdict}") on the other $(counted "$(count_of "${nodes}")" node): ${text}"
    fi
}

# end_unproven FOLDER VERDICT HISTORY TEXT: a gate that could not be run to its end; one that has failed before has failed.
end_unproven() {
    if [[ -n "$3" ]]; then end_gate "$1" fail "${3}not proven on the others: ${4}"; else end_gate "$1" "$2" "$4"; fi
}

# names_in LINES: the nodes, comma separated.
names_in() {
    cut -f 1 <<<"$1" | paste -sd , -
}

# find_bad_nodes BASE NODES LINE: the lines of bad nodes of a failed attempt, in REPLY; nobody: NOBODY says why. Where the job
# names none, the gate's finder does.
find_bad_nodes() {
    local -r base="$1" nodes="$2" line="$3"
    local bad
    NOBODY=""
    bad="$(tail -n +2 "${base}.end")"
    if [[ -z "${bad}" && -n "${G_FINDER}" && "${nodes}" == *,* ]]; then
        read_gate "$(gate_line "${G_FINDER}")"
        if unsuited || ! enough_nodes "${nodes}" || ! attempt "${base}-find" "${nodes}"; then
            NOBODY="no single node is named, and none was looked for: ${REPLY}"
        else
            bad="$(tail -n +2 "${base}-find.end")"
            NOBODY="no single node is named, neither by the job nor by ${G_JOB}"
        fi
        read_gate "${line}"
    fi
    REPLY=""
    if [[ -z "${bad}" ]]; then
        NOBODY="${NOBODY:-no single node is named}"
    elif [[ "${nodes}" == *,* ]] && (($(wc -l <<<"${bad}") * 2 > $(count_of "${nodes}"))); then
        NOBODY="$(names_in "${bad}") fail, more than half of the nodes, which looks like something that they have in common (image, driver, settings); none was drained"
    else
        REPLY="${bad}"
    fi
}

# remove_nodes LINES: drains the nodes, or leaves them out of this run where it may not drain.
remove_nodes() {
    local node host why how
    while IFS=$'\t' read -r node host why; do
        if is_out "${node}"; then continue; fi
        drain "${node}" "${PREFIX} ${G_NAME}: $(tr -d "\"'\\\\" <<<"${why:0:200}")" || true
        how="${REPLY}"
        put_out "${node}" "${host}" "${G_NAME}" "${how}" "${why}"
    done <<<"$1"
}
