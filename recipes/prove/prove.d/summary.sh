# shellcheck shell=bash
# What people and programs read: the plan before it starts, the table at the end, and prove.json. Sourced by prove.sh.

# hours SECONDS: tenths below ten hours.
hours() {
    local -i tenths=$((($1 * 10 + 1800) / 3600))
    if ((tenths < 100)); then echo "$((tenths / 10)).$((tenths % 10))"; else echo "$((($1 + 1800) / 3600))"; fi
}

# counted NUMBER NOUN
counted() {
    if (($1 == 1)); then echo "$1 $2"; else echo "$1 $2s"; fi
}

# setup_costs: seconds and GPU-seconds that the set-up steps of the gate that was read may take, into the caller's setup_s and setup_gpu_s.
setup_costs() {
    local step minutes count gpus
    setup_s=0 setup_gpu_s=0
    for step in ${G_SETUP}; do
        IFS=: read -r _ minutes count gpus <<<"${step}"
        if ! is_count "${minutes}" || ! is_count "${count}" || ! is_count "${gpus}"; then
            die "gate ${G_NAME} has the set-up step '${step:0:60}'; build the deployment folder again"
        fi
        setup_s=$((setup_s + minutes * 60)) setup_gpu_s=$((setup_gpu_s + minutes * 60 * count * gpus))
    done
}

# planned_costs FILE NODES: `seconds GPU-seconds` of all gates of the file that can run, each once and as long as it may take.
planned_costs() {
    local line
    local -i count seconds=0 gpu_seconds=0 setup_s setup_gpu_s
    count="$(count_of "$2")"
    while IFS= read -r line; do
        read_gate "${line}"
        if [[ "${G_LEVEL}" == finder || -z "${G_JOB}" ]] || is_skipped "${G_NAME}" || ((count < G_MIN_NODES)); then continue; fi
        setup_costs
        seconds=$((seconds + G_MINUTES * 60 + setup_s))
        gpu_seconds=$((gpu_seconds + G_MINUTES * 60 * G_GPUS * count + setup_gpu_s))
    done <"$1"
    echo "${seconds} ${gpu_seconds}"
}

# show_plan FILE NODES LEFT_OUT: what will run, what cannot, and what it may cost.
show_plan() {
    local line seconds gpu_seconds
    local -i count setup_s setup_gpu_s
    count="$(count_of "$2")"
    echo "Level ${RUN[level]} on partition ${RUN[partition]}${RUN[constraint]:+ (${RUN[constraint]})}, $(counted "${count}" node): ${2}"
    if [[ -n "$3" ]]; then printf 'Left out, because no job starts there: %s\n' "${3//$'\n'/; }"; fi
    printf '\n%-16s %-28s %10s %10s  %s\n' gate job "at most" GPU-hours what
    while IFS= read -r line; do
        read_gate "${line}"
        if [[ "${G_LEVEL}" == finder ]]; then continue; fi
        if is_skipped "${G_NAME}"; then
            printf '%-16s %-28s %10s %10s  %s\n' "${G_NAME}" "${G_JOB:--}" - - "left out by --skip"
        elif unsuited; then
            printf '%-16s %-28s %10s %10s  %s\n' "${G_NAME}" "${G_JOB:--}" - - "not proven: ${REPLY}"
        elif ((count < G_MIN_NODES)); then
            printf '%-16s %-28s %10s %10s  %s\n' "${G_NAME}" "${G_JOB}" - - "not proven: needs $(counted "${G_MIN_NODES}" node)"
        else
            setup_costs
            printf '%-16s %-28s %10s %10s  %s\n' "${G_NAME}" "${G_JOB}" "$((G_MINUTES + setup_s / 60)) min" \
                "$(hours $((G_MINUTES * 60 * G_GPUS * count + setup_gpu_s)))" "${G_WHAT}${G_SETUP:+; set up first, once}"
        fi
    done <"$1"
    read -r seconds gpu_seconds < <(planned_costs "$1" "$2")
    printf '\nEach gate once takes at most %s hours and %s GPU-hours. With repeats it stops by itself\n' "$(hours "${seconds}")" "$(hours "${gpu_seconds}")"
    printf 'after %s hours (--max-hours) and %s GPU-hours (--max-gpu-hours).\n' "$(hours "${RUN[max_s]}")" "$(hours "${RUN[max_gpu_s]}")"
    if ((RUN[max_s] < seconds || RUN[max_gpu_s] < gpu_seconds)); then
        echo "That is less than the gates may take: those that no longer fit will not be proven."
    fi
}

# each_gate: `name <tab> job <tab> verdict <tab> text <tab> folder` of every gate of the run; one without a verdict is an error.
each_gate() {
    local line folder verdict text
    local -i number=0
    while IFS= read -r line; do
        read_gate "${line}"
        if [[ "${G_LEVEL}" == finder ]]; then continue; fi
        number=$((number + 1))
        printf -v folder '%s/%02d-%s' "${state}" "${number}" "${G_NAME}"
        verdict=error text="not reached"
        if [[ -s "${folder}/verdict" ]]; then IFS=$'\t' read -r verdict text <"${folder}/verdict"; fi
        printf '%s\t%s\t%s\t%s\t%s\n' "${G_NAME}" "${G_JOB:--}" "${verdict}" "${text}" "${folder}"
    done <"${state}/gates.tsv"
}

