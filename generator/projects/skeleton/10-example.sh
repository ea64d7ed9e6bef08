#!/usr/bin/env bash
# An example that works: greets whoever logs in on the node. Replace it by what your nodes need.
set -euo pipefail

# CycleCloud sets CYCLECLOUD_SPEC_PATH (where this spec lies on the node) and CYCLECLOUD_PROJECT_NAME. ROOT is empty on a
# node; set it to a folder to try the script elsewhere.
readonly wanted="${CYCLECLOUD_SPEC_PATH:?CycleCloud sets it}/files/motd.txt"
readonly target="${ROOT:-}/etc/motd.d/${CYCLECLOUD_PROJECT_NAME:?CycleCloud sets it}"

log() { printf '%s: %s\n' "${0##*/}" "$*"; }

main() {
    # The script may run again on a node that is set up already.
    if cmp --quiet "${wanted}" "${target}"; then
        log "${target} is as it should be"
        return
    fi
    install -D -m 0644 "${wanted}" "${target}"
    log "wrote ${target}"
}

main "$@"
