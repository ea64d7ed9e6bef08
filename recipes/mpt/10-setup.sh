#!/usr/bin/env bash
# Container image and tokenizer: staged once, so that the training needs no download. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"

main() {
    load_settings
    require STAGE_PATH CONTAINER TOKENIZER
    mkdir -p "${STAGE_PATH}/huggingface"
    import_image "${CONTAINER}"
    local image
    image="$(squash_path "${CONTAINER}")"
    export NVIDIA_VISIBLE_DEVICES=void MELLANOX_VISIBLE_DEVICES=void HF_HOME="${STAGE_PATH}/huggingface"
    srun --ntasks=1 --container-image="${image}" --container-mounts="${STAGE_PATH}:${STAGE_PATH}" \
        --container-env=NVIDIA_VISIBLE_DEVICES,MELLANOX_VISIBLE_DEVICES,HF_HOME \
        python3 -c 'import sys, transformers; transformers.AutoTokenizer.from_pretrained(sys.argv[1])' "${TOKENIZER}"
    log "tokenizer ${TOKENIZER} is in ${HF_HOME}"
}
main "$@"
