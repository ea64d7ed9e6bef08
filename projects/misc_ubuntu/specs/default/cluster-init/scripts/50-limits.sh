#!/usr/bin/env bash
# Open files for jobs. On every role, because Slurm carries the limits of the submitting shell into the job.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

main() { cf_step "open files" cf_limits; }

cf_main main "$@"
