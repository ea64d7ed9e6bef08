#!/usr/bin/env bash
# Requests that an NFS client keeps in flight per connection. NetApp Files wants 128 instead of the kernel's 65536.
# Source: https://learn.microsoft.com/azure/azure-netapp-files/performance-linux-concurrency-session-slots
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

# The module option holds for every later boot. The running value counts only for mounts that come after it; mounts in
# use are left alone.
set_slots() {
    local -r running="${CF_ROOT}/proc/sys/sunrpc/tcp_max_slot_table_entries"
    local slots now="module not loaded"
    cf_attribute_int cycleforge.nfs.slots 128 2 65536
    slots="${REPLY}"
    cf_write "${CF_ROOT}/etc/modprobe.d/90-cycleforge-sunrpc.conf" 0644 <<CONF
# Written by CycleForge (misc_ndv4).
options sunrpc tcp_max_slot_table_entries=${slots}
CONF
    if [[ -w "${running}" ]]; then
        now="$(<"${running}")"
        if [[ "${now}" != "${slots}" ]]; then printf '%s\n' "${slots}" >"${running}"; fi
        now="was ${now}"
    fi
    cf_outcome_file "${slots} slots (running value ${now})"
}

main() { cf_step "NFS slots" set_slots; }

cf_main main "$@"
