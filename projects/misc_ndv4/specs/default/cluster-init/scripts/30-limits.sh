#!/usr/bin/env bash
# Open files and locked memory for jobs and for slurmd itself, and slurmd's place after our units.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

# Effective when slurmd starts, which happens after all cluster-init has finished.
write_slurmd_drop_in() {
    local nofile changed
    cf_attribute_int cycleforge.limits.nofile 1048576 1024 1048576
    nofile="${REPLY}"
    cf_unit slurmd.service.d/20-cycleforge-misc_ndv4.conf \
        < <(sed "s/^LimitNOFILE=.*/LimitNOFILE=${nofile}/" "${CYCLECLOUD_SPEC_PATH}/files/slurmd-misc_ndv4.conf")
    changed="${CF_CHANGED}"
    if ((changed)); then systemctl daemon-reload; fi
    CF_CHANGED="${changed}"
    cf_outcome_file "nofile ${nofile}, memlock unlimited"
}

main() {
    cf_step "open files" cf_limits
    cf_step "slurmd drop-in" write_slurmd_drop_in
}

cf_main main "$@"
