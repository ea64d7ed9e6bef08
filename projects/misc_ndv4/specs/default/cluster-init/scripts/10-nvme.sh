#!/usr/bin/env bash
# Local NVMe disks as one scratch file system, now and at every boot.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/misc_ndv4"
readonly UNIT=cycleforge-nvme.service

write_configuration() {
    local mount_point wait_s expected
    cf_vm_size
    cf_load_figures "${FILES}/vm_sizes.tsv" "${REPLY}"
    if [[ "${CF_SIZE_KNOWN}" == false ]]; then
        cf_warn "VM size '${REPLY}' has no figures: taking the NVMe disks that are there, without waiting for a count"
    fi
    cf_attribute_int cycleforge.nvme.disks "${CF_FIGURES[nvme.count]:-0}" 0 64
    expected="${REPLY}"
    cf_attribute_path cycleforge.nvme.mount_point /nvme
    mount_point="${REPLY}"
    cf_attribute_int cycleforge.nvme.wait_s 120 0 900
    wait_s="${REPLY}"
    cf_write "${CF_CONF_DIR}/nvme.conf" 0644 <<CONF
mount_point=${mount_point}
expected_disks=${expected}
wait_s=${wait_s}
CONF
    cf_outcome_file "${expected} disks expected, mount point ${mount_point}"
}

install_unit() {
    local changed
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh nvme.sh
    changed="${CF_CHANGED}"
    cf_unit "${UNIT}" <"${FILES}/${UNIT}"
    cf_outcome "$((changed + CF_CHANGED)) files changed"
}

start_unit() {
    cf_own_unit "${UNIT}" "${CF_CONF_DIR}/nvme.conf:${TARGET}/nvme.sh:${CF_ROOT}/etc/systemd/system/${UNIT}"
    if cf_mounted "$(sed -n 's/^mount_point=//p' "${CF_CONF_DIR}/nvme.conf")"; then
        cf_outcome_file "mounted"
    else
        cf_outcome_file "nothing mounted; journalctl -u ${UNIT} names the disks and the reason"
    fi
}

main() {
    cf_attribute_bool cycleforge.nvme.enabled true
    if [[ "${REPLY}" == false ]]; then
        cf_step "remove NVMe unit" cf_drop_unit "${UNIT}" "${UNIT}"
        return
    fi
    cf_step "NVMe configuration" write_configuration
    cf_step "NVMe unit" install_unit
    cf_step "NVMe scratch" start_unit
}

cf_main main "$@"
