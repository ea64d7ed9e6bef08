#!/usr/bin/env bash
# Container image, Megatron-LM at the pinned commit and the tokenizer files. Safe to run again.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"

main() {
    load_settings
    require STAGE_PATH CONTAINER MEGATRON_URL MEGATRON_COMMIT TOKENIZER_URL
    mkdir -p "${STAGE_PATH}"
    import_image "${CONTAINER}"
    clone_at "${MEGATRON_URL}" "${MEGATRON_COMMIT}" "${STAGE_PATH}/Megatron-LM-${MEGATRON_COMMIT}"
    local file
    for file in vocab.json merges.txt; do
        download "${TOKENIZER_URL}/${file}" "${STAGE_PATH}/tokenizers/gpt2/${file}" || die "could not download ${file}"
    done
}
main "$@"
