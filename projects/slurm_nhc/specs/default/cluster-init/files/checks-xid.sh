#!/usr/bin/env bash
# Faults that the driver writes into the kernel's log: XIDs of GPUs, SXids of NVSwitches. Sourced by checks.sh.
#
# xids-read.awk makes events of the log's records, xids-judge.awk findings of events, by the table xids.tsv. A fault stays
# found for the whole boot: the file of earlier runs has what the journal has lost, what a second time needs, and up to
# where the log was read, so that nobody makes the checks slow or blind by what the kernel prints of their programs.

readonly XID_FILES="${BASH_SOURCE[0]%/*}"
readonly XID_PAST="${CF_STATE_DIR}/health/xids"
readonly XID_GPUS="${CF_ROOT}/run/cycleforge/gpu_addresses"
readonly NVIDIA_PAST="${CF_STATE_DIR}/health/nvidia_devices" NVIDIA_PAST_LINES=1000

# vm_line: the first line of what is kept of this VM, in XID_VM.
XID_VM=""
vm_line() {
    read_line "${CF_ROOT}/sys/class/dmi/id/product_uuid"
    XID_VM="# vm ${REPLY:-unknown}"
}

# find_nvidia_devices: the PCI addresses of NVIDIA's devices, as the log writes them, with "gpu" or "other" in
# NVIDIA_DEVICES; "gone" behind it for one that this VM has had and the bus no longer has. A device that was not there
# before means another host, and what was kept is of no use.
declare -A NVIDIA_DEVICES=()
NVIDIA_FOUND=false
find_nvidia_devices() {
    local device address line text
    local -i lines=0
    local -A now=() kept=()
    if [[ "${NVIDIA_FOUND}" == true ]]; then return; fi
    NVIDIA_FOUND=true
    vm_line
    for device in "${CF_ROOT}"/sys/bus/pci/devices/*; do
        read_line "${device}/vendor"
        if [[ "${REPLY}" != 0x10de ]]; then continue; fi
        same_address "${device##*/}"
        address="${REPLY}"
        read_line "${device}/class"
        if [[ "${REPLY}" == 0x03* ]]; then now["${address}"]=gpu; else now["${address}"]="${now[${address}]:-other}"; fi
    done
    if [[ -f "${NVIDIA_PAST}" && -r "${NVIDIA_PAST}" ]]; then
        while IFS= read -r line && ((++lines < NVIDIA_PAST_LINES)); do
            if ((lines == 1)) && [[ "${line}" != "${XID_VM}" ]]; then break; fi
            if [[ "${line}" =~ ^([0-9a-f:]+)\ (gpu|other)$ ]]; then kept["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"; fi
        done <"${NVIDIA_PAST}"
    fi
    for address in "${!now[@]}"; do
        if [[ -z "${kept[${address}]:-}" ]]; then kept=(); fi
        NVIDIA_DEVICES["${address}"]="${now[${address}]}"
    done
    if ((${#kept[@]} == 0 && ${#now[@]} > 0)); then
        text="${XID_VM}"
        for address in "${!now[@]}"; do text+=$'\n'"${address} ${now[${address}]}"; done
        cf_write "${NVIDIA_PAST}" 0644 <<<"${text}" || true
    fi
    for address in "${!kept[@]}"; do
        if [[ -z "${now[${address}]:-}" ]]; then NVIDIA_DEVICES["${address}"]="${kept[${address}]} gone"; fi
    done
}

# read_xid_events: what xids-read.awk prints, in XID_EVENTS; 1 with the reason in XID_UNREAD. Once per run.
XID_EVENTS="" XID_UNREAD="" XID_READ=false XID_SINCE_S=0
read_xid_events() {
    local past=/dev/null options=""
    if [[ "${XID_READ}" == false ]]; then
        XID_READ=true
        if [[ "${CYCLEFORGE_SINCE_S:-}" =~ ^[0-9]+$ ]]; then XID_SINCE_S="${CYCLEFORGE_SINCE_S}"; fi
        load_xid_past
        find_nvidia_devices
        if [[ -n "${XID_NOTED}" ]]; then past="${XID_PAST}"; fi
        find_xid_mark
        if [[ -n "${XID_MARK}" ]]; then options="--cursor=${XID_MARK}"; fi
        if read_kernel_log xids-read.awk "${options}" "" "since=${XID_SINCE_S}" "devices=${!NVIDIA_DEVICES[*]}" \
            "from=${XID_MARK}" "${XID_FILES}/xids.tsv" "${past}"; then
            if [[ "${OUTPUT}" == *$'\n'* ]]; then XID_EVENTS="${OUTPUT#*$'\n'}"; fi
        else
            XID_UNREAD="${REPLY}"
        fi
    fi
    [[ -z "${XID_UNREAD}" ]]
}

# find_xid_mark: up to where earlier runs have read the journal, in XID_MARK, and in XID_MARK_OF for what that counts: this
# boot, the same start, the same devices. What follows is read in pieces and never left out: a mark is noted together with
# the events before it.
XID_MARK="" XID_MARK_OF=""
readonly XID_CURSOR='[A-Za-z0-9=;]{1,300}'
find_xid_mark() {
    local what of cursor devices
    devices="${!NVIDIA_DEVICES[*]}"
    read_line "${CF_ROOT}/proc/sys/kernel/random/boot_id"
    XID_MARK="" XID_MARK_OF="${REPLY:-unknown} ${XID_SINCE_S} ${devices// /,}"
    while IFS=$'\t' read -r what of cursor; do
        if [[ "${what}" == mark && "${of}" == "${XID_MARK_OF}" && "${cursor}" =~ ^${XID_CURSOR}$ ]]; then XID_MARK="${cursor}"; fi
    done <<<"${XID_NOTED}"
}

# load_xid_past: what earlier runs on this VM have noted, in XID_NOTED; of another VM it says nothing.
XID_NOTED=""
load_xid_past() {
    local first=""
    vm_line
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

# missing_gpus: the GPUs that the bus has, or has had, and nvidia-smi does not list, in REPLY; of each what the driver says.
missing_gpus() {
    local address line listed=" " text="" at said words
    local -i more=0
    if ! ask_smi names --query-gpu=index,pci.bus_id --format=csv,noheader; then
        REPLY=""
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^[0-9]+,\ ([0-9A-Fa-f:.]+)$ ]]; then
            same_address "${BASH_REMATCH[1]}"
            listed+="${REPLY} "
        fi
    done <<<"${OUTPUT}"
    find_nvidia_devices
    while IFS= read -r address; do
        if [[ "${NVIDIA_DEVICES[${address}]:-}" != gpu* || "${listed}" == *" ${address} "* ]]; then continue; fi
        more+=1
        if ((more > 2)); then continue; fi
        text+="${text:+, }missing ${address}"
        if [[ "${NVIDIA_DEVICES[${address}]}" == *gone ]]; then text+=", no longer on the PCI bus"; fi
        read_xid_events || true
        while IFS=$'\t' read -r said at words; do
            if [[ "${said} ${at}" == "said ${address}" ]]; then text+=", the driver says: ${words}"; fi
        done <<<"${XID_EVENTS}"
    done < <(printf '%s\n' "${!NVIDIA_DEVICES[@]}" | sort)
    if ((more > 2)); then text+=", and $((more - 2)) more"; fi
    REPLY="${text}"
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
    local what cure kind code name address device number count first note own="" when stray
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
        stray=""
        if [[ $'\n'"${XID_EVENTS}" =~ $'\nstray\t'([0-9]+) ]]; then stray="${BASH_REMATCH[1]} messages about no device of NVIDIA"; fi
        if [[ -n "${KERNEL_LOG_NOTE}" ]]; then stray+="${stray:+; }${KERNEL_LOG_NOTE}"; fi
        record pass gpu_xid 0 le 0 faults "${stray}"
    fi
}

# note_xids: what later runs need, without what no run needs any more. What the driver says before a mark is not read again.
note_xids() {
    local line mark="${XID_MARK}" said="" text="${XID_VM}"
    if [[ $'\n'"${XID_EVENTS}" =~ $'\nmark\t'(${XID_CURSOR})($'\n'|$) ]]; then
        mark="${BASH_REMATCH[1]}"
        said="${XID_EVENTS}"
    else
        said="${XID_NOTED}"
    fi
    while IFS= read -r line; do
        if [[ "${line}" == past$'\t'* ]]; then text+=$'\n'"${line}"; fi
    done <<<"${XID_FOUND}"
    if [[ -n "${mark}" ]]; then
        while IFS= read -r line; do
            if [[ "${line}" == said$'\t'* ]]; then text+=$'\n'"${line}"; fi
        done <<<"${said}"
        text+=$'\n'"mark"$'\t'"${XID_MARK_OF}"$'\t'"${mark}"
    fi
    if [[ "${text}" != "${XID_NOTED:-${XID_VM}}" ]]; then cf_write "${XID_PAST}" 0644 <<<"${text}"; fi
}

# generation=v100|a100|h100|gb200|other look_back_h=N: for how long warnings and programs' faults are shown. The driver's faults
# in this boot, since the moment that `health.sh repaired` remembered (CYCLEFORGE_SINCE_S).
check_gpu_xid() {
    local events="" asked rows="" measured=yes
    if ! read_xid_events; then
        measured=no
        not_measured gpu_xid "${XID_UNREAD}"
    fi
    XID_FOUND=""
    if [[ $'\n'"${XID_EVENTS}" == *$'\nevent\t'* || "${XID_NOTED}" == *$'\npast\t'* ]]; then
        events="${XID_EVENTS}"
        judge_events "${events}"
        asked="${XID_FOUND}"
        if [[ "${asked}" == *$'need\trows'* ]] && ask_for_rows; then rows="${REPLY}"; fi
        if { [[ "${asked}" == *$'need\tnames'* ]] && ask_for_names; } || [[ -n "${rows}" ]]; then judge_events "${events}" "${rows}"; fi
    fi
    if [[ -n "${XID_FOUND}" || -n "${XID_NOTED}" || $'\n'"${XID_EVENTS}" == *$'\nmark\t'* ]]; then note_xids; fi
    report_xids "${measured}"
}
