#!/usr/bin/env bash
# Open files and locked memory for jobs and for slurmd itself, and slurmd's place after our units.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

# Effective when slurmd starts, which happens after all cluster-init has finished.
write_slurmd_drop_in() {
    cf_unit slurmd.service.d/20-cycleforge-misc_ndv4.conf <"${CYCLECLOUD_SPEC_PATH}/files/slurmd-misc_ndv4.conf"
    local -r changed="${CF_CHANGED}"
    if ((changed)); then systemctl daemon-reload; fi
    CF_CHANGED="${changed}"
    cf_outcome_file "slurmd.service.d/20-cycleforge-misc_ndv4.conf"
}

main() {
    cf_step "open files" cf_limits
    cf_step "slurmd drop-in" write_slurmd_drop_in
}

cf_main main "$@"
