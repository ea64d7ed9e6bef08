#!/usr/bin/env bash
# A job of weeks must not fill the system disk: bounded logs, no core dumps unless somebody asks for one.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly JOURNAL_MIB_DEFAULT=1024
# Programs that set a core pattern of their own whenever they start: Ubuntu's and Red Hat's crash collectors.
readonly COLLECTORS=(apport.service abrt-ccpp.service)

write_journal_settings() {
    local -r file="${CF_ROOT}/etc/systemd/journald.conf.d/90-cycleforge.conf"
    local max_mib
    cf_attribute_int cycleforge.journal.max_mib "${JOURNAL_MIB_DEFAULT}" 64 1048576
    max_mib="${REPLY}"
    cf_write "${file}" 0644 <<CONF
# Written by CycleForge (misc_ubuntu).
[Journal]
SystemMaxUse=${max_mib}M
RuntimeMaxUse=256M
CONF
    # systemd keeps the output streams of services over this restart, so no log line is lost.
    cf_apply journald "${file}" systemctl try-restart systemd-journald.service
    cf_outcome_file "at most ${max_mib} MiB"
}

# syslog files are rotated weekly and kept four times, whatever their size. A driver that floods the kernel log fills a
# disk within that week, so the size is looked at every hour. logrotate reads this file as if it stood in its own
# configuration before those of the packages.
write_rotation() {
    local -r file="${CF_ROOT}/etc/logrotate.d/00-cycleforge" timer=logrotate.timer
    local -r drop_in="${timer}.d/20-cycleforge-misc_ubuntu.conf"
    local changed max_mib
    if [[ ! -d "${CF_ROOT}/etc/logrotate.d" ]]; then
        cf_outcome "logrotate is not installed"
        return
    fi
    cf_attribute_int cycleforge.journal.max_mib "${JOURNAL_MIB_DEFAULT}" 64 1048576
    max_mib=$((REPLY / 4))
    cf_write "${file}" 0644 <<CONF
# Written by CycleForge (misc_ubuntu): a log that grows beyond this is rotated before its time.
maxsize ${max_mib}M
CONF
    changed="${CF_CHANGED}"
    if systemctl cat "${timer}" >/dev/null 2>&1; then
        cf_unit "${drop_in}" <<'CONF'
# CycleForge (misc_ubuntu): sizes are looked at every hour; what is due daily or weekly stays so.
[Timer]
OnCalendar=
OnCalendar=hourly
AccuracySec=5min
CONF
        changed=$((changed + CF_CHANGED))
        cf_apply logrotate-timer "${CF_ROOT}/etc/systemd/system/${drop_in}" reload_timer "${timer}"
    fi
    cf_outcome "each log at most ${max_mib} MiB, ${changed} files changed"
}

reload_timer() {
    systemctl daemon-reload || return
    systemctl try-restart "$1"
}

# A core of a training process is as large as its memory, hundreds of GiB. The soft limit 0 stops it, for logins and for
# services; a user who wants one types `ulimit -c unlimited` and finds it in the working folder, because the pattern
# names no collector.
write_core_settings() {
    local -r limits="${CF_ROOT}/etc/security/limits.d/90-cycleforge-core.conf"
    local -r services="${CF_ROOT}/etc/systemd/system.conf.d/90-cycleforge-core.conf"
    local -r pattern="${CF_ROOT}/etc/sysctl.d/90-cycleforge-core.conf"
    local file changed=0 now="in effect"
    cf_attribute_bool cycleforge.core_dumps false
    if [[ "${REPLY}" == true ]]; then
        for file in "${limits}" "${services}" "${pattern}"; do
            cf_remove "${file}"
            changed=$((changed + CF_CHANGED))
        done
        rm -f "${CF_STATE_DIR}/applied/core-pattern"
        cf_outcome "left to the image, ${changed} own files removed"
        return
    fi
    cf_write "${limits}" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu). Soft only: ulimit -c unlimited asks for a core dump.
* soft core 0
root soft core 0
CONF
    changed=$((changed + CF_CHANGED))
    cf_write "${services}" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu). Soft and hard limit of every service.
[Manager]
DefaultLimitCORE=0:infinity
CONF
    changed=$((changed + CF_CHANGED))
    cf_write "${pattern}" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu). A collector may ignore the limit and keep every core.
kernel.core_pattern = core.%e.%p
fs.suid_dumpable = 0
CONF
    changed=$((changed + CF_CHANGED))
    if ! cf_apply core-pattern "${pattern}" sysctl --quiet --load "${pattern}"; then
        cf_warn "the kernel did not take ${pattern}; it holds from the next boot on"
        now="not in effect yet"
    fi
    cf_outcome "soft limit 0, ${changed} files changed, pattern ${now}"
}

mask_collectors() {
    local unit masked=0 found=0
    for unit in "${COLLECTORS[@]}"; do
        if [[ ! -e "${CF_ROOT}/lib/systemd/system/${unit}" && ! -e "${CF_ROOT}/usr/lib/systemd/system/${unit}" ]]; then
            continue
        fi
        found=$((found + 1))
        if [[ "$(readlink "${CF_ROOT}/etc/systemd/system/${unit}" || true)" != /dev/null ]]; then
            # Stopping it writes the kernel's default back, so the pattern has to be set once more.
            rm -f "${CF_STATE_DIR}/applied/core-pattern"
            systemctl stop "${unit}"
            systemctl --quiet mask "${unit}"
            masked=$((masked + 1))
        fi
    done
    cf_outcome "${found} installed, ${masked} masked"
}

main() {
    cf_step "journal size" write_journal_settings
    cf_step "log rotation" write_rotation
    cf_attribute_bool cycleforge.core_dumps false
    # First the collector, then the pattern.
    if [[ "${REPLY}" == false ]]; then cf_step "crash collectors" mask_collectors; fi
    cf_step "core dumps" write_core_settings
}

cf_main main "$@"
