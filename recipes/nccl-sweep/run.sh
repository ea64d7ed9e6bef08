#!/usr/bin/env bash
# NCCL's collectives over all GPUs of the job, each with every message size and with data checking; the exit status is the
# worst verdict, by the bus bandwidth of the largest message.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/collective.sh
. "${JOBS_LIB}/collective.sh"
run_collectives
