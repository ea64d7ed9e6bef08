#!/usr/bin/env bash
# Calls of tools, and what became of them. Sourced by checks.sh.
#
# A tool that was not there, was asked wrongly or had no time has measured nothing. A tool that is there, ran and ended in
# any other way than it should has found something: a node whose CUDA does not initialise shows it in no counter. That is
# decided here and nowhere else.
# shellcheck disable=SC2034 # OUTPUT, OUTCOME and OUTCOME_CURE are results for the files that source this

# seconds_left LIMIT: the smaller of the limit and what is left of the run, in REPLY; 1 when nothing is left.
seconds_left() {
    REPLY=$((CYCLEFORGE_BUDGET_S - SECONDS))
    if ((REPLY > $1)); then REPLY="$1"; fi
    ((REPLY > 0))
}

# run_tool SECONDS COMMAND...: output in OUTPUT, exit code returned; 127 missing, 124 hung, OUT_OF_TIME when the run has no
# time left for it, which says nothing about the tool. What a broken tool prints without end is cut at 4 MB; it ends by
# signal 13 then, because nobody reads on.
#
# A process in a system call that does not return ignores even SIGKILL and keeps whatever it has open, and timeout waits
# for it. So the end is waited for with a limit of our own. It comes behind the output, after a mark.
readonly OUT_OF_TIME=75 LEFT_BEHIND_S=4 END_OF_TOOL=$'\n\x1e'
OUTPUT=""
run_tool() {
    local -r limit_s="$1"
    local granted_s stream="" code=0
    shift
    OUTPUT=""
    command -v "$1" >/dev/null || return 127
    seconds_left "${limit_s}" || return "${OUT_OF_TIME}"
    granted_s="${REPLY}"
    exec {stream}< <(
        exec 2>/dev/null
        timeout --kill-after=2 "${granted_s}" "$@" 2>&1 || code=$?
        printf '%s%s' "${END_OF_TOOL}" "${code}"
    )
    read_stream "${stream}" "$((granted_s + LEFT_BEHIND_S))" || code=$?
    exec {stream}<&-
    if ((code == 0)); then
        if [[ "${OUTPUT}" =~ "${END_OF_TOOL}"([0-9]{1,3})$ ]]; then
            code="${BASH_REMATCH[1]}"
            OUTPUT="${OUTPUT%"${END_OF_TOOL}"*}"
            while [[ "${OUTPUT}" == *$'\n' ]]; do OUTPUT="${OUTPUT%$'\n'}"; done
        else
            code=141
        fi
    fi
    if ((code == 137)); then code=124; fi
    if ((code == 124 && granted_s < limit_s)); then code="${OUT_OF_TIME}"; fi
    return "${code}"
}

# read_stream DESCRIPTOR SECONDS: up to 4 MB in OUTPUT; 124 when neither these nor their end came in time. Most tools print
# little: Bash reads that itself, as each program that starts takes time from jobs, and is too slow for more. Byte by byte,
# because Bash 4.4 loses what it reads in pieces of characters.
read_stream() {
    local -r stream="$1" deadline=$((SECONDS + $2)) little=8192 most=4000000
    local left rest="" code=0
    IFS='' LC_ALL=C read -r -N "${little}" -t "$2" -u "${stream}" OUTPUT || code=$?
    if ((code == 1)); then return 0; fi
    if ((code != 0)); then return 124; fi
    left=$((deadline - SECONDS))
    rest="$(timeout "$((left > 0 ? left : 1))" head --bytes="$((most - little))" <&"${stream}")" || code=$?
    OUTPUT+="${rest}"
    return "${code}"
}

# telling_line: the line of OUTPUT that says most, in REPLY: the first one with an error in it, otherwise the first one.
telling_line() {
    local line first=""
    REPLY=""
    while IFS= read -r line; do
        if [[ -z "${line//[[:space:]]/}" ]]; then continue; fi
        first="${first:-${line}}"
        if [[ "${line,,}" =~ (error|fail|unable|couldn\'t|cannot|invalid|unrecognized|unsupported) ]]; then
            REPLY="${line:0:120}"
            return
        fi
    done <<<"${OUTPUT:0:20000}"
    REPLY="${first:0:120}"
}

# why_not CODE TOOL: words for an exit code of run_tool, in REPLY.
why_not() {
    case "$1" in
        0) REPLY="$2 printed no result" ;;
        124 | 137) REPLY="$2 did not answer in time" ;;
        "${OUT_OF_TIME}") REPLY="no time left for $2, the run has ${CYCLEFORGE_BUDGET_S} s" ;;
        126 | 127)
            telling_line
            if [[ "${OUTPUT}" == *"error while loading shared libraries"* ]]; then
                REPLY="$2 cannot be loaded: ${REPLY}"
            else
                REPLY="$2 is not installed"
            fi
            ;;
        *)
            telling_line
            if (($1 > 128 && $1 < 160)); then
                REPLY="$2 was ended by signal $(($1 - 128))${REPLY:+: ${REPLY}}"
            else
                REPLY="$2 ended with exit code $1${REPLY:+: ${REPLY}}"
            fi
            ;;
    esac
}

