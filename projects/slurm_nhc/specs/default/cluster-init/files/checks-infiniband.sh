#!/usr/bin/env bash
# InfiniBand ports: how many are active, how fast, how often the link went down. Sourced by health.sh.
# Ports are found by their link layer, because images name the devices differently (mlx5_0, mlx5_ib0).

check_infiniband() {
    local port
    local -a ports=()
    for port in "${CF_ROOT}"/sys/class/infiniband/*/ports/1; do
        if [[ "$(cat "${port}/link_layer" 2>/dev/null || true)" == InfiniBand ]]; then ports+=("${port}"); fi
    done
    if [[ -z "${CF_FIGURES[ib.ports]:-}" ]] && ((${#ports[@]} == 0)); then return 0; fi
    check_ib_ports "${ports[@]}"
    check_ib_flaps "${ports[@]}"
}

device_of() {
    REPLY="${1%/ports/1}"
    REPLY="${REPLY##*/}"
}

check_ib_ports() {
    local -r rate_limit="${CF_FIGURES[ib.rate_gbps]:-}"
    local port state phys rate device active=0 down="" slow="" slowest=""
    for port in "$@"; do
        device_of "${port}"
        device="${REPLY}"
        # sysfs writes "4: ACTIVE", "5: LinkUp" and "200 Gb/sec (4X HDR)".
        state="$(cat "${port}/state" 2>/dev/null || true)"
        phys="$(cat "${port}/phys_state" 2>/dev/null || true)"
        rate="$(cat "${port}/rate" 2>/dev/null || true)"
        rate="${rate%% *}"
        if [[ "${state}" == "4: ACTIVE" && "${phys}" == "5: LinkUp" ]]; then
            active=$((active + 1))
        else
            down+="${down:+, }${device} ${state#*: } ${phys#*: }"
        fi
        if [[ -n "${rate_limit}" ]] && ! cf_compare "${rate}" ge "${rate_limit}"; then
            slow+="${slow:+, }${device}"
            slowest="${rate}"
        fi
    done
    judge ib_ports_active "${active}" ge "${CF_FIGURES[ib.ports]:-}" ports fail "${down}"
    if [[ -n "${rate_limit}" ]] && (($# > 0)); then
        judge ib_rate "${slowest:-${rate}}" ge "${rate_limit}" Gb/s fail "${slow}"
    fi
}

# The kernel counts link losses since boot, up to 255. A sample is kept whenever a count changes, one line "device time
# count"; the count at the beginning of the window is the newest sample from before it. A smaller count than the one
# before means a reboot or a driver reload, which starts anew.
check_ib_flaps() {
    local -r file="${CF_STATE_DIR}/health/ib_link_downed"
    local -r limit="${CF_FIGURES[ib.flaps_fail_at]:-}" window_h="${CF_FIGURES[ib.flaps_window_hours]:-24}"
    local -r now="$(date +%s)"
    local port device count sample_device time value kept="" worst=0 worst_device=""
    local -A base=() base_time=() latest=()
    if (($# == 0)); then return 0; fi
    if [[ -r "${file}" ]]; then
        while read -r sample_device time value; do
            [[ "${time} ${value}" =~ ^[0-9]+\ [0-9]+$ ]] || continue
            if ((time <= now - window_h * 3600)) || [[ -z "${latest[${sample_device}]:-}" ]] ||
                ((value < latest[${sample_device}])); then
                base["${sample_device}"]="${value}" base_time["${sample_device}"]="${time}"
            else
                kept+="${sample_device} ${time} ${value}"$'\n'
            fi
            latest["${sample_device}"]="${value}"
        done <"${file}"
    fi
    for port in "$@"; do
        device_of "${port}"
        device="${REPLY}"
        count="$(cat "${port}/counters/link_downed" 2>/dev/null || true)"
        if [[ ! "${count}" =~ ^[0-9]+$ ]]; then
            not_measured ib_link_flaps "${device} has no counter link_downed"
            continue
        fi
        if [[ -z "${base[${device}]:-}" ]] || ((count < latest[${device}])); then
            base["${device}"]="${count}" base_time["${device}"]="${now}"
        elif ((count > latest[${device}])); then
            kept+="${device} ${now} ${count}"$'\n'
        fi
        if ((count - base[${device}] > worst)); then
            worst=$((count - base[${device}]))
            worst_device="${device}"
        fi
    done
    for device in "${!base[@]}"; do kept="${device} ${base_time[${device}]} ${base[${device}]}"$'\n'"${kept}"; done
    cf_write "${file}" 0644 <<<"${kept%$'\n'}"
    judge ib_link_flaps "${worst}" lt "${limit}" "losses in ${window_h} h" fail "${worst_device}"
}