# overall: the worst verdict of all gates, in REPLY; nothing proven at all is an error.
overall() {
    local -a verdicts
    mapfile -t verdicts < <(each_gate | cut -f 3 | grep -vx skipped || true)
    REPLY="$(worst "${verdicts[@]}")"
    # A node that is out was to be proven, and is not.
    if [[ -s "${state}/out.tsv" && "${REPLY}" != fail ]]; then REPLY="$(worst "${REPLY}" fail)"; fi
}

# show_summary: one verdict per gate, the nodes to replace, and the last word.
show_summary() {
    local name job verdict text node host how why
    printf '\n%-16s %-11s %s\n' gate verdict ""
    while IFS=$'\t' read -r name job verdict text _; do
        printf '%-16s %-11s %s\n' "${name}" "$(shown_verdict "${verdict}")" "${text}"
    done < <(each_gate)
    if [[ -s "${state}/out.tsv" ]]; then
        printf '\nNodes to replace:\n'
        while IFS=$'\t' read -r node host name how why; do
            printf '  %s, physical host %s: %s: %s (%s)\n' "${node}" "${host/#-/unknown}" "${name}" "${why}" "${how}"
        done <"${state}/out.tsv"
    else
        printf '\nNo node has to be replaced.\n'
    fi
    spent
    printf '\nLevel %s on %s, %s of them out; %s hours, %s GPU-hours.\n' "${RUN[level]}" "$(counted "$(count_of "${RUN[nodes]}")" node)" \
        "$(grep -c . "${state}/out.tsv" || true)" "$(hours "${REPLY}")" "$(hours "$(spent_gpu_seconds)")"
}

# json_text TEXT: quoted. Control characters become spaces.
json_text() {
    local text="${1//\\/\\\\}"
    text="${text//\"/\\\"}"
    printf '"%s"\n' "${text//[$'\001'-$'\037']/ }"
}

# json_names NAMES: comma separated names as an array.
json_names() {
    local name text=""
    for name in ${1//,/ }; do text+="${text:+, }$(json_text "${name}")"; done
    printf '[%s]\n' "${text}"
}

# runs_of FOLDER: the runs of a gate, as run.json names them, comma separated.
runs_of() {
    local file run text=""
    for file in "$1"/*.end; do
        if [[ ! -e "${file}" ]]; then continue; fi
        IFS=$'\t' read -r _ _ run _ <"${file}"
        # A set-up step has no record.
        if [[ "${run}" == - ]]; then continue; fi
        text+="${text:+,}$(of_intent "${file%.end}" job)-${run}"
    done
    printf '%s\n' "${text}"
}

# summary_json VERDICT: form 1 of prove.json.
summary_json() {
    local name job verdict text node host how why folder gate comma=""
    spent
    printf '{"format": 1, "prove": %s, "level": "%s", "cluster": %s, "partition": %s, "vm_size": %s,\n' "$(json_text "${RUN[id]}")" "${RUN[level]}" \
        "$(json_text "${RUN[cluster]}")" "$(json_text "${RUN[partition]}")" "$(json_text "${RUN[vm_size]}")"
    printf ' "started": "%s", "ended": "%s", "hours": %s, "gpu_hours": %s, "max_hours": %s, "max_gpu_hours": %s,\n' "${RUN[started]}" \
        "$(TZ=UTC printf '%(%FT%TZ)T' -1)" "$(hours "${REPLY}")" "$(hours "$(spent_gpu_seconds)")" "$(hours "${RUN[max_s]}")" "$(hours "${RUN[max_gpu_s]}")"
    printf ' "verdict": "%s", "nodes": %s,\n "gates": [' "$1" "$(json_names "${RUN[nodes]}")"
    while IFS=$'\t' read -r name job verdict text folder; do
        printf '%s\n  {"gate": %s, "job": %s, "verdict": "%s", "summary": %s, "runs": %s}' "${comma}" "$(json_text "${name}")" \
            "$(json_text "${job/#-/}")" "${verdict}" "$(json_text "${text}")" "$(json_names "$(runs_of "${folder}")")"
        comma=,
    done < <(each_gate)
    printf '],\n "replace": ['
    comma=""
    while IFS=$'\t' read -r node host gate how why; do
        printf '%s\n  {"name": %s, "physical_host": %s, "gate": %s, "how": %s, "why": %s}' "${comma}" "$(json_text "${node}")" \
            "$(json_text "${host/#-/}")" "$(json_text "${gate}")" "$(json_text "${how}")" "$(json_text "${why}")"
        comma=,
    done <"${state}/out.tsv"
    printf ']}\n'
}

# record_summary VERDICT: prove.json of the run in its own folder and in the folder of all runs.
record_summary() {
    local folder root text
    text="$(summary_json "$1")"
    whole "${state}/prove.json" "${text}"
    root="${SET_RUNS_DIR:-${RUN[runs]}}"
    folder="${root}/prove-${RUN[id]}"
    if { mkdir -p "${folder}" && cp "${state}/prove.json" "${folder}/prove.json.partial" && mv "${folder}/prove.json.partial" "${folder}/prove.json"; } 2>/dev/null; then
        log "recorded in ${folder}/prove.json"
    else
        log "cannot write ${folder}; the record is only in ${PWD}/${state}/prove.json"
    fi
}
