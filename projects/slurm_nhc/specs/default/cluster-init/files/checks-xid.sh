#!/usr/bin/env bash
# Faults that the driver writes into the kernel's log: XIDs of GPUs, SXids of NVSwitches. Sourced by checks.sh.
#
# xids-read.awk makes events of the log's lines, xids-judge.awk findings of events, by the table xids.tsv. A fault stays
# found for the whole boot: the file of earlier runs has what the journal has lost, and what a second time needs.

readonly XID_FILES="${BASH_SOURCE[0]%/*}"
readonly XID_PAST="${CF_STATE_DIR}/health/xids"
readonly XID_GPUS="${CF_ROOT}/run/cycleforge/gpu_addresses"
readonly XID_LOG_S=10
# A pipe of its own: what a node with a hundred thousand lines prints never goes through Bash.
# shellcheck disable=SC2016 # the inner shell expands it
readonly XID_PIPE='set -o pipefail; files="$1" past="$2" btime="$3" since="$4"; shift 4
    "$@" 2>/dev/null | LC_ALL=C awk -v btime="${btime}" -v since="${since}" -f "${files}/xids-read.awk" "${files}/xids.tsv" "${past}" -'

# boot_time: when the kernel started, epoch seconds in REPLY; dmesg counts from it.
boot_time() {
    local key value
    REPLY=0
    while read -r key value _; do
        if [[ "${key}" == btime && "${value}" =~ ^[0-9]+$ ]]; then REPLY="${value}"; fi
    done <"${CF_ROOT}/proc/stat" || true
} 2>/dev/null

# read_kernel_log SINCE_S: the events in OUTPUT. A boot has printed kernel messages, so a log without any says nothing; 1
# with the reason in REPLY.
read_kernel_log() {
    local btime code=0 program past=/dev/null
    boot_time
    btime="${REPLY}"
    if [[ -n "${XID_NOTED}" ]]; then past="${XID_PAST}"; fi
    for program in journalctl dmesg; do
        local -a command=(journalctl --dmesg --all --no-pager --quiet --output=short-unix)
        if [[ "${program}" == dmesg ]]; then command=(dmesg --kernel); fi
        code=0
        run_tool "${XID_LOG_S}" bash -c "${XID_PIPE}" read "${XID_FILES}" "${past}" "${btime}" "$1" "${command[@]}" || code=$?
        if ((code == 0)) && [[ "${OUTPUT%%$'\n'*}" =~ ^lines$'\t'[1-9] ]]; then return 0; fi
    done
    OUTPUT="" # of the reader, not of the program that failed
    why_not "${code}" "the kernel log"
    if ((code == 0)); then REPLY="neither journalctl nor dmesg shows a message of the kernel"; fi
    return 1
}

# load_xid_past: what earlier runs on this VM have noted, in XID_NOTED; of another VM it says nothing.
XID_NOTED="" XID_VM=""
load_xid_past() {
    local first=""
    XID_NOTED=""
    read_line "${CF_ROOT}/sys/class/dmi/id/product_uuid"
    XID_VM="# vm ${REPLY:-unknown}"
    if [[ -r "${XID_PAST}" ]]; then
        IFS= read -r first <"${XID_PAST}" || true
        if [[ "${first}" == "${XID_VM}" ]]; then XID_NOTED="$(<"${XID_PAST}")"; fi
    fi
}

# judge_events EVENTS [ROWS]: the findings in XID_FOUND. Told of GPUs and row remaps as far as they are known.
XID_FOUND=""
judge_events() {
    local -r events="$1" rows="${2:-}"
    local now boot gpus="" job="" job_gpus="" job_start=0
    # CYCLEFORGE_NOW_S is for the tests.
    printf -v now '%(%s)T' -1
    read_line "${CF_ROOT}/proc/sys/kernel/random/boot_id"
    boot="${REPLY:-unknown}"
    if [[ -r "${XID_GPUS}" ]]; then gpus="$(<"${XID_GPUS}")"; fi
    # Slurm gives them to an epilog.
    if [[ "${SLURM_JOB_ID:-}" =~ ^[0-9]+$ ]]; then job="${SLURM_JOB_ID}"; fi
    if [[ "${SLURM_JOB_GPUS:-}" =~ ^[0-9]+(,[0-9]+)*$ ]]; then job_gpus="${SLURM_JOB_GPUS}"; fi
    if [[ "${SLURM_JOB_START_TIME:-}" =~ ^[0-9]+$ ]]; then job_start="${SLURM_JOB_START_TIME}"; fi
    XID_FOUND="$(LC_ALL=C awk -v generation="${GIVEN[generation]:-other}" -v boot="${boot}" -v now="${CYCLEFORGE_NOW_S:-${now}}" \
        -v since="${XID_SINCE_S}" -v look_back_h="${GIVEN[look_back_h]:-24}" -v job="${job}" -v job_gpus="${job_gpus}" \
        -v job_start="${job_start}" -f "${XID_FILES}/xids-judge.awk" "${XID_FILES}/xids.tsv" - \
        <<<"${gpus}"$'\n'"${rows}"$'\n'"${XID_NOTED}"$'\n'"${events}")"
}

# same_address TEXT: an address of nvidia-smi as the log writes it, in REPLY.
same_address() {
    REPLY="${1,,}"
    REPLY="${REPLY%.*}"
    while [[ "${REPLY}" =~ ^0[0-9a-f]{4,}: ]]; do REPLY="${REPLY#0}"; done
}

