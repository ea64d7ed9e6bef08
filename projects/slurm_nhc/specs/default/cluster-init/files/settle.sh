#!/usr/bin/env bash
# CycleForge (slurm_nhc): before the deep checks of a boot, wait for what the image starts at boot (ExecStartPre of
# cycleforge-health-deep.service).
#
# What is measured while the fabric manager or the image's own settings of the VM size are not there yet is not what a job
# gets. A unit is waited for while it starts or has a job in systemd's queue. One that is inactive stays so and is not
# waited for; whether it is enabled says nothing, because the image disables the fabric manager at every shutdown. Source:
# Azure/azhpc-images components/setup_sku_customizations.sh. What did not start in time is for the checks to judge.
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib disable=SC1091
set -euo pipefail
# shellcheck source=cycleforge.sh
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

CF_PROJECT=slurm_nhc
readonly CALL_S=20
declare -A GIVEN=()
STARTING=""

# read_line_of_checks: the figures of the check boot_services into GIVEN; 1 where this size has none.
read_line_of_checks() {
    local -r word="^ *([a-z_]+)=('([^']*)'|([^' ]*))( |$)"
    local line=""
    line="$(grep -m 1 '^\* || cycleforge boot_services ' "${CF_CONF_DIR}/nhc/deep.conf" 2>/dev/null || true)"
    if [[ -z "${line}" ]]; then return 1; fi
    line="${line#*boot_services }"
    while [[ "${line}" =~ ${word} ]]; do
        GIVEN["${BASH_REMATCH[1]}"]="${BASH_REMATCH[3]}${BASH_REMATCH[4]}"
        line="${line#"${BASH_REMATCH[0]}"}"
    done
}

# all_started: whether no unit starts any more; those that do in STARTING. A unit that systemd holds back until
# multi-user.target waits for slurmd, which waits for us: nothing is gained by waiting for that one.
all_started() {
    local line unit="" active="" job="" after="" shown
    local -a units=()
    STARTING=""
    read -r -a units <<<"${GIVEN[units]:-}"
    if ((${#units[@]} == 0)); then return 0; fi
    shown="$(timeout "${CALL_S}" systemctl show --property=Id,ActiveState,Job,After "${units[@]/%/.service}" 2>/dev/null)" || return 0
    while IFS= read -r line; do
        case "${line}" in
            Id=*) unit="${line#Id=}" ;;
            ActiveState=*) active="${line#*=}" ;;
            Job=*) job="${line#*=}" ;;
            After=*) after=" ${line#*=} " ;;
            "")
                if [[ "${active}" == @(activating|reloading) || "${job:-0}" != 0 ]] && [[ "${after}" != *" multi-user.target "* ]]; then
                    STARTING+="${STARTING:+, }${unit}"
                fi
                unit="" active="" job="" after=""
                ;;
        esac
    done <<<"${shown}"$'\n'
    [[ -z "${STARTING}" ]]
}

# all_joined: whether no GPU is still joining its NVLink fabric; a driver that does not say so is not waited for.
all_joined() {
    local shown
    if [[ -z "${GIVEN[registration]:-}" ]]; then return 0; fi
    shown="$(timeout --kill-after=2 "${CALL_S}" nvidia-smi --query-gpu=fabric.state --format=csv,noheader 2>/dev/null)" || return 0
    if [[ "${shown}" != *@("In Progress"|"Not Started")* ]]; then return 0; fi
    STARTING="the NVLink fabric of the GPUs"
    return 1
}

settled() { all_started && all_joined; }

main() {
    if ! read_line_of_checks || settled; then return; fi
    cf_log "deep checks wait for ${STARTING}"
    if cf_wait_for "${GIVEN[within_s]:-300}" settled; then
        cf_log "deep checks waited ${SECONDS} s for what starts at boot"
    else
        cf_warn "after ${GIVEN[within_s]:-300} s still starting: ${STARTING}; the deep checks begin"
    fi
}

main
