#!/usr/bin/env bash
# One clock service runs. Munge refuses credentials of nodes whose clocks differ by minutes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

# In order of preference: chrony reads the host's clock (/dev/ptp_hyperv), which needs no network.
readonly SERVICES=(chrony.service chronyd.service systemd-timesyncd.service ntpd.service ntp.service)

is_installed() { systemctl cat "$1" >/dev/null 2>&1; }

ensure_clock_service() {
    local unit
    for unit in "${SERVICES[@]}"; do
        if systemctl is-active --quiet "${unit}"; then
            cf_outcome "${unit} runs"
            return
        fi
    done
    for unit in "${SERVICES[@]}"; do
        if is_installed "${unit}" && systemctl enable --now "${unit}"; then
            cf_outcome "${unit} was off, now it runs"
            return
        fi
    done
    cf_warn "no clock service is installed; install chrony in the image"
    cf_outcome "none"
}

main() { cf_step "clock service" ensure_clock_service; }

cf_main main "$@"
