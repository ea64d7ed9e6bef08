#!/usr/bin/env bash
# From measured values to verdicts and the result file. Sourced by health.sh.
#
# Verdicts: pass, warn, fail, not_measured (the tool is missing, hangs or prints no number) and no_baseline (nobody has
# published a limit for this VM size). The last two are never a pass.

declare -a RECORDS=() FAILURES=()
declare -A COUNTS=()
RUN_VERDICT="" RUN_REASON="" KIND="" STARTED_MS=0 DURATION_MS=0

start_results() {
    KIND="$1" RECORDS=() FAILURES=() RUN_VERDICT="" RUN_REASON=""
    COUNTS=([pass]=0 [warn]=0 [fail]=0 [not_measured]=0 [no_baseline]=0)
    cf_now_ms
    STARTED_MS="${REPLY}"
}

relation_words() {
    case "$1" in
        ge) REPLY="at least" ;;
        le) REPLY="at most" ;;
        lt) REPLY="below" ;;
        *) REPLY="expected" ;;
    esac
}

# json_text TEXT: REPLY is a quoted JSON string.
json_text() {
    local text="${1//\\/\\\\}"
    text="${text//\"/\\\"}"
    # Whatever a tool printed: control characters have no place in a verdict.
    REPLY="\"${text//[[:cntrl:]]/ }\""
}

# record VERDICT CHECK VALUE RELATION LIMIT UNIT DETAIL
record() {
    local -r verdict="$1" check="$2" value="$3" relation="$4" limit="$5" unit="$6" detail="$7"
    local text line
    COUNTS["${verdict}"]=$((COUNTS[${verdict}] + 1))
    text="${check}"
    if [[ -n "${value}" ]]; then text+=" ${value}${unit:+ ${unit}}"; fi
    if [[ -n "${limit}" ]]; then
        relation_words "${relation}"
        text+=", ${REPLY} ${limit}${unit:+ ${unit}}"
    fi
    if [[ -n "${detail}" ]]; then text+=" (${detail})"; fi
    if [[ "${verdict}" == fail ]]; then FAILURES+=("${text}"); fi
    if [[ "${verdict}" == @(fail|warn|not_measured) ]]; then cf_log "${verdict}: ${text}"; fi
    line="{\"check\": \"${check}\", \"verdict\": \"${verdict}\""
    json_text "${value}"
    line+=", \"value\": ${REPLY}"
    json_text "${relation}"
    line+=", \"relation\": ${REPLY}"
    json_text "${limit}"
    line+=", \"limit\": ${REPLY}"
    json_text "${unit}"
    line+=", \"unit\": ${REPLY}"
    json_text "${detail}"
    RECORDS+=("${line}, \"detail\": ${REPLY}}")
}

# judge CHECK VALUE RELATION LIMIT UNIT [SEVERITY [DETAIL]]: compare as numbers and record; severity of a miss is fail.
judge() {
    local -r check="$1" value="$2" relation="$3" limit="$4" unit="$5" severity="${6:-fail}" detail="${7:-}"
    local code=0
    if [[ -z "${limit}" ]]; then
        record no_baseline "${check}" "${value}" "" "" "${unit}" "${detail}"
        return
    fi
    cf_compare "${value}" "${relation}" "${limit}" || code=$?
    case "${code}" in
        0) record pass "${check}" "${value}" "${relation}" "${limit}" "${unit}" "${detail}" ;;
        1) record "${severity}" "${check}" "${value}" "${relation}" "${limit}" "${unit}" "${detail}" ;;
        *) record not_measured "${check}" "" "${relation}" "${limit}" "${unit}" "${detail:+${detail}: }no number: '${value:0:40}'" ;;
    esac
}

not_measured() { record not_measured "$1" "" "" "" "" "$2"; }

# run_tool SECONDS COMMAND...: output in OUTPUT, exit code returned; 127 missing, 124 or 137 hung.
OUTPUT=""
run_tool() {
    local -r limit_s="$1"
    shift
    OUTPUT=""
    command -v "$1" >/dev/null || return 127
    OUTPUT="$(timeout --kill-after=2 "${limit_s}" "$@" 2>&1)"
}

# why_not CODE TOOL: words for an exit code of run_tool, in REPLY.
why_not() {
    case "$1" in
        124 | 137) REPLY="$2 did not answer in time" ;;
        126 | 127) REPLY="$2 is not installed" ;;
        *) REPLY="$2 ended with exit code $1: ${OUTPUT:0:80}" ;;
    esac
}

# The verdict of the run and, when it failed, the reason for a drain.
conclude() {
    local item
    cf_now_ms
    DURATION_MS=$((REPLY - STARTED_MS))
    if ((${#FAILURES[@]} > 0)); then
        RUN_VERDICT=fail
        for item in "${FAILURES[@]}"; do RUN_REASON+="${RUN_REASON:+; }${item}"; done
        # Slurm shows the reason in one line; the file has the rest.
        if ((${#RUN_REASON} > 300)); then RUN_REASON="${RUN_REASON:0:297}..."; fi
    elif [[ "${COUNTS[not_measured]}" != 0 || "${COUNTS[pass]}" == 0 || "${CF_SIZE_KNOWN}" == false ]]; then
        RUN_VERDICT=incomplete
    elif [[ "${COUNTS[warn]}" != 0 ]]; then
        RUN_VERDICT=warn
    else
        RUN_VERDICT=pass
    fi
    cf_log "${KIND}: ${RUN_VERDICT}; ${COUNTS[pass]} pass, ${COUNTS[warn]} warn, ${COUNTS[fail]} fail," \
        "${COUNTS[not_measured]} not measured, ${COUNTS[no_baseline]} without baseline (${DURATION_MS} ms)"
}

# write_results FILE: the whole run as JSON, for people and for a later collection over all nodes.
write_results() {
    local -r file="$1"
    local body="" item name size
    for item in "${RECORDS[@]}"; do body+="${body:+,}"$'\n'"    ${item}"; done
    cf_node_name
    json_text "${REPLY}"
    name="${REPLY}"
    json_text "${CF_CONF[vm_size]}"
    size="${REPLY}"
    cf_write "${file}" 0644 <<JSON
{
  "node": ${name}, "vm_size": ${size}, "size_known": ${CF_SIZE_KNOWN}, "kind": "${KIND}",
  "time": "$(TZ=UTC printf '%(%FT%TZ)T' -1)", "duration_ms": ${DURATION_MS}, "verdict": "${RUN_VERDICT}",
  "checks": [${body}
  ]
}
JSON
}
