#!/usr/bin/env bash
# Container scratch on the fastest local disk, now and at every boot.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/pyxis_enroot"
readonly UNIT=cycleforge-enroot.service
# An import holds an image three times, and nvcr.io's PyTorch image has about 20 GB.
# Sources: https://github.com/d4l3k/torchdrive/pull/4, enroot's docker.sh (layers, squash file, container).
readonly MIN_FREE_GIB=60

write_configuration() {
    local scratch nvme mount_home credentials min_free role
    cf_attribute_path cycleforge.enroot.scratch ""
    scratch="${REPLY}"
    cf_attribute_path cycleforge.nvme.mount_point /nvme
    nvme="${REPLY}"
    cf_attribute_path cycleforge.enroot.credentials ""
    credentials="${REPLY}"
    cf_attribute_int cycleforge.enroot.min_free_gib "${MIN_FREE_GIB}" 0 100000
    min_free="${REPLY}"
    cf_attribute cycleforge.enroot.mount_home leave
    mount_home="${REPLY,,}"
    if [[ "${mount_home}" != @(leave|true|false) ]]; then
        cf_die "attribute cycleforge.enroot.mount_home is '${REPLY}', expected leave, true or false" "" \
            "correct it in the definition and build again"
    fi
    cf_role
    role="${REPLY}"
    cf_write "${CF_CONF_DIR}/enroot.conf" 0644 <<CONF
scratch=${scratch}
nvme_mount_point=${nvme}
credentials=${credentials}
min_free_gib=${min_free}
mount_home=${mount_home}
role=${role}
CONF
    cf_outcome_file "scratch ${scratch:-chosen at boot}"
}

install_unit() {
    local changed
    cf_install_files "${FILES}" "${TARGET}" cycleforge.sh plugstack.sh check.sh enroot.sh
    changed="${CF_CHANGED}"
    cf_unit "${UNIT}" <"${FILES}/${UNIT}"
    changed=$((changed + CF_CHANGED))
    cf_unit slurmd.service.d/20-cycleforge-pyxis_enroot.conf <"${FILES}/slurmd-pyxis_enroot.conf"
    cf_outcome "$((changed + CF_CHANGED)) files changed"
}

# Run here as a script, so that its lines stand in the converge's own log; slurmd pulls the unit in at every boot.
prepare_now() {
    systemctl --quiet --no-reload enable "${UNIT}"
    systemctl daemon-reload
    bash "${TARGET}/enroot.sh"
}

main() {
    cf_step "enroot configuration" write_configuration
    cf_step "enroot unit" install_unit
    cf_step "container scratch" prepare_now
}

cf_main main "$@"
