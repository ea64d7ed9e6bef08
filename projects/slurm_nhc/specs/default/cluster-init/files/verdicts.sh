#!/usr/bin/env bash
# From measured values to verdicts. Sourced by checks.sh in the engine's process and by results.sh.
#
# Verdicts: pass, warn, fail, not_measured (the tool is missing, hangs or prints no number) and no_baseline (nobody has
# published a limit for this VM size). The last two are never a pass.
#
# What takes a fault away, from the lightest to the worst: heal (its check passes again), reset (the GPUs are reset, which
# on these nodes is a reboot), reboot, service (another VM, or a person who says so). A fail is written with it, in the
# place of the verdict: "record reset gpu_xid ..." fails and needs a reset. "record fail ..." heals.
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
    local verdict="$1" cure="" IFS=' '
    shift
    case "${verdict}" in
        fail) cure=heal ;;
        reset | reboot | service) cure="${verdict}" verdict=fail ;;
    esac
    if [[ "$*" == *[[:cntrl:]]* ]]; then set -- "${@//[[:cntrl:]]/ }"; fi
    IFS="${FIELD}"
    printf '%s\n' "${verdict}${FIELD}$*${FIELD}${cure}" >>"${CYCLEFORGE_ROWS}"
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
    local item last="" value="" passed=""
    shift 5
    for item in "$@"; do
        last="${item}" value="${item#*:}"
        # Counters of healthy GPUs are all the same.
        if [[ -z "${limit}" || "${value:-none}" == "${passed}" ]]; then continue; fi
        if ! cf_compare "${value}" "${relation}" "${limit}"; then break; fi
        passed="${value}"
    done
    if [[ -n "${last}" ]]; then judge "${check}" "${last#*:}" "${relation}" "${limit}" "${unit}" "${severity}" "${last%%:*}"; fi
}

not_measured() { record not_measured "$1" "" "" "" "" "$2"; }
no_baseline() { record no_baseline "$1" "" "" "" "$2" "nobody has published a limit for this VM size"; }

# read_line FILE: its first line in REPLY without a process of its own; empty when it cannot be read.
read_line() {
    REPLY=""
    if [[ -r "$1" ]]; then IFS= read -r REPLY <"$1" 2>/dev/null || true; fi
}
