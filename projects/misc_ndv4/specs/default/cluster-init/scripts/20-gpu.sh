#!/usr/bin/env bash
# GPU persistence mode and clocks, now and at every boot.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=vm_size.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/vm_size.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/misc_ndv4"
readonly UNIT=cycleforge-gpu.service

write_configuration() {
    local clocks persistence
    cf_attribute cycleforge.gpu.clocks max
    clocks="${REPLY}"
    if [[ ! "${clocks}" =~ ^(max|default|lock:[1-9][0-9]{2,3})$ ]]; then
        cf_die "attribute cycleforge.gpu.clocks is '${clocks}', expected max, default or lock:<MHz>" "" \
            "correct it in the definition and build again"
    fi
    cf_attribute_bool cycleforge.gpu.persistence true
    persistence="${REPLY}"
    cf_vm_size
    cf_size_figures cycleforge.vm_size.base "${REPLY}"
    cf_write "${CF_CONF_DIR}/gpu.conf" 0644 <<CONF
clocks=${clocks}
persistence=${persistence}
expected_gpus=${CF_FIGURES[gpus]:-0}
vendor=${CF_FIGURES[gpu_vendor]:-}
CONF
    cf_outcome_file "clocks ${clocks}, persistence ${persistence}"
}

install_unit() {
    local changed
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh gpu.sh
    changed="${CF_CHANGED}"
    cf_unit "${UNIT}" <"${FILES}/${UNIT}"
    changed=$((changed + CF_CHANGED))
    cf_write "${CF_ROOT}/etc/udev/rules.d/90-cycleforge-gpu.rules" 0644 <"${FILES}/90-cycleforge-gpu.rules"
    cf_outcome "$((changed + CF_CHANGED)) files changed"
}

# A unit that has failed since gets another attempt from every converge.
start_unit() {
    cf_own_unit "${UNIT}" "${CF_CONF_DIR}/gpu.conf:${TARGET}/gpu.sh:${CF_ROOT}/etc/systemd/system/${UNIT}"
    if ((CF_CHANGED == 0)) && ! systemctl is-active "${UNIT}" >/dev/null; then
        systemctl restart "${UNIT}" || cf_die "${UNIT} did not start" "'journalctl -u ${UNIT}' has the reason" \
            "correct the cause, then converge again"
    fi
    cf_outcome_file "${UNIT}"
}

main() {
    cf_step "GPU configuration" write_configuration
    cf_step "GPU unit" install_unit
    cf_step "GPU settings" start_unit
}

cf_main main "$@"
