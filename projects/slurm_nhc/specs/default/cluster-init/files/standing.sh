#!/usr/bin/env bash
# What stands against this node: the failures of its runs that nothing has lifted yet. Sourced by health.sh.
#
# They lie on the node's disk and not in Slurm, because others resume nodes too: healthagent when its own errors are gone,
# an administrator, a restart of Slurm with a lost state. The prolog refuses jobs as long as anything stands.
#
# One file, lines KEY=VALUE. For readers: state (sick, clear), the worst cure with its kind, since, boot and reason, and
# who drained the node (drain: ours, theirs, none). For health.sh: one line "found=KIND CURE SINCE BOOT REASON" per kind
# (quick, deep) and cure (verdicts.sh), drain_reason and drain_cure as Slurm got them, passes (quick runs in a row without
# a failure), refused (when a hook of ours last made Slurm drain), retested (when a drain by somebody's epilog was last looked
# into), repaired (when a person last said so). Times are seconds since 1970.
#
# The file belongs to a VM: what is found under another vmId is of no VM that exists, and is forgotten.
#
# The checks get CYCLEFORGE_SINCE_S, the moment of `repaired` (0: never): what a log or a counter tells from before it must
# not fail again.

readonly STANDING="${CF_STATE_DIR}/health/standing"
# Where the disk takes no more, the newest state is here; it is removed as soon as the disk has it.
readonly STANDING_RUN="${CF_ROOT}/run/cycleforge/standing"
readonly CURES=(service reboot reset heal) KINDS=(deep quick)
readonly PASSES_TO_RESUME=2 STANDING_LENGTH=300
readonly VM_ID_URL='http://169.254.169.254/metadata/instance/compute/vmId?api-version=2021-02-01&format=text'

# FOUND: "KIND CURE" -> "SINCE BOOT REASON". NOTES: the other keys.
declare -A FOUND=() NOTES=()
VM_ID="" PRODUCT_UUID="" STANDING_CURE="" STANDING_KEY=""

# ---------------------------------------------------------------- the VM

# know_vm: VM_ID as instance metadata has it (empty where nobody answers) and PRODUCT_UUID. The answer is kept for the boot.
# With "asked" nobody is asked: a prolog has no time for it.
know_vm() {
    local -r cache="${RUN_DIR}/vm_id"
    read_line "${CF_ROOT}/sys/class/dmi/id/product_uuid"
    PRODUCT_UUID="${REPLY,,}"
    if [[ -n "${VM_ID}" ]]; then return; fi
    read_line "${cache}"
    VM_ID="${REPLY}"
    if [[ -n "${VM_ID}" || "${1:-}" == asked ]] || ! command -v curl >/dev/null; then return; fi
    REPLY="$(curl --silent --fail --noproxy '*' --max-time 2 --header Metadata:true "${VM_ID_URL}" || true)"
    REPLY="${REPLY,,}"
    if [[ ! "${REPLY}" =~ ^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$ ]]; then return; fi
    VM_ID="${REPLY}"
    cf_write "${cache}" 0644 <<<"${VM_ID}" || true
}

# is_other_vm VM_ID PRODUCT_UUID: whether these are not this VM's. What is not known on one of the sides proves nothing.
is_other_vm() {
    if [[ -n "$1" && -n "${VM_ID}" ]]; then
        [[ "$1" != "${VM_ID}" ]]
    else
        [[ -n "$2" && -n "${PRODUCT_UUID}" && "$2" != "${PRODUCT_UUID}" ]]
    fi
}

# vm_since: when the checks ran first on this VM, in REPLY; 0 where they ran before anybody took a note of it.
vm_since() {
    local -r file="${CF_STATE_DIR}/health/vm"
    local vm="" uuid="" since="" now
    if [[ -r "${file}" ]]; then IFS=' ' read -r since uuid vm <"${file}" || true; fi
    know_vm "${since:+asked}"
    if ! cf_number "${since}" || is_other_vm "${vm}" "${uuid#-}"; then
        printf -v now '%(%s)T' -1
        if [[ -z "${since}" && -e "${CF_STATE_DIR}/health/quick.json" ]]; then now=0; fi
        since="${now}"
        cf_write "${file}" 0644 <<<"${since} ${PRODUCT_UUID:--} ${VM_ID}" || true
        REPLY="${since}"
    fi
}

# ---------------------------------------------------------------- the file

# lock_standing SECONDS: one process at a time changes it. 1 when another holds it for longer.
lock_standing() {
    make_folders "${RUN_DIR}" || return 1
    exec 8>>"${RUN_DIR}/standing.lock" || return 1
    flock --wait "$1" 8
}

unlock_standing() { exec 8>&-; }

