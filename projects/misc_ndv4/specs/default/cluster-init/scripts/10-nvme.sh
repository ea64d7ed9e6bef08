#!/usr/bin/env bash
# Local NVMe disks as one scratch file system, now and at every boot.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=vm_size.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/vm_size.sh"
# shellcheck source-path=SCRIPTDIR/../files source=packages.sh
. "${CYCLECLOUD_SPEC_PATH}/files/packages.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/misc_ndv4"
readonly UNIT=cycleforge-nvme.service
EXPECTED=0

write_configuration() {
    local mount_point wait_s size
    cf_vm_size
    size="${REPLY}"
    cf_size_figures cycleforge.vm_size.base "${size}"
    if [[ "${CF_SIZE_KNOWN}" == false ]]; then
        cf_warn "VM size '${size}' has no figures: taking the NVMe disks that are there, without waiting for a count"
    fi
    cf_attribute_int cycleforge.nvme.disks "${CF_FIGURES[nvme_disks]:-0}" 0 64
    EXPECTED="${REPLY}"
    cf_attribute_path cycleforge.nvme.mount_point /nvme
    mount_point="${REPLY}"
    cf_attribute_int cycleforge.nvme.wait_s 120 0 900
    wait_s="${REPLY}"
    cf_write "${CF_CONF_DIR}/nvme.conf" 0644 <<CONF
mount_point=${mount_point}
expected_disks=${EXPECTED}
wait_s=${wait_s}
CONF
    cf_outcome_file "${EXPECTED} disks expected, mount point ${mount_point}"
}

# Generic images of EL lack it. Without it the disks stay unused, and the unit says so.
provide_mdadm() {
    local -a disks=("${CF_ROOT}"/sys/block/nvme*n*)
    if command -v mdadm >/dev/null; then
        cf_outcome "in the image"
    elif ((EXPECTED < 2 && ${#disks[@]} < 2)); then
        cf_outcome "not needed for fewer than two disks"
    elif install_package mdadm; then
        cf_outcome "installed"
    else
        cf_warn "mdadm is not in the image and could not be installed; several disks cannot be joined without it"
        cf_outcome "missing"
    fi
}

install_unit() {
    local changed
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh nvme.sh nvme-disks.sh
    changed="${CF_CHANGED}"
    cf_unit "${UNIT}" <"${FILES}/${UNIT}"
    cf_outcome "$((changed + CF_CHANGED)) files changed"
}

# A unit that has failed since, at a boot without its disks for example, gets another attempt from every converge.
start_unit() {
    cf_own_unit "${UNIT}" \
        "${CF_CONF_DIR}/nvme.conf:${TARGET}/nvme.sh:${TARGET}/nvme-disks.sh:${CF_ROOT}/etc/systemd/system/${UNIT}"
    if ((CF_CHANGED == 0)) && ! systemctl is-active "${UNIT}" >/dev/null; then
        systemctl restart "${UNIT}" || cf_die "${UNIT} did not start" "'journalctl -u ${UNIT}' names the disks and the reason" \
            "correct the cause, then converge again"
    fi
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
    cf_step "mdadm" provide_mdadm
    cf_step "NVMe unit" install_unit
    cf_step "NVMe scratch" start_unit
}

cf_main main "$@"
