#!/usr/bin/env bash
set -euo pipefail
export CYCLECLOUD_HOME=/opt/cycle/jetpack PATH="/opt/cycle/jetpack/bin:${PATH}"
# Where the locker lacks a blob, the tests need no pauses between the tries.
export CYCLECLOUD_PROJECT_NAME="$1" CYCLECLOUD_SPEC_PATH="$2" CYCLEFORGE_POLL_S=0.05
for script in "${CYCLECLOUD_SPEC_PATH}"/scripts/*.sh; do
    cd "${CYCLECLOUD_SPEC_PATH}"
    bash "${script}"
done
