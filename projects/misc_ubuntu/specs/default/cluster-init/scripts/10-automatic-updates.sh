#!/usr/bin/env bash
# No package changes behind the back of a job: background updates, their timers and needrestart are off for good.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly APT_TIMERS=(apt-daily.timer apt-daily-upgrade.timer)
readonly APT_SERVICES=(unattended-upgrades.service apt-daily.service apt-daily-upgrade.service)
readonly DNF_TIMERS=(dnf-automatic.timer dnf-automatic-download.timer dnf-automatic-install.timer
    dnf-automatic-notifyonly.timer dnf-makecache.timer)

is_masked() { [[ "$(readlink "${CF_ROOT}/etc/systemd/system/$1" || true)" == /dev/null ]]; }

# mask_units [--now] UNIT...: masking also holds for units that a later package brings.
mask_units() {
    local -a options=() units=()
    local unit
    if [[ "$1" == --now ]]; then
        options=(--now)
        shift
    fi
    for unit in "$@"; do
        if ! is_masked "${unit}"; then units+=("${unit}"); fi
    done
    if ((${#units[@]} > 0)); then systemctl mask "${options[@]}" "${units[@]}"; fi
    cf_outcome "${#units[@]} masked, $(($# - ${#units[@]})) were masked already"
}

apt_run_has_ended() {
    local unit state
    for unit in apt-daily.service apt-daily-upgrade.service; do
        state="$(systemctl is-active "${unit}" || true)"
        if [[ "${state}" == active || "${state}" == activating ]]; then return 1; fi
    done
}

# An upgrade that is stopped in the middle leaves half-configured packages, so a running one may finish first.
wait_for_apt_run() {
    cf_attribute_int cycleforge.apt.wait_s 300 0 3600
    if cf_wait_for "${REPLY}" apt_run_has_ended; then
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
# the "list only" setting for services that may restart, so every service is excluded as well.
write_needrestart_settings() {
    if [[ ! -d "${CF_ROOT}/etc/needrestart" ]]; then
        cf_outcome "not installed"
        return
    fi
    cf_write "${CF_ROOT}/etc/needrestart/conf.d/99-cycleforge.conf" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu): report, never restart.
$nrconf{restart} = 'l';
$nrconf{override_rc} = { qr(.) => 0 };
$nrconf{kernelhints} = 0;
$nrconf{ucodehints} = 0;
CONF
    cf_outcome_file "conf.d/99-cycleforge.conf"
}

main() {
    cf_os
    case "${REPLY}" in
        ubuntu*)
            cf_step "apt settings" write_apt_settings
            cf_step "needrestart settings" write_needrestart_settings
            cf_step "apt timers" mask_units --now "${APT_TIMERS[@]}"
            cf_step "running update" wait_for_apt_run
            cf_step "apt services" mask_units "${APT_SERVICES[@]}"
            ;;
        el*) cf_step "dnf timers" mask_units --now "${DNF_TIMERS[@]}" ;;
        *) cf_warn "operating system '${REPLY#unknown }' is not known to this project; automatic updates stay as they are" ;;
    esac
}

cf_main main "$@"
