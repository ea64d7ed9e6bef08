#!/usr/bin/env bash
# Container image and Megatron-LM at the pinned commit. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"

main() {
    load_settings
    require STAGE_PATH CONTAINER MEGATRON_URL MEGATRON_COMMIT
    mkdir -p "${STAGE_PATH}"
    import_image "${CONTAINER}"
    clone_at "${MEGATRON_URL}" "${MEGATRON_COMMIT}" "${STAGE_PATH}/Megatron-LM-${MEGATRON_COMMIT}"
}
main "$@"
