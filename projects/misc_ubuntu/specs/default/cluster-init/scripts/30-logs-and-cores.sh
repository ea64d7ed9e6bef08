#!/usr/bin/env bash
# A job of weeks must not fill the system disk: bounded journal, no core dumps unless somebody asks for one.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

write_journal_settings() {
    local -r file="${CF_ROOT}/etc/systemd/journald.conf.d/90-cycleforge.conf"
    local max_mib
    cf_attribute_int cycleforge.journal.max_mib 1024 64 1048576
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

# A core of a training process is as large as its memory, hundreds of GiB. The soft limit 0 stops it; a user who wants
# one types `ulimit -c unlimited` and finds it in the working folder, because the pattern names no collector.
write_core_settings() {
    local -r limits="${CF_ROOT}/etc/security/limits.d/90-cycleforge-core.conf"
    local -r pattern="${CF_ROOT}/etc/sysctl.d/90-cycleforge-core.conf"
    local changed=0
    cf_attribute_bool cycleforge.core_dumps false
    if [[ "${REPLY}" == true ]]; then
        cf_remove "${limits}"
        changed=$((changed + CF_CHANGED))
        cf_remove "${pattern}"
        cf_outcome "left to the image, $((changed + CF_CHANGED)) own files removed"
        return
    fi
    cf_write "${limits}" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu). Soft only: ulimit -c unlimited asks for a core dump.
* soft core 0
root soft core 0
CONF
    changed=$((changed + CF_CHANGED))
    cf_write "${pattern}" 0644 <<'CONF'
# Written by CycleForge (misc_ubuntu). A collector would ignore the limit and keep every core.
kernel.core_pattern = core.%e.%p
fs.suid_dumpable = 0
CONF
    changed=$((changed + CF_CHANGED))
    cf_apply core-pattern "${pattern}" sysctl --quiet --load "${pattern}"
    cf_outcome "soft limit 0, $((changed + CF_CHANGED)) changes"
}

# Ubuntu's crash collector writes its own core pattern at every start.
mask_apport() {
    if [[ ! -e "${CF_ROOT}/lib/systemd/system/apport.service" && ! -e "${CF_ROOT}/usr/lib/systemd/system/apport.service" ]]; then
        cf_outcome "not installed"
    elif [[ "$(readlink "${CF_ROOT}/etc/systemd/system/apport.service" || true)" == /dev/null ]]; then
        cf_outcome "masked already"
    else
        systemctl mask --now apport.service
        cf_outcome "masked"
    fi
}

main() {
    cf_step "journal size" write_journal_settings
    cf_attribute_bool cycleforge.core_dumps false
    # First the collector, then the pattern: stopping it writes the kernel's default back.
    if [[ "${REPLY}" == false ]]; then cf_step "crash collector" mask_apport; fi
    cf_step "core dumps" write_core_settings
}

cf_main main "$@"
