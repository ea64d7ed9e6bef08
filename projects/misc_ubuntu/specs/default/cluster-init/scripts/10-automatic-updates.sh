#!/usr/bin/env bash
# No package changes behind the back of a job: background updates, their timers and needrestart are off for good.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly APT_TIMERS=(apt-daily.timer apt-daily-upgrade.timer)
readonly APT_SERVICES=(unattended-upgrades.service apt-daily.service apt-daily-upgrade.service)
readonly DNF_TIMERS=(dnf-automatic.timer dnf-automatic-download.timer dnf-automatic-install.timer
    dnf-automatic-notifyonly.timer dnf-makecache.timer)
readonly APT_RUNS=(apt-daily.service apt-daily-upgrade.service)
readonly DNF_RUNS=("${DNF_TIMERS[@]/%.timer/.service}")

is_masked() { [[ "$(readlink "${CF_ROOT}/etc/systemd/system/$1" || true)" == /dev/null ]]; }

# mask_units [--stop] UNIT...: masking also holds for units that a later package brings. What runs is stopped before: a
# timer that is masked while it waits ends as a failed unit.
mask_units() {
    local stop=false
    local -a units=()
    local unit
    if [[ "$1" == --stop ]]; then
        stop=true
        shift
    fi
    for unit in "$@"; do
        if is_masked "${unit}"; then continue; fi
        if [[ "${stop}" == true ]] && systemctl is-active --quiet "${unit}"; then systemctl stop "${unit}"; fi
        units+=("${unit}")
    done
    if ((${#units[@]} > 0)); then systemctl --quiet mask "${units[@]}"; fi
    cf_outcome "${#units[@]} masked, $(($# - ${#units[@]})) were masked already"
}

# no_update_runs UNIT...: such a service is "activating" while it works.
no_update_runs() {
    local unit state
    for unit in "$@"; do
        state="$(systemctl is-active "${unit}" || true)"
        if [[ "${state}" == @(active|activating|deactivating|reloading) ]]; then return 1; fi
    done
}

# An update that is stopped in the middle leaves half-configured packages, so a running one may finish first.
wait_for_update() {
    cf_attribute_int cycleforge.apt.wait_s 300 0 3600
    if cf_wait_for "${REPLY}" no_update_runs "$@"; then
        cf_outcome "no update is running"
    else
        cf_warn "an automatic update still runs after ${REPLY} s; it may finish, the next one cannot start"
        cf_outcome "an update is still running after ${REPLY} s"
    fi
}

write_apt_settings() {
    cf_write "${CF_ROOT}/etc/apt/apt.conf.d/99-cycleforge" 0644 <<'CONF'
// Written by CycleForge (misc_ubuntu): nodes change only when their image or projects change.
APT::Periodic::Enable "0";
APT::Periodic::Update-Package-Lists "0";
APT::Periodic::Unattended-Upgrade "0";
// Whoever installs packages waits for the lock (seconds) instead of failing.
DPkg::Lock::Timeout "300";
CONF
    cf_outcome_file "apt.conf.d/99-cycleforge"
}

# needrestart would restart slurmd, munge or the node agent after any package transaction. Its Ubuntu mode ignores
# the "list only" setting for services that may restart, so every service is excluded as well. Written even where
# needrestart is not installed: a later package may bring it.
write_needrestart_settings() {
    cf_write "${CF_ROOT}/etc/needrestart/conf.d/99-cycleforge.conf" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu): report, never restart.
$nrconf{restart} = 'l';
$nrconf{override_rc} = { qr(.) => 0 };
$nrconf{kernelhints} = 0;
$nrconf{ucodehints} = 0;
CONF
    cf_outcome_file "conf.d/99-cycleforge.conf"
}

# snapd refreshes snaps four times a day. Since snapd 2.58 it can be held for good: https://snapcraft.io/docs/managing-updates
hold_snaps() {
    if ! command -v snap >/dev/null; then
        cf_outcome "snap is not installed"
    elif [[ "$(timeout 30 snap get system refresh.hold 2>/dev/null || true)" == forever ]]; then
        cf_outcome "held already"
    elif timeout 120 snap refresh --hold >/dev/null; then
        cf_outcome "held"
    else
        cf_warn "snap refresh --hold failed; snapd may refresh snaps while jobs run"
        cf_outcome "not held"
    fi
}

main() {
    cf_os
    case "${REPLY}" in
        ubuntu*)
            cf_step "apt settings" write_apt_settings
            cf_step "needrestart settings" write_needrestart_settings
            cf_step "apt timers" mask_units --stop "${APT_TIMERS[@]}"
            cf_step "running update" wait_for_update "${APT_RUNS[@]}"
            cf_step "apt services" mask_units "${APT_SERVICES[@]}"
            cf_step "snap refreshes" hold_snaps
            ;;
        el*)
            cf_step "dnf timers" mask_units --stop "${DNF_TIMERS[@]}"
            cf_step "running update" wait_for_update "${DNF_RUNS[@]}"
            ;;
        *) cf_warn "operating system '${REPLY#unknown }' is not known to this project; automatic updates stay as they are" ;;
    esac
}

cf_main main "$@"
