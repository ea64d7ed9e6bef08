#!/usr/bin/env bash
# MIG slices, now and at every boot, where the partition asks for them.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=vm_size.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/vm_size.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/misc_ndv4"
readonly UNIT=cycleforge-mig.service
readonly DROP_IN=slurmd.service.d/cycleforge-mig.conf
PROFILE=""

write_configuration() {
    cf_attribute cycleforge.mig.profile ""
    PROFILE="${REPLY}"
    if [[ -z "${PROFILE}" ]]; then
        cf_outcome "none"
        return
    fi
    if [[ ! "${PROFILE}" =~ ^[1-9]g\.[1-9][0-9]{0,2}gb$ ]]; then
        cf_die "attribute cycleforge.mig.profile is '${PROFILE}', expected a profile such as 1g.10gb" "" \
            "correct mig_profile in the definition and build again"
    fi
    cf_attribute_int cycleforge.mig.per_gpu 0 1 7
    local -r per_gpu="${REPLY}"
    cf_vm_size
    cf_size_figures cycleforge.vm_size.base "${REPLY}"
    if [[ "${CF_FIGURES[gpu_vendor]:-}" != NVIDIA ]] || ((${CF_FIGURES[gpus]:-0} == 0)); then
        cf_die "the VM size of this node is not the one that MIG was planned for" "Slurm was told of a fixed number of slices" \
            "set vm_size in the definition, build and import"
    fi
    cf_write "${CF_CONF_DIR}/mig.conf" 0644 <<CONF
profile=${PROFILE}
per_gpu=${per_gpu}
gpus=${CF_FIGURES[gpus]}
CONF
    cf_outcome_file "${per_gpu} slices of ${PROFILE} on each of ${CF_FIGURES[gpus]} GPUs"
}

remove_unit() {
    cf_drop_unit "${UNIT}" "${UNIT}" "${DROP_IN}"
    cf_remove "${CF_CONF_DIR}/mig.conf"
    cf_remove "${CF_CONF_DIR}/mig.sh"
    cf_outcome "no slices"
}

install_unit() {
    local changed
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh mig.sh
    changed="${CF_CHANGED}"
    cf_unit "${UNIT}" <"${FILES}/${UNIT}"
    changed=$((changed + CF_CHANGED))
    cf_unit "${DROP_IN}" <"${FILES}/slurmd-mig.conf"
    changed=$((changed + CF_CHANGED))
    cf_write "${CF_CONF_DIR}/mig.sh" 0644 <"${FILES}/mig-job.sh"
    cf_outcome "$((changed + CF_CHANGED)) files changed"
}

# A unit that has failed since, or whose node was rebooted for it, gets another attempt from every converge.
start_unit() {
    cf_own_unit "${UNIT}" "${CF_CONF_DIR}/mig.conf:${TARGET}/mig.sh:${CF_ROOT}/etc/systemd/system/${UNIT}"
    if ((CF_CHANGED == 0)) && ! systemctl is-active "${UNIT}" >/dev/null; then
        systemctl restart "${UNIT}" || cf_die "${UNIT} did not start" "'journalctl -u ${UNIT}' has the reason" \
            "correct the cause, then converge again"
    fi
    cf_outcome_file "${UNIT}"
}

main() {
    cf_step "MIG configuration" write_configuration
    if [[ -z "${PROFILE}" ]]; then
        cf_step "MIG unit" remove_unit
        return
    fi
    cf_step "MIG unit" install_unit
    cf_step "MIG slices" start_unit
}

cf_main main "$@"
