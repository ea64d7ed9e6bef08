#!/usr/bin/env bash
# InfiniBand ports: how many are active, how fast, their keys and errors, how often the link went down. Sourced by
# checks.sh. Ports are found by their link layer, because images name the devices differently (mlx5_0, mlx5_ib0).

declare -a IB_PORTS=()
IB_FOUND=false

# find_ib_ports: the folders of all InfiniBand ports in IB_PORTS, in natural order (mlx5_ib2 before mlx5_ib10).
find_ib_ports() {
    local port one_length=true
    local -a found=()
    if [[ "${IB_FOUND}" == true ]]; then return 0; fi
    for port in "${CF_ROOT}"/sys/class/infiniband/*/ports/1; do
        read_line "${port}/link_layer"
        if [[ "${REPLY}" == InfiniBand ]]; then
            found+=("${port}")
            if ((${#port} != ${#found[0]})); then one_length=false; fi
        fi
    done
    IB_PORTS=("${found[@]}")
    # Numbers of one length stand in natural order already.
    if [[ "${one_length}" == false ]]; then
        IB_PORTS=()
        while IFS= read -r port; do IB_PORTS+=("${port}"); done < <(printf '%s\n' "${found[@]}" | LC_ALL=C sort -V)
    fi
    IB_FOUND=true
}

device_of() {
    REPLY="${1%/ports/1}"
    REPLY="${REPLY##*/}"
}