# ask_for_names: index and address of each GPU, kept for this boot; a lost GPU is not in a later list.
ask_for_names() {
    local line number text=""
    if [[ -e "${XID_GPUS}" ]]; then return 1; fi
    ask_smi names --query-gpu=index,pci.bus_id --format=csv,noheader || true
    while IFS= read -r line; do
        if [[ "${line}" =~ ^([0-9]+),\ ([0-9A-Fa-f:.]+)$ ]]; then
            number="${BASH_REMATCH[1]}"
            same_address "${BASH_REMATCH[2]}"
            text+="gpu"$'\t'"${number}"$'\t'"${REPLY}"$'\n'
        fi
    done <<<"${OUTPUT}"
    [[ -n "${text}" ]] && cf_write "${XID_GPUS}" 0644 <<<"${text%$'\n'}"
}

# ask_for_rows: row remaps of each GPU in REPLY.
ask_for_rows() {
    local line text=""
    local -a field=()
    ask_smi rows --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader,nounits || true
    while IFS= read -r line; do
        IFS=',' read -r -a field <<<"${line// /}"
        if [[ "${field[0]:-}" =~ ^[0-9A-Fa-f:.]+$ ]] && ((${#field[@]} == 3)); then
            same_address "${field[0]}"
            text+="rows"$'\t'"${REPLY}"$'\t'"${field[1]}"$'\t'"${field[2]}"$'\n'
        fi
    done <<<"${OUTPUT}"
    REPLY="${text}"
    [[ -n "${text}" ]]
}

# xid_words KIND CODE NAME ADDRESS DEVICE INDEX COUNT: one finding for people, in REPLY; at most 128 characters.
xid_words() {
    local -r kind="$1" code="$2" name="$3" address="$4" device="$5" number="$6" count="$7"
    local text="XID ${code}" place="GPU (PCI ${address})"
    if [[ "${kind}" == sxid ]]; then text="SXid ${code}" place="NVSwitch ${device} (PCI ${address})"; fi
    if [[ "${kind}" == unread ]]; then text="XID"; fi
    if [[ "${name}" != - ]]; then text+=" ${name}"; fi
    if [[ "${number}" != - ]]; then place="GPU ${number} (PCI ${address})"; fi
    REPLY="${text} on ${place}"
    if ((count > 1)); then REPLY+=", ${count} times"; fi
    REPLY="${REPLY:0:128}"
}

# report_xids MEASURED: one record per GPU and code, or one pass; what programs did to themselves is only mentioned.
report_xids() {
    local -r measured="$1"
    local what cure kind code name address device number count first note own="" when
    local -i findings=0
    while IFS=$'\t' read -r what cure kind code name address device number count first note; do
        case "${what}" in
            find)
                findings+=1
                xid_words "${kind}" "${code}" "${name}" "${address}" "${device}" "${number}" "${count}"
                TZ=UTC printf -v when '%(%FT%TZ)T' "${first}"
                if [[ "${note}" == - ]]; then note=""; fi
                record "${cure}" gpu_xid "${REPLY}" "" "" "" "first at ${when}${note:+; ${note}}"
                ;;
            app) # the fields are code, address, index, count
                own+="${own:+, }XID ${cure} on GPU ${code/#-/${kind}}, ${name} times"
                ;;
        esac
    done <<<"${XID_FOUND}"
    if [[ -n "${own}" ]]; then
        record pass gpu_xid "" "" "" "" "only programs failed: ${own:0:400}"
    elif [[ "${measured}" == yes ]] && ((findings == 0)); then
        record pass gpu_xid 0 le 0 faults ""
    fi
}

# note_xids: what later runs need, without what no run needs any more.
note_xids() {
    local line text="${XID_VM}"
    while IFS= read -r line; do
        if [[ "${line}" == past$'\t'* ]]; then text+=$'\n'"${line}"; fi
    done <<<"${XID_FOUND}"
    if [[ "${text}" != "${XID_NOTED:-${XID_VM}}" ]]; then cf_write "${XID_PAST}" 0644 <<<"${text}"; fi
}

# generation=v100|a100|h100|gb200|other look_back_h=N: for how long warnings and programs' faults are shown. The driver's faults
# in this boot, since the moment that `health.sh repaired` remembered (CYCLEFORGE_SINCE_S).
check_gpu_xid() {
    local events="" asked rows="" measured=yes
    local XID_SINCE_S=0
    if [[ "${CYCLEFORGE_SINCE_S:-}" =~ ^[0-9]+$ ]]; then XID_SINCE_S="${CYCLEFORGE_SINCE_S}"; fi
    load_xid_past
    if read_kernel_log "${XID_SINCE_S}"; then
        if [[ "${OUTPUT}" == *$'\n'* ]]; then events="${OUTPUT#*$'\n'}"; fi
    else
        measured=no
        not_measured gpu_xid "${REPLY}"
    fi
    XID_FOUND=""
    if [[ -n "${events}" || "${XID_NOTED}" == *$'\n'* ]]; then
        judge_events "${events}"
        asked="${XID_FOUND}"
        if [[ "${asked}" == *$'need\trows'* ]] && ask_for_rows; then rows="${REPLY}"; fi
        if { [[ "${asked}" == *$'need\tnames'* ]] && ask_for_names; } || [[ -n "${rows}" ]]; then judge_events "${events}" "${rows}"; fi
        note_xids
    fi
    report_xids "${measured}"
}
