#!/usr/bin/env bash
# Reservations in slurmctld, which keeps them over restarts. Sourced by policy.sh.

readonly REPEATS='(DAILY|WEEKLY|WEEKDAY|WEEKEND)'

load_reservations() {
    local id kind name key place
    local -a rows=("${RECORDED[@]+"${RECORDED[@]}"}")
    for id in "${ORDER[@]+"${ORDER[@]}"}"; do
        read -r kind name key <<<"${id}"
        if [[ "${kind} ${key}" == "reservation exists" ]]; then reserve "${id}" "${name}"; fi
    done
    for ((place = ${#rows[@]} - 1; place >= 0; place--)); do
        id="${rows[place]}"
        read -r kind name key <<<"${id}"
        if [[ "${kind}" == reservation && -z "${WANTED[${id}]+there}" ]]; then release "${id}" "${name}"; fi
    done
}

# reserve ID NAME: as the definition has it, if that is another one than was applied last.
reserve() {
    local -r id="$1" name="$2"
    local -r value="${WANTED[${id}]}"
    local -a words=()
    if [[ "${APPLIED[${id}]:-}" == "${value}" ]]; then return; fi
    if is_over "${value}"; then
        cf_log "reservation ${name}: its begin is past, not made"
        recorded "${id}" "${value}" past
        return
    fi
    words_of "${value}" words
    if ! reservation_shown "${name}"; then
        change scontrol create reservation "ReservationName=${name}" "${words[@]}"
        did "reservation ${name} made: ${words[*]}"
    elif [[ -n "${APPLIED[${id}]+there}" ]]; then
        change scontrol update "ReservationName=${name}" "${words[@]}"
        did "reservation ${name} changed: ${words[*]}"
    else
        left "reservation ${name} is there already, made by somebody else"
        return
    fi
    if [[ "${DRY_RUN}" == true ]]; then return; fi
    reservation_shown "${name}" || cf_die "reservation ${name} is not there after it was made"
    recorded "${id}" "${value}" "${REPLY}"
}

# words_of VALUE NAME: what scontrol takes, into the array NAME. It takes one partition only, so several become nodes.
words_of() {
    local -n result="$2"
    local word partition line nodes=""
    local -a parts=() names=()
    IFS=';' read -r -a parts <<<"$1"
    result=()
    for word in "${parts[@]}"; do
        if [[ "${word}" == PartitionName=* ]]; then
            IFS=',' read -r -a names <<<"${word#*=}"
            for partition in "${names[@]}"; do
                line="$(timeout 30 scontrol --oneliner show partition "${partition}" 2>/dev/null || true)"
                if [[ "${line}" =~ [[:space:]]Nodes=([^[:space:]]+) && "${BASH_REMATCH[1]}" != "(null)" ]]; then
                    nodes+="${nodes:+,}${BASH_REMATCH[1]}"
                fi
            done
            if [[ -z "${nodes}" ]]; then cf_die "partitions ${word#*=} have no nodes to reserve"; fi
        elif [[ "${word}" == Nodes=* ]]; then
            result+=("Nodes=${nodes:-${word#*=}}")
        else
            result+=("${word}")
        fi
    done
}

is_over() {
    local start now
    if [[ "$1" =~ Flags=[^\;]*${REPEATS} ]]; then return 1; fi
    [[ "$1" =~ StartTime=([^\;]+) ]] || return 1
    start="$(date -d "${BASH_REMATCH[1]}" +%s)" || return 1
    printf -v now '%(%s)T' -1
    ((start <= now))
}

# reservation_shown NAME: what slurmctld has of it, in REPLY; 1 when there is none. A repeated one moves by itself.
reservation_shown() {
    local line word shown=""
    line="$(timeout 30 scontrol --oneliner show reservation "$1" 2>/dev/null)" || return 1
    for word in ${line}; do
        case "${word}" in
            StartTime=* | EndTime=*) if [[ ! "${line}" =~ Flags=[^[:space:]]*${REPEATS} ]]; then shown+="${word} "; fi ;;
            Duration=* | Nodes=* | Users=* | Accounts=*) shown+="${word} " ;;
        esac
    done
    REPLY="${shown}"
}

# release ID NAME: delete a reservation that the definition no longer has, if nobody changed it.
release() {
    local -r id="$1" name="$2"
    if reservation_shown "${name}"; then
        if [[ "${REPLY}" == "${SEEN[${id}]}" ]]; then
            change scontrol delete "ReservationName=${name}"
            did "reservation ${name} deleted"
        else
            left "reservation ${name}, which the definition no longer has: an administrator changed it." \
                "To delete it: scontrol delete ReservationName=${name}"
        fi
    fi
    forget "${id}"
}
