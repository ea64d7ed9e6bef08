#!/usr/bin/env bash
# enroot and pyxis where the platform lacks them: EL 9 and slurm projects before 4.0.3. Nothing is installed twice.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=blobs.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/blobs.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly CF_PROJECT_CACHE="${CF_ROOT}/var/cache/cycleforge/pyxis_enroot"
# shellcheck source-path=SCRIPTDIR/../files source=plugstack.sh disable=SC1091
. "${FILES}/plugstack.sh"
# shellcheck source-path=SCRIPTDIR/../files source=install-enroot.sh disable=SC1091
. "${FILES}/install-enroot.sh"
# shellcheck source-path=SCRIPTDIR/../files source=install-pyxis.sh disable=SC1091
. "${FILES}/install-pyxis.sh"

main() {
    local family
    cf_os
    family="${REPLY%% *}"
    if [[ "${family}" == unknown ]]; then
        cf_log "system ${REPLY#unknown }: no packages are installed here, what is there is used"
    fi
    cf_role
    if [[ "${REPLY}" == scheduler ]]; then
        # srun on the scheduler needs the plug-in; containers themselves do not run there.
        cf_log "containers do not run on the scheduler, enroot is not needed"
    else
        cf_step "enroot" install_enroot "${family}"
    fi
    cf_step "pyxis" install_pyxis "${family}"
}

cf_main main "$@"
