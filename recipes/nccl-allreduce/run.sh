#!/usr/bin/env bash
# NCCL all-reduce over all GPUs of the job with data checking; the exit status is the verdict on the bus bandwidth.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/collective.sh
. "${JOBS_LIB}/collective.sh"
run_collectives
