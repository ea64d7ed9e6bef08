#!/usr/bin/env bash
# The kernel's log, as records: kernel-log.awk says why. Sourced by checks.sh.
# shellcheck disable=SC2034 # KERNEL_LOG_NOTE is a result for the files that source this

readonly KERNEL_LOG_FILES="${BASH_SOURCE[0]%/*}" KERNEL_LOG_S=10
# Pipes of their own: what a node with a hundred thousand records prints never goes through Bash. Any user can make the kernel
# print a thousand records a second, so a journal that is too long for one run is read in pieces. Behind its last record
# /dev/kmsg lets a reader wait for the next one, so a read that ran out of time has read everything; where records were
# overwritten meanwhile a read fails once, and the next one goes on with the oldest that is left.
# shellcheck disable=SC2016 # the inner shell expands them
readonly KERNEL_LOG_PIPE='source="$1" limit_s="$2" options="$3"; shift 3
    {
        if [[ "${source}" == journal ]]; then
            timeout --kill-after=1 "${limit_s}" journalctl --dmesg --all --no-pager --quiet --output=json \
                --output-fields=MESSAGE,SYSLOG_FACILITY,_KERNEL_DEVICE ${options}
        else
            timeout 3 bash -c "until cat; do echo lost; done" <"${source}"
        fi
        printf "\nend %d\n" "$?"
    } 2>/dev/null | LC_ALL=C awk "$@" -'

# boot_time: when the kernel started, epoch seconds in REPLY; /dev/kmsg counts from it.
boot_time() {
    local key value
    REPLY=0
    while read -r key value _; do
        if [[ "${key}" == btime && "${value}" =~ ^[0-9]+$ ]]; then REPLY="${value}"; fi
    done <"${CF_ROOT}/proc/stat" || true
} 2>/dev/null

# read_kernel_log READER FIRST SECOND [NAME=VALUE...] [FILE...]: what this reader prints, in OUTPUT, below its first line
# `records N`. FIRST: options of journalctl, without blanks in a word; SECOND: others, where these show no record. A boot has
# printed kernel messages, so a log without any says nothing; 1 with the reason in REPLY. Words for a log that was not
# read whole in KERNEL_LOG_NOTE.
KERNEL_LOG_NOTE=""
read_kernel_log() {
    local -r reader="${KERNEL_LOG_FILES}/$1" first="$2" second="$3"
    local source options btime limit_s reason="" code=0
    local -a variables=() files=() tries=("journal ${first}")
    shift 3
    boot_time
    btime="${REPLY}"
    while (($# > 0)); do
        if [[ "$1" =~ ^[a-z]+= ]]; then variables+=(-v "$1"); else files+=("$1"); fi
        shift
    done
    if [[ "${first}" != "${second}" ]]; then tries+=("journal ${second}"); fi
    KERNEL_LOG_NOTE=""
    for source in "${tries[@]}" "${CF_ROOT}/dev/kmsg "; do
        code=0 options="${source#* }"
        seconds_left "${KERNEL_LOG_S}" || true
        limit_s=$((REPLY > 3 ? REPLY - 2 : 1))
        run_tool "${KERNEL_LOG_S}" bash -c "${KERNEL_LOG_PIPE}" read "${source%% *}" "${limit_s}" "${options}" \
            -v "btime=${btime}" "${variables[@]}" \
            -f "${KERNEL_LOG_FILES}/kernel-log.awk" -f "${reader}" "${files[@]}" || code=$?
        if ((code == 0)) && [[ "${OUTPUT%%$'\n'*}" =~ ^records$'\t'[1-9] ]]; then
            if [[ "${OUTPUT}"$'\n' == *$'\n'lost$'\n'* ]]; then
                KERNEL_LOG_NOTE="the kernel log has lost records while it was read"
            elif [[ "${source}" == journal* && "${OUTPUT}"$'\n' == *$'\n'ended$'\t'124$'\n'* ]]; then
                KERNEL_LOG_NOTE="the kernel log is too long to be read at once"
            fi
            return 0
        fi
        if ((code != 0)); then
            why_not "${code}" "the kernel log"
            reason="${REPLY}"
        elif [[ "${source}" == journal* && "${OUTPUT}"$'\n' == *$'\n'ended$'\t'124$'\n'* ]]; then
            reason="the kernel log did not answer in time"
        fi
    done
    OUTPUT="" # of the reader, not of the program that failed
    REPLY="${reason:-neither journalctl nor /dev/kmsg shows a message of the kernel}"
    return 1
}
