#!/usr/bin/env bash
# One clock service runs, on the host's clock where chrony can read it. Munge refuses credentials of nodes whose clocks
# differ by minutes, and Azure's host clock needs no network.
# Source: https://learn.microsoft.com/azure/virtual-machines/linux/time-sync
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

# In order of preference; the first two are the same program on Ubuntu and on EL.
readonly SERVICES=(chrony.service chronyd.service systemd-timesyncd.service ntpd.service ntp.service)
readonly HOST_CLOCK=/dev/ptp_hyperv
CHOSEN=""

is_installed() { systemctl cat "$1" >/dev/null 2>&1; }
is_running() { systemctl is-active --quiet "$1"; }

# A unit may start "successfully" and not run, when a condition of it does not hold.
start_service() { systemctl --quiet enable --now "$1" && is_running "$1"; }

ensure_clock_service() {
    local unit outcome=""
    local -a running=()
    for unit in "${SERVICES[@]}"; do
        if is_running "${unit}"; then running+=("${unit}"); fi
    done
    if ((${#running[@]} == 0)); then
        for unit in "${SERVICES[@]}"; do
            if is_installed "${unit}" && start_service "${unit}"; then
                running+=("${unit}")
                outcome="${unit} was off, now it runs"
                break
            fi
        done
    fi
    CHOSEN="${running[0]:-}"
    # chrony.service and chronyd.service may be two names of one unit.
    if [[ "${running[*]}" == *" "* && "${running[*]}" != "chrony.service chronyd.service" ]]; then
        cf_warn "several clock services run (${running[*]}); they pull the clock in different directions, disable all but one"
    fi
    if [[ -z "${CHOSEN}" ]]; then
        cf_warn "no clock service runs; install chrony in the image"
        cf_outcome "none"
        return
    fi
    cf_outcome "${outcome:-${CHOSEN} runs}"
}

# Azure's images have this line; an image of somebody else may lack it, and NTP servers may be out of a node's reach.
use_host_clock() {
    local conf folder
    for conf in "${CF_ROOT}/etc/chrony/chrony.conf" "${CF_ROOT}/etc/chrony.conf"; do
        if [[ -r "${conf}" ]]; then break; fi
    done
    if [[ "${CHOSEN}" != chrony*.service || ! -r "${conf}" ]]; then
        cf_outcome "not chrony"
        return
    fi
    if [[ ! -e "${CF_ROOT}${HOST_CLOCK}" ]]; then
        cf_outcome "${HOST_CLOCK} is not there"
        return
    fi
    folder="$(sed -n -E 's/^[[:space:]]*confdir[[:space:]]+([^[:space:]]+).*/\1/p' "${conf}" | head -n 1)"
    if grep -q -s -E '^[[:space:]]*refclock[[:space:]]+PHC[[:space:]]' "${conf}"; then
        cf_outcome "in ${conf##*/}"
    elif [[ -n "${folder}" ]]; then
        cf_write "${CF_ROOT}${folder}/cycleforge.conf" 0644 <<CONF
# Written by CycleForge (misc_ubuntu): the clock of the Azure host.
refclock PHC ${HOST_CLOCK} poll 3 dpoll -2 offset 0 stratum 2
CONF
        if cf_apply host-clock "${CF_ROOT}${folder}/cycleforge.conf" systemctl restart "${CHOSEN}"; then
            cf_outcome_file "${folder}/cycleforge.conf"
        else
            # chronyd ends when it cannot open a clock; NTP alone is better than no clock service at all.
            cf_remove "${CF_ROOT}${folder}/cycleforge.conf"
            systemctl restart "${CHOSEN}"
            cf_warn "chrony does not start with ${HOST_CLOCK}; it goes on with its NTP servers"
            cf_outcome "refused"
        fi
    else
        cf_warn "chrony does not read the host's clock: add 'refclock PHC ${HOST_CLOCK} poll 3 dpoll -2 offset 0 stratum 2' to ${conf} in the image"
        cf_outcome "not used"
    fi
}

main() {
    cf_step "clock service" ensure_clock_service
    cf_step "host clock" use_host_clock
}

cf_main main "$@"
