#!/usr/bin/env bash
# The kernel's log, as records: kernel-log.awk says why. Sourced by checks.sh.

readonly KERNEL_LOG_FILES="${BASH_SOURCE[0]%/*}" KERNEL_LOG_S=10
# Pipes of their own: what a node with a hundred thousand records prints never goes through Bash. Behind its last record
# /dev/kmsg lets a reader wait for the next one, so a read that ran out of time has read everything; it fails when records
# were overwritten meanwhile. The reader of records looks at the code.
# shellcheck disable=SC2016 # the inner shell expands them
readonly KERNEL_LOG_PIPE='source="$1"; shift
    if [[ "${source}" == journal ]]; then
        set -o pipefail
        journalctl --dmesg --all --no-pager --quiet --output=json \
            --output-fields=MESSAGE,SYSLOG_FACILITY,_KERNEL_DEVICE 2>/dev/null | LC_ALL=C awk "$@" -
    else
        {
            timeout 3 cat "${source}" 2>/dev/null
            printf "end %d\n" "$?"
        } | LC_ALL=C awk "$@" -
    fi'

# boot_time: when the kernel started, epoch seconds in REPLY; /dev/kmsg counts from it.
boot_time() {
    local key value
    REPLY=0
    while read -r key value _; do
        if [[ "${key}" == btime && "${value}" =~ ^[0-9]+$ ]]; then REPLY="${value}"; fi
    done <"${CF_ROOT}/proc/stat" || true
} 2>/dev/null

# read_kernel_log READER [NAME=VALUE...] [FILE...]: what this reader prints, in OUTPUT, below its first line `records N`. A boot
# has printed kernel messages, so a log without any says nothing; 1 with the reason in REPLY.
read_kernel_log() {
    local -r reader="${KERNEL_LOG_FILES}/$1"
    local source btime code=0
    local -a variables=() files=()
    shift
    boot_time
    btime="${REPLY}"
    while (($# > 0)); do
        if [[ "$1" =~ ^[a-z]+= ]]; then variables+=(-v "$1"); else files+=("$1"); fi
        shift
    done
    for source in journal "${CF_ROOT}/dev/kmsg"; do
        code=0
        run_tool "${KERNEL_LOG_S}" bash -c "${KERNEL_LOG_PIPE}" read "${source}" -v "btime=${btime}" "${variables[@]}" \
            -f "${KERNEL_LOG_FILES}/kernel-log.awk" -f "${reader}" "${files[@]}" || code=$?
        if ((code == 0)) && [[ "${OUTPUT%%$'\n'*}" =~ ^records$'\t'[1-9] ]]; then return 0; fi
    done
    OUTPUT="" # of the reader, not of the program that failed
    why_not "${code}" "the kernel log"
    if ((code == 0)); then REPLY="neither journalctl nor /dev/kmsg shows a message of the kernel"; fi
    return 1
}
