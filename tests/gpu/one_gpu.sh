#!/usr/bin/env bash
# The quick checks of a node, with its own engine, and nothing that they lead to: no drain, no Slurm.
#
#   one_gpu.sh PROJECT-FOLDER CONFIGURATION RECORDS
#
# CYCLEFORGE_ROOT is a folder that stands for the machine. Each record is one line of JSON, as in quick.json of a node.
# shellcheck source-path=SCRIPTDIR disable=SC1091,SC2034,SC2154
set -euo pipefail
readonly HERE="$1"
for part in cycleforge verdicts results engine standing drain; do
    # shellcheck source=/dev/null
    . "${HERE}/${part}.sh"
done
CF_PROJECT=test-gpu
readonly RESULTS="${CF_STATE_DIR}/health" RUN_DIR="${CF_ROOT}/run/cycleforge"
mkdir -p "${RESULTS}" "${RUN_DIR}"
CF_CONF=([unmeasured]=report [size_known]=true)
NOTES=([repaired]=0)
start_results quick
run_checks "$2" 60
conclude
log_run
printf '%s\n' "${RECORDS[@]}" >"$3"