# count=N rate_gbit_per_s=N: fewer or slower fail. documented=N: no health source confirms this count, so fewer are
# reported and drain nothing.
check_ib_ports() {
    local -r rate_limit="${GIVEN[rate_gbit_per_s]:-}" count="${GIVEN[count]:-${GIVEN[documented]:-}}"
    local port state phys rate="" device active=0 down="" slow="" slowest="" severity=fail
    if [[ -z "${GIVEN[count]:-}" ]]; then severity=warn; fi
    find_ib_ports
    if [[ -z "${count}" ]] && ((${#IB_PORTS[@]} == 0)); then return 0; fi
    for port in "${IB_PORTS[@]}"; do
        device_of "${port}"
        device="${REPLY}"
        # sysfs writes "4: ACTIVE", "5: LinkUp" and "200 Gb/sec (4X HDR)".
        read_line "${port}/state"
        state="${REPLY}"
        read_line "${port}/phys_state"
        phys="${REPLY}"
        read_line "${port}/rate"
        rate="${REPLY%% *}"
        if [[ "${state}" == "4: ACTIVE" && "${phys}" == "5: LinkUp" ]]; then
            active=$((active + 1))
        else
            down+="${down:+, }${device} ${state#*: } ${phys#*: }"
        fi
        if [[ -n "${rate_limit}" ]] && ! cf_compare "${rate}" ge "${rate_limit}"; then
            slow+="${slow:+, }${device}"
            slowest="${rate:-unknown}"
        fi
    done
    judge ib_ports_active "${active}" ge "${count}" ports "${severity}" "${down}"
    if [[ -n "${rate_limit}" ]] && ((${#IB_PORTS[@]} > 0)); then
        judge ib_rate "${slowest:-${rate}}" ge "${rate_limit}" Gb/s fail "${slow}"
    fi
}

# Without a full-member partition key (highest bit set) a port reaches no other node, although its link is up.
check_ib_keys() {
    local port without="" full seen=false index
    find_ib_ports
    for port in "${IB_PORTS[@]}"; do
        full=false
        # The table has 128 places; the first empty one ends it.
        for ((index = 0; index < 128; index++)); do
            read_line "${port}/pkeys/${index}"
            if [[ ! "${REPLY}" =~ ^0x[0-9a-fA-F]{4}$ ]] || ((REPLY == 0)); then break; fi
            seen=true
            if ((REPLY & 0x8000)); then full=true; fi
        done
        device_of "${port}"
        if [[ "${full}" == false ]]; then without+="${without:+ }${REPLY}"; fi
    done
    if ((${#IB_PORTS[@]} == 0)); then return 0; fi
    if [[ "${seen}" == false ]]; then
        not_measured ib_partition_keys "no port shows its partition keys"
    elif [[ -n "${without}" ]]; then
        record fail ib_partition_keys "" "" "" "" "no full-member key on ${without}"
    else
        record pass ib_partition_keys "" "" "" "" ""
    fi
}

# COUNTER=N...: what somebody should look at; one record for each counter, with the worst port.
check_ib_errors() {
    local port counter worst_value worst_port
    find_ib_ports
    for counter in "${!GIVEN[@]}"; do
        worst_value="" worst_port=""
        for port in "${IB_PORTS[@]}"; do
            read_line "${port}/counters/${counter}"
            if [[ "${REPLY}" =~ ^[0-9]{1,18}$ ]] && ((10#${REPLY} > ${worst_value:--1})); then
                worst_value=$((10#${REPLY}))
                device_of "${port}"
                worst_port="${REPLY}"
            fi
        done
        if [[ -n "${worst_value}" ]]; then judge "ib_${counter}" "${worst_value}" le "${GIVEN[${counter}]}" errors warn "${worst_port}"; fi
    done
}

# fail_at=N window_h=N: The kernel counts link losses since boot, up to 255. A sample is kept whenever a count changes, one line
# "device time count"; the count at the beginning of the window is the newest sample from before it. A smaller count than
# the one before means a reboot or a driver reload, which starts anew.
check_ib_flaps() {
    local -r file="${CF_STATE_DIR}/health/ib_link_downed" window_h="${GIVEN[window_h]:-24}"
    local port device count sample_device time value now kept="" before="" worst=0 worst_device=""
    local -A base=() base_time=() latest=()
    find_ib_ports
    if ((${#IB_PORTS[@]} == 0)); then return 0; fi
    # CYCLEFORGE_NOW_S is for the tests.
    printf -v now '%(%s)T' -1
    now="${CYCLEFORGE_NOW_S:-${now}}"
    if [[ -r "${file}" ]]; then
        before="$(<"${file}")"
        while read -r sample_device time value; do
            [[ "${sample_device}" =~ ^[A-Za-z0-9_.-]+$ ]] || continue
            cf_number "${time}" || continue
            time="${REPLY}"
            cf_number "${value}" || continue
            value="${REPLY}"
            if ((time <= now - window_h * 3600)) || [[ -z "${latest[${sample_device}]:-}" ]] ||
                ((value < ${latest[${sample_device}]})); then
                base["${sample_device}"]="${value}" base_time["${sample_device}"]="${time}"
            else
                kept+="${sample_device} ${time} ${value}"$'\n'
            fi
            latest["${sample_device}"]="${value}"
        done <<<"${before}"
    fi
    for port in "${IB_PORTS[@]}"; do
        device_of "${port}"
        device="${REPLY}"
        read_line "${port}/counters/link_downed"
        if ! cf_number "${REPLY}"; then
            not_measured ib_link_flaps "${device} has no counter link_downed"
            continue
        fi
        count="${REPLY}"
        if [[ -z "${base[${device}]:-}" ]] || ((count < ${latest[${device}]})); then
            base["${device}"]="${count}" base_time["${device}"]="${now}"
        elif ((count > ${latest[${device}]})); then
            kept+="${device} ${now} ${count}"$'\n'
        fi
        if ((count - ${base[${device}]} > worst)); then
            worst=$((count - ${base[${device}]}))
            worst_device="${device}"
        fi
    done
    for device in "${!base[@]}"; do kept="${device} ${base_time[${device}]} ${base[${device}]}"$'\n'"${kept}"; done
    if [[ "${kept%$'\n'}" != "${before}" ]]; then cf_write "${file}" 0644 <<<"${kept%$'\n'}"; fi
    judge ib_link_flaps "${worst}" lt "${GIVEN[fail_at]:-}" "losses in ${window_h} h" fail "${worst_device}"
}