# read_standing [asked]: FOUND and NOTES, empty when nothing stands against this VM.
read_standing() {
    local -r found='^((quick|deep) (service|reboot|reset|heal)) ([0-9]+ [^ ]+ .*)$'
    local file key value
    FOUND=() NOTES=([drain]=none [passes]=0 [repaired]=0 [retested]=0)
    for file in "${STANDING_RUN}" "${STANDING}"; do
        if [[ -s "${file}" ]]; then break; fi
    done
    if [[ ! -s "${file}" ]]; then return 0; fi
    while IFS='=' read -r key value; do
        case "${key}" in
            found) if [[ "${value}" =~ ${found} ]]; then FOUND["${BASH_REMATCH[1]}"]="${BASH_REMATCH[4]}"; fi ;;
            passes | refused | repaired | retested) if cf_number "${value}"; then NOTES["${key}"]="${REPLY}"; fi ;;
            vm_id | product_uuid | drain | drain_reason | drain_cure) NOTES["${key}"]="${value}" ;;
        esac
    done <"${file}"
    know_vm "${1:-}"
    if is_other_vm "${NOTES[vm_id]:-}" "${NOTES[product_uuid]:-}"; then
        cf_log "what stood against the VM that had this name before is forgotten"
        FOUND=() NOTES=([drain]=none [passes]=0 [repaired]=0 [retested]=0)
    fi
}

# worst_standing: STANDING_CURE and STANDING_KEY, both empty when nothing stands.
worst_standing() {
    local cure kind
    STANDING_CURE="" STANDING_KEY=""
    for cure in "${CURES[@]}"; do
        for kind in "${KINDS[@]}"; do
            if [[ -n "${FOUND["${kind} ${cure}"]:-}" && -z "${STANDING_KEY}" ]]; then
                STANDING_CURE="${cure}" STANDING_KEY="${kind} ${cure}"
            fi
        done
    done
}

# cure_words CURE: what has to be done, in REPLY; nothing for what heals.
cure_words() {
    case "$1" in
        reset) REPLY="reset the GPUs or reboot the node" ;;
        reboot) REPLY="reboot the node" ;;
        service) REPLY="report the host to Azure and take another VM" ;;
        *) REPLY="" ;;
    esac
}