# outcome TOOL CODE [RESULT]: OUTCOME is ran, not_measured or failed, with the words in REPLY and what cures a failure in
# OUTCOME_CURE. TOOL is a plain name; RESULT a pattern (ERE) that the output of a tool that ran must have.
OUTCOME="" OUTCOME_CURE=""
outcome() {
    local -r tool="$1" code="$2" result="${3:-}"
    OUTCOME=failed OUTCOME_CURE=reboot
    case "${code}" in
        0) if [[ "${OUTPUT}" =~ ${result} ]]; then OUTCOME=ran; fi ;;
        126 | 127 | "${OUT_OF_TIME}") OUTCOME=not_measured ;;
    esac
    if [[ "${OUTCOME}" == failed ]] && declare -F "outcome_of_${tool//-/_}" >/dev/null; then "outcome_of_${tool//-/_}" "${code}"; fi
    why_not "${code}" "${tool}"
}

# nccl-tests under mpirun. Exit code 6 is wrong usage; an unknown option prints the usage and ends 0.
# Source: NVIDIA/nccl-tests src/common.h, src/common.cu. mpirun that cannot start its ranks has measured nothing: the texts
# are Open MPI's help files (help-orte-rmaps-base.txt, help-orterun.txt).
outcome_of_all_reduce_perf() {
    case "${OUTPUT}" in
        *"USAGE:"* | *"not enough slots available"* | *"unable to find the specified executable"* | \
            *"unable to launch the specified"* | *"attempt to run as root"*) OUTCOME=not_measured ;;
        *) if (($1 == 6)); then OUTCOME=not_measured; fi ;;
    esac
}

# It ends 0 also where it waived the test or does not know it. Source: NVIDIA/nvbandwidth nvbandwidth.cpp
outcome_of_nvbandwidth() {
    case "${OUTPUT}" in
        *"Invalid Arguments"* | *" not found!"*) OUTCOME=not_measured ;;
        *Waived* | *waived*) if (($1 == 0)); then OUTCOME=not_measured; fi ;;
    esac
}

# It ends 1 whatever happened. A build without CUDA does not know GPU memory; a port may belong to somebody else.
# Source: linux-rdma/perftest src/perftest_parameters.c, src/perftest_communication.c
outcome_of_ib_write_bw() {
    case "${OUTPUT}" in
        *"Unsupported memory type"* | *"unrecognized option"* | *"invalid option"* | *"Couldn't listen to port"*)
            OUTCOME=not_measured
            ;;
    esac
}

# The DCGM code modulo 256: 226 a test failed, 205 the GPU is to be isolated, 237 it needs a reset, 238 it is lost, 199 the
# driver did not answer. Every other one is trouble of DCGM itself, as no host engine (235), a second diagnosis (217), an
# unknown test (198), wrong usage (254). DCGM 3 ends 1 for many of them, also for a failed test, which its table shows.
# Source: NVIDIA/DCGM dcgmlib/dcgm_structs.h, dcgmi/main_dcgmi.cpp
readonly DCGMI_FAILED_ROW='\|[^|]*\|[[:space:]]*[Ff]ail'
outcome_of_dcgmi() {
    if [[ "${OUTPUT}" =~ ${DCGMI_FAILED_ROW} ]]; then return; fi
    case "$1" in
        237) OUTCOME_CURE=reset ;;
        205 | 238) OUTCOME_CURE=service ;;
        124 | 199 | 226) ;;
        129 | 1[3-5]?) ;; # a signal
        *) OUTCOME=not_measured ;;
    esac
}

# run_for_result TOOL SECONDS RESULT COMMAND...: 0 when it ran and its output has the pattern RESULT; a failure is tried
# once more. OUTCOME, OUTCOME_CURE and REPLY as of outcome(); a first failure stays one when there is no time for the second.
run_for_result() {
    local -r tool="$1" limit_s="$2" result="$3"
    local code words="" cure=""
    shift 3
    for _ in first second; do
        code=0
        run_tool "${limit_s}" "$@" || code=$?
        outcome "${tool}" "${code}" "${result}"
        if [[ "${OUTCOME}" != failed ]]; then break; fi
        words="${REPLY}" cure="${OUTCOME_CURE}"
    done
    if [[ "${OUTCOME}" == not_measured && -n "${words}" ]]; then OUTCOME=failed OUTCOME_CURE="${cure}" REPLY="${words}"; fi
    [[ "${OUTCOME}" == ran ]]
}

# record_outcome CHECK [WHERE]: a record of what did not run, by OUTCOME and the words in REPLY.
record_outcome() {
    if [[ "${OUTCOME}" == failed ]]; then
        record "${OUTCOME_CURE}" "$1" "" "" "" "" "${2:+$2: }${REPLY}"
    else
        not_measured "$1" "${2:+$2: }${REPLY}"
    fi
}
