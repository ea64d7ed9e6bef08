#!/usr/bin/env bash
# From measured values to verdicts. Sourced by checks.sh in the engine's process and by results.sh.
#
# Verdicts: pass, warn, fail, not_measured (the tool is missing, hangs or prints no number) and no_baseline (nobody has
# published a limit for this VM size). The last two are never a pass.
#
# What takes a fault away, from the lightest to the worst: heal (its check passes again), reset (the GPUs are reset, which
# on these nodes is a reboot), reboot, service (another VM, or a person who says so). A fail is written with it, in the
# place of the verdict: "record reset gpu_xid …" fails and needs a reset. "record fail …" heals.
#
# Each record is one line of CYCLEFORGE_ROWS, fields separated by the ASCII unit separator, written at once: what was
# measured before a run is killed stays measured.
# shellcheck disable=SC2034 # OUTPUT is a result for the file that sources this

readonly FIELD=$'\x1f'
FAILED_TEXT=""

relation_words() {
    case "$1" in
        ge) REPLY="at least" ;;
        le) REPLY="at most" ;;
        lt) REPLY="below" ;;
        *) REPLY="expected" ;;
    esac
}

# describe CHECK VALUE RELATION LIMIT UNIT DETAIL: words for people and for the reason of a drain, in REPLY.
describe() {
    local text="$1"
    if [[ -n "$2" ]]; then text+=" $2${5:+ $5}"; fi
    if [[ -n "$4" ]]; then
        relation_words "$3"
        text+=", ${REPLY} $4${5:+ $5}"
    fi
    if [[ -n "$6" ]]; then text+=" ($6)"; fi
    REPLY="${text}"
}

# record VERDICT|CURE CHECK VALUE RELATION LIMIT UNIT DETAIL: the row has the cure of a fail in its last field.
record() {
    local verdict="$1" cure="" word row
    shift
    case "${verdict}" in
        fail) cure=heal ;;
        reset | reboot | service) cure="${verdict}" verdict=fail ;;
    esac
    row="${verdict}"
    for word in "$@" "${cure}"; do row+="${FIELD}${word//[[:cntrl:]]/ }"; done
    printf '%s\n' "${row}" >>"${CYCLEFORGE_ROWS}"
    if [[ "${verdict}" == fail ]]; then
        describe "$@"
        FAILED_TEXT+="${FAILED_TEXT:+; }${REPLY}"
    fi
}

# judge CHECK VALUE RELATION LIMIT UNIT [SEVERITY [DETAIL]]: compare as numbers and record. SEVERITY is that of a miss: warn,
# fail (the default), or the cure that a fail needs.
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

# judge_floor CHECK VALUE FLOOR WARN_BELOW UNIT [DETAIL]: below the floor fails, below the warning band warns.
judge_floor() {
    local -r check="$1" value="$2" floor="$3" warn_below="$4" unit="$5" detail="${6:-}"
    if [[ -n "${floor}" && -n "${warn_below}" ]] && cf_compare "${value}" ge "${floor}" && cf_compare "${value}" lt "${warn_below}"; then
        judge "${check}" "${value}" ge "${warn_below}" "${unit}" warn "${detail:+${detail}, }near the limit of ${floor} ${unit}"
    else
        judge "${check}" "${value}" ge "${floor}" "${unit}" fail "${detail}"
    fi
}

# worst CHECK RELATION LIMIT UNIT SEVERITY NAME:VALUE...: one record for all, for the first that misses the limit.
worst() {
    local -r check="$1" relation="$2" limit="$3" unit="$4" severity="$5"
    local item last=""
    shift 5
    for item in "$@"; do
        last="${item}"
        if [[ -n "${limit}" ]] && ! cf_compare "${item#*:}" "${relation}" "${limit}"; then break; fi
    done
    if [[ -n "${last}" ]]; then judge "${check}" "${last#*:}" "${relation}" "${limit}" "${unit}" "${severity}" "${last%%:*}"; fi
}

not_measured() { record not_measured "$1" "" "" "" "" "$2"; }
no_baseline() { record no_baseline "$1" "" "" "" "$2" "nobody has published a limit for this VM size"; }

# ---------------------------------------------------------------- tools

# seconds_left LIMIT: the smaller of the limit and what is left of the run, in REPLY; 1 when nothing is left.
seconds_left() {
    REPLY=$((CYCLEFORGE_BUDGET_S - SECONDS))
    if ((REPLY > $1)); then REPLY="$1"; fi
    ((REPLY > 0))
}

# run_tool SECONDS COMMAND...: output in OUTPUT, exit code returned; 127 missing, 124 hung, OUT_OF_TIME when the run has no
# time left for it, which says nothing about the tool. What a broken tool prints without end is cut at 4 MB.
readonly OUT_OF_TIME=75
OUTPUT=""
run_tool() {
    local -r limit_s="$1"
    local granted_s code=0
    shift
    OUTPUT=""
    command -v "$1" >/dev/null || return 127
    seconds_left "${limit_s}" || return "${OUT_OF_TIME}"
    granted_s="${REPLY}"
    { OUTPUT="$(
        set +o pipefail
        timeout --kill-after=2 "${granted_s}" "$@" 2>&1 | head --bytes=4000000
        exit "${PIPESTATUS[0]}"
    )"; } 2>/dev/null || code=$?
    if ((code == 137)); then code=124; fi
    if ((code == 124 && granted_s < limit_s)); then code="${OUT_OF_TIME}"; fi
    return "${code}"
}

# why_not CODE TOOL: words for an exit code of run_tool, in REPLY.
why_not() {
    case "$1" in
        124 | 137) REPLY="$2 did not answer in time" ;;
        126 | 127) REPLY="$2 is not installed" ;;
        "${OUT_OF_TIME}") REPLY="no time left for $2, the run has ${CYCLEFORGE_BUDGET_S} s" ;;
        *) REPLY="$2 ended with exit code $1: ${OUTPUT:0:80}" ;;
    esac
}

# read_line FILE: its first line in REPLY without a process of its own; empty when it cannot be read.
read_line() {
    REPLY=""
    if [[ -r "$1" ]]; then IFS= read -r REPLY <"$1" 2>/dev/null || true; fi
}
