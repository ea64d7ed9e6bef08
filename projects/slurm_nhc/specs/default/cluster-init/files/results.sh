#!/usr/bin/env bash
# The verdict of a run over its records, and the result files. Sourced by health.sh.

declare -a RECORDS=()
# FAILED: what failed, in words, by its cure. VERDICTS: by check its verdict, or the cure of what failed.
declare -A COUNTS=() FAILED=() VERDICTS=()
# "CHECK FIELD WORDS" of each failure that heals.
declare -a HEALS=()
# UNMEASURED: the checks that could not be measured, in words.
RUN_VERDICT="" RUN_REASON="" RUN_CURE="" UNMEASURED="" KIND="" STARTED_MS=0 DURATION_MS=0

start_results() {
    KIND="$1" RECORDS=() FAILED=() HEALS=() VERDICTS=() RUN_VERDICT="" RUN_REASON="" RUN_CURE="" UNMEASURED=""
    COUNTS=([pass]=0 [warn]=0 [fail]=0 [not_measured]=0 [no_baseline]=0)
    cf_now_ms
    STARTED_MS="${REPLY}"
}

# json_text TEXT: REPLY is a quoted JSON string.
json_text() {
    if [[ "$1" != *[\\\"[:cntrl:]]* ]]; then
        REPLY="\"$1\""
        return
    fi
    local text="${1//\\/\\\\}"
    text="${text//\"/\\\"}"
    # Whatever a tool printed: control characters have no place in a verdict.
    REPLY="\"${text//[[:cntrl:]]/ }\""
}

# add_record ROW: count it, keep it as JSON, log it when somebody should know.
add_record() {
    local line key IFS="${FIELD}"
    set -f
    # shellcheck disable=SC2206 # the fields of a row
    local -a cells=($1)
    set +f
    IFS=$' \t\n'
    local -r verdict="${cells[0]:-}" check="${cells[1]:-}" value="${cells[2]:-}" relation="${cells[3]:-}" limit="${cells[4]:-}"
    local -r unit="${cells[5]:-}" detail="${cells[6]:-}"
    local cure="${cells[7]:-heal}"
    if [[ -z "${COUNTS[${verdict:-none}]:-}" ]]; then return 0; fi
    COUNTS["${verdict}"]=$((${COUNTS[${verdict}]} + 1))
    # Nobody is told in words of what is as it should be.
    if [[ "${verdict}" != @(pass|no_baseline) ]]; then
        describe "${check}" "${value}" "${relation}" "${limit}" "${unit}" "${detail}"
    fi
    # Of a check with several records the failed one counts, of several of these the worst.
    if [[ "${verdict}" == fail ]]; then
        FAILED["${cure}"]+="${FAILED[${cure}]:+; }${REPLY}"
        if [[ "${cure}" == heal ]]; then HEALS+=("${check}${FIELD}${REPLY}"); fi
        if [[ "${VERDICTS[${check}]:-}" != @(heal|reset|reboot|service) ]] || is_worse "${cure}" "${VERDICTS[${check}]}"; then
            VERDICTS["${check}"]="${cure}"
        fi
    else
        cure=""
        if [[ "${VERDICTS[${check}]:-}" != @(heal|reset|reboot|service) ]]; then VERDICTS["${check}"]="${verdict}"; fi
    fi
    if [[ "${verdict}" == not_measured && ", ${UNMEASURED}," != *", ${check},"* ]]; then UNMEASURED+="${UNMEASURED:+, }${check}"; fi
    if [[ "${verdict}" == @(fail|warn|not_measured) ]]; then cf_log "${verdict}: ${REPLY}"; fi
    line="{\"check\": \"${check}\", \"verdict\": \"${verdict}\""
    if [[ "${value}${relation}${limit}${unit}${detail}" == *[\\\"[:cntrl:]]* ]]; then
        for key in "value ${value}" "relation ${relation}" "limit ${limit}" "unit ${unit}" "detail ${detail}"; do
            json_text "${key#* }"
            line+=", \"${key%% *}\": ${REPLY}"
        done
    else
        line+=", \"value\": \"${value}\", \"relation\": \"${relation}\", \"limit\": \"${limit}\", \"unit\": \"${unit}\""
        line+=", \"detail\": \"${detail}\""
    fi
    RECORDS+=("${line}${cure:+, \"cure\": \"${cure}\"}}")
}

# waive CHECK: its failure, which heals, only warns: most nodes that measured it have the same.
waive() {
    local place row
    local -r start="{\"check\": \"$1\", \"verdict\": " cure=', "cure": "heal"}'
    for place in "${!RECORDS[@]}"; do
        row="${RECORDS[place]}"
        if [[ "${row}" != "${start}\"fail\""* ]]; then continue; fi
        RECORDS[place]="${start}\"warn\"${row#"${start}\"fail\""}"
        RECORDS[place]="${RECORDS[place]%"${cure}"}}"
        COUNTS[fail]=$((COUNTS[fail] - 1)) COUNTS[warn]=$((COUNTS[warn] + 1))
    done
    VERDICTS["$1"]=warn
    unset -v 'FAILED[heal]'
    for place in "${!HEALS[@]}"; do
        row="${HEALS[place]}"
        if [[ "${row%%"${FIELD}"*}" == "$1" ]]; then
            unset -v 'HEALS[place]'
        else
            FAILED[heal]+="${FAILED[heal]:+; }${row#*"${FIELD}"}"
        fi
    done
}

# conclude: the verdict of the run and, when it failed, the reason and the worst cure. What could not be measured is a
# reason too where the definition says so, with the verdict incomplete.
conclude() {
    local cure
    RUN_REASON="" RUN_CURE=""
    if ((${#FAILED[@]} > 0)); then
        RUN_VERDICT=fail
        for cure in service reboot reset heal; do
            if [[ -z "${FAILED[${cure}]:-}" ]]; then continue; fi
            RUN_CURE="${RUN_CURE:-${cure}}" RUN_REASON+="${RUN_REASON:+; }${FAILED[${cure}]}"
        done
    elif [[ "${COUNTS[not_measured]}" != 0 || "${COUNTS[pass]}" == 0 || "${CF_CONF[size_known]}" == false ]]; then
        RUN_VERDICT=incomplete
        if [[ "${CF_CONF[unmeasured]} ${COUNTS[not_measured]}" == "drain "[1-9]* ]]; then
            RUN_CURE=heal RUN_REASON="could not be measured: ${UNMEASURED}"
        fi
    elif [[ "${COUNTS[warn]}" != 0 ]]; then
        RUN_VERDICT=warn
    else
        RUN_VERDICT=pass
    fi
    # Slurm shows the reason in one line; the checks have the rest.
    if ((${#RUN_REASON} > 300)); then RUN_REASON="${RUN_REASON:0:297}..."; fi
}

log_run() {
    cf_now_ms
    DURATION_MS=$((REPLY - STARTED_MS))
    cf_log "${KIND}: ${RUN_VERDICT} by ${ENGINE}; ${COUNTS[pass]} pass, ${COUNTS[warn]} warn, ${COUNTS[fail]} fail," \
        "${COUNTS[not_measured]} not measured, ${COUNTS[no_baseline]} without baseline (${DURATION_MS} ms)"
}

# physical_host: the machine below this VM, in REPLY, empty when Hyper-V does not tell. Several sick nodes on one host are
# one fault. Records of 512 + 2048 bytes, padded with zeros. It changes only with a new boot.
physical_host() {
    local -r pool="${CF_ROOT}/var/lib/hyperv/.kvp_pool_3" cache="${RUN_DIR}/physical_host"
    REPLY=""
    if [[ ! -r "${pool}" ]]; then return 0; fi
    if [[ ! -e "${cache}" ]]; then
        tr -s '\0' '\n' <"${pool}" | grep -a -x -A 1 PhysicalHostNameFullyQualified | tail -n 1 >"${cache}" || true
    fi
    read -r REPLY <"${cache}" || true
    if [[ ! "${REPLY}" =~ ^[A-Za-z0-9._-]+$ ]]; then REPLY=""; fi
}

# keep_results FILE: the whole run as JSON, for people and for a later collection over all nodes; with a copy for the cluster.
# A disk that takes no more loses the result, never half of it, and stops nothing.
keep_results() {
    if ! write_results "$1"; then
        rm -f "${1%/*}/.${1##*/}.cycleforge."* 2>/dev/null || true
        cf_warn "$1 cannot be written; the result before it stays"
        return 0
    fi
    share_results "$1"
}

write_results() {
    local -r file="$1"
    local body="" item
    local -A text=()
    for item in "${RECORDS[@]}"; do body+="${body:+,}"$'\n'"    ${item}"; done
    cf_node_name
    NODE_NAME="${REPLY}"
    json_text "${NODE_NAME}"
    text[node]="${REPLY}"
    json_text "${CF_CONF[vm_size]}"
    text[size]="${REPLY}"
    physical_host
    json_text "${REPLY}"
    text[host]="${REPLY}"
    boot_id
    json_text "${REPLY}"
    text[boot]="${REPLY}"
    json_text "${RUN_REASON}"
    cf_write "${file}" 0644 <<JSON
{
  "format": 1, "node": ${text[node]}, "vm_size": ${text[size]}, "size_known": ${CF_CONF[size_known]}, "kind": "${KIND}",
  "engine": "${ENGINE}", "boot_id": ${text[boot]}, "physical_host": ${text[host]},
  "time": "$(TZ=UTC printf '%(%FT%TZ)T' -1)", "duration_ms": ${DURATION_MS}, "verdict": "${RUN_VERDICT}",
  "reason": ${REPLY}, "cure": "${RUN_CURE}",
  "checks": [${body}
  ]
}
JSON
}
NODE_NAME=""

# share_results FILE: a copy for the whole cluster, where the definition names a folder and it is there. A shared file
# system that hangs must not hold the checks.
share_results() {
    local -r folder="${CF_CONF[results]:-}"
    local -r target="${CF_ROOT}${folder}/${NODE_NAME}.${KIND}.json"
    if [[ -z "${folder}" ]]; then return 0; fi
    # Every node can write there: with --remove-destination cp opens only what does not exist, so it follows no link of another.
    # shellcheck disable=SC2016 # the inner shell expands it
    timeout --kill-after=1 5 bash -c '[[ -d "${2%/*}" && ! -L "${2%/*}" ]] || exit 0
        { cp -T --remove-destination "$1" "$2.new" && mv -fT "$2.new" "$2"; } || { rm -f "$2.new"; exit 1; }' share "$1" "${target}" ||
        cf_log "the result could not be copied to ${folder}" >&2
}