# describe_standing: all of it in words, the worst first and what to do in front, in REPLY. Slurm shows it in one line.
describe_standing() {
    local cure kind text="" since boot reason
    worst_standing
    cure_words "${STANDING_CURE}"
    local -r action="${REPLY}"
    for cure in "${CURES[@]}"; do
        for kind in "${KINDS[@]}"; do
            if [[ -z "${FOUND["${kind} ${cure}"]:-}" ]]; then continue; fi
            IFS=' ' read -r since boot reason <<<"${FOUND["${kind} ${cure}"]}"
            if [[ "${kind}" == deep ]]; then reason="deep_checks (${reason})"; fi
            text+="${text:+; }${reason}"
        done
    done
    REPLY="${action:+${action}: }${text}"
    if ((${#REPLY} > STANDING_LENGTH)); then REPLY="${REPLY:0:STANDING_LENGTH - 3}..."; fi
}

# standing_text: the content of the file in REPLY; empty when there is nothing to keep.
standing_text() {
    local key text="" state=clear
    local since="" boot="" _
    describe_standing
    local -r reason="${REPLY}"
    if ((${#FOUND[@]} == 0)) && [[ "${NOTES[drain]}" != ours && -z "${NOTES[refused]:-}" ]] &&
        [[ "${NOTES[repaired]} ${NOTES[retested]}" == "0 0" ]]; then
        REPLY=""
        return
    fi
    if [[ -n "${STANDING_KEY}" ]]; then
        state=sick
        IFS=' ' read -r since boot _ <<<"${FOUND["${STANDING_KEY}"]}"
    fi
    text="state=${state}"$'\n'
    if [[ "${state}" == sick ]]; then
        text+="cure=${STANDING_CURE}"$'\n'"kind=${STANDING_KEY% *}"$'\n'"since=${since}"$'\n'"boot=${boot}"$'\n'"reason=${reason}"$'\n'
    fi
    NOTES[vm_id]="${VM_ID:-${NOTES[vm_id]:-}}" NOTES[product_uuid]="${PRODUCT_UUID}"
    for key in vm_id product_uuid drain drain_cure drain_reason refused passes repaired retested; do
        if [[ -n "${NOTES[${key}]:-}" ]]; then text+="${key}=${NOTES[${key}]}"$'\n'; fi
    done
    for key in "${!FOUND[@]}"; do text+="found=${key} ${FOUND["${key}"]}"$'\n'; done
    REPLY="${text}"
}

# write_standing: to the disk, or to memory while the disk takes nothing. Never ends the run: Slurm has to hear of it.
write_standing() {
    standing_text
    local -r text="${REPLY}"
    if [[ -z "${text}" ]]; then
        cf_sweep "${STANDING}" "${STANDING_RUN}" 2>/dev/null || true
        if [[ ! -e "${STANDING}" ]]; then return 0; fi
    elif cf_write "${STANDING}" 0644 2>/dev/null <<<"${text%$'\n'}"; then
        # A reset of the machine often follows a verdict; the rename alone may be lost with it.
        if ((CF_CHANGED)) && command -v sync >/dev/null; then timeout --kill-after=1 3 sync "${STANDING}" 2>/dev/null || true; fi
        cf_sweep "${STANDING_RUN}" 2>/dev/null || true
        return 0
    fi
    cf_sweep "${STANDING%/*}/.${STANDING##*/}.cycleforge."* 2>/dev/null || true
    if cf_write "${STANDING_RUN}" 0644 2>/dev/null <<<"${text:-state=clear}"; then
        cf_warn "${STANDING} cannot be written; until it can, ${STANDING_RUN} is what counts, and a reboot forgets that"
    else
        cf_warn "neither ${STANDING} nor ${STANDING_RUN} can be written"
    fi
}

# forget_drain: Slurm shows no drain of ours.
forget_drain() { NOTES[drain]=none NOTES[drain_reason]="" NOTES[drain_cure]=""; }

# note_own_drain REASON CURE: Slurm shows this one, and we may lift it.
note_own_drain() { NOTES[drain]=ours NOTES[drain_reason]="$1" NOTES[drain_cure]="$2"; }

# refuse: a hook of ours is about to say no without having drained the node itself.
refuse() { printf -v 'NOTES[refused]' '%(%s)T' -1; }

# ---------------------------------------------------------------- what joins, what is lifted

# stand_against KIND CURE REASON: seen in this boot; a fault that comes back keeps its first moment.
stand_against() {
    local now since
    printf -v now '%(%s)T' -1
    since="${FOUND["$1 $2"]:-${now}}"
    boot_id
    FOUND["$1 $2"]="${since%% *} ${REPLY:-unknown} ${3:0:STANDING_LENGTH}"
    NOTES[passes]=0
}

# lift_after KIND: what a run of this kind that passed has shown to be over. What heals needs its own kind of run, quick ones
# twice; what a reset or a reboot takes away needs a later boot and deep checks in it. A quick run does for deep ones
# where the definition has these off. What needs service is lifted by nobody but a person and a new VM.
lift_after() {
    local cure kind since boot _
    local deep="$1" passes="${NOTES[passes]}"
    if [[ "${CF_CONF[deep_s]}" == 0 ]]; then deep=deep; fi
    if [[ "$1" == quick ]]; then
        if ((passes < PASSES_TO_RESUME)); then passes=$((passes + 1)); fi
        if ((passes >= PASSES_TO_RESUME)); then unset 'FOUND[quick heal]'; fi
        NOTES[passes]="${passes}"
    fi
    if [[ "${deep}" != deep ]]; then return 0; fi
    unset 'FOUND[deep heal]'
    boot_id
    local -r now="${REPLY:-unknown}"
    for kind in "${KINDS[@]}"; do
        for cure in reset reboot; do
            IFS=' ' read -r since boot _ <<<"${FOUND["${kind} ${cure}"]:-}"
            if [[ -n "${boot}" && "${boot}" != "${now}" && "${now}" != unknown ]]; then
                cf_log "passed after the boot that it needed: ${FOUND["${kind} ${cure}"]#* * }"
                unset -v 'FOUND[$kind $cure]'
            fi
        done
    done
}

# stands_only_to_heal: whether all that stands is gone by itself when quick runs pass.
stands_only_to_heal() { ((${#FOUND[@]} == 1)) && [[ -n "${FOUND["quick heal"]:-}" ]]; }

# join_run KIND: what the run that has just ended says about this node (results.sh), joins what stands or lifts it.
join_run() {
    local cure
    case "${RUN_VERDICT}" in
        pass | warn) lift_after "$1" ;;
        *)
            # Held by the guard: what many nodes share says nothing about this machine, and is over when it passes.
            if [[ "${IS_HELD:-false}" == true && -n "${FAILED[reboot]:-}" ]]; then
                FAILED[heal]="${FAILED[reboot]}${FAILED[heal]:+; ${FAILED[heal]}}"
                unset 'FAILED[reboot]'
            fi
            for cure in "${CURES[@]}"; do
                if [[ -n "${FAILED[${cure}]:-}" ]]; then stand_against "$1" "${cure}" "${FAILED[${cure}]}"; fi
            done
            if [[ "${RUN_VERDICT}" == incomplete && -n "${RUN_CURE}" ]]; then stand_against "$1" heal "${RUN_REASON}"; fi
            ;;
    esac
}
