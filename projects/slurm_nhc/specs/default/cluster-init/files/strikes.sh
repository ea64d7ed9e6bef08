#!/usr/bin/env bash
# Drains in a row: a node that falls ill and heals again and again loses a job each time. Sourced by health.sh.
#
# Each drain of ours is a strike. With the last one that the definition allows within its window the node needs service: it
# stays out until a person types `health.sh repaired` or it is another VM. A drain whose cause many nodes share is none
# (guard.sh). The file is on the disk, so a reboot forgets nothing; it belongs to a VM (standing.sh).
#
# Lines: `vm PRODUCT_UUID VM_ID`, then one for each drain: `SECONDS own` or `SECONDS shared`.

readonly STRIKES="${CF_STATE_DIR}/health/strikes"
# The drains of this VM in the window, the newest last.
declare -a DRAINS=()

# read_strikes: DRAINS; without those before a person said that the node is repaired. read_standing comes first.
read_strikes() {
    local word uuid vm now since=0
    DRAINS=()
    if [[ ! -r "${STRIKES}" ]]; then return; fi
    printf -v now '%(%s)T' -1
    since=$((now - ${CF_CONF[strikes_h]:-24} * 3600))
    if ((${NOTES[repaired]:-0} > since)); then since="${NOTES[repaired]}"; fi
    {
        IFS=' ' read -r word uuid vm || true
        if [[ "${word}" != vm ]] || is_other_vm "${vm}" "${uuid#-}"; then return; fi
        while IFS=' ' read -r word vm; do
            if cf_number "${word}" && [[ "${vm}" == @(own|shared) ]] && ((REPLY >= since)); then DRAINS+=("${REPLY} ${vm}"); fi
        done
    } <"${STRIKES}"
}

write_strikes() {
    local text
    text="vm ${PRODUCT_UUID:--} ${VM_ID}"
    if ((${#DRAINS[@]} > 0)); then text+="$(printf '\n%s' "${DRAINS[@]}")"; fi
    # A full disk must not keep a sick node in service.
    if ! cf_write "${STRIKES}" 0644 2>/dev/null <<<"${text}"; then
        rm -f "${STRIKES%/*}/.${STRIKES##*/}.cycleforge."* 2>/dev/null || true
        cf_warn "${STRIKES} cannot be written: this drain is not counted"
    fi
}

# strike_out: before a drain. 0 when it is one too many, which then stands against the node as a need for service.
strike_out() {
    local drain own=1
    local -r most="${CF_CONF[strikes]:-0}" hours="${CF_CONF[strikes_h]:-24}"
    if ((most == 0)) || [[ -n "${FOUND["quick service"]:-}" ]]; then return 1; fi
    read_strikes
    for drain in "${DRAINS[@]}"; do
        if [[ "${drain}" == *own ]]; then own=$((own + 1)); fi
    done
    if ((own < most)); then return 1; fi
    stand_against quick service "${own} drains in ${hours} h, stays out until a person types 'health.sh repaired'"
}

# count_strike: after a drain.
count_strike() {
    local now
    if ((${CF_CONF[strikes]:-0} == 0)); then return; fi
    read_strikes
    printf -v now '%(%s)T' -1
    DRAINS+=("${now} own")
    write_strikes
}

# forgive_strike: the cause of the drain that Slurm shows is shared. Says so once.
forgive_strike() {
    if [[ "${NOTES[drain]:-none}" != ours || ! -r "${STRIKES}" ]]; then return 0; fi
    read_strikes
    if ((${#DRAINS[@]} == 0)) || [[ "${DRAINS[-1]}" != *own ]]; then return 0; fi
    DRAINS[-1]="${DRAINS[-1]% *} shared"
    write_strikes
    cf_log "this drain is not counted against the node: many nodes share its cause"
}
