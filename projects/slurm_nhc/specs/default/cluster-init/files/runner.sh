#!/usr/bin/env bash
# The built-in runner, for nodes without LBNL NHC: reads the same configuration and runs our checks, nothing else.
#
#   runner.sh FILE
#
# Lines are `mask || check`, as in NHC; only the mask `*` and the two kinds of check that CycleForge writes are known here.
# Exit code: 0 all passed, otherwise how many lines failed (at most 100).
FAILED=0

die() {
    printf 'ERROR:  built in:  Health check failed:  %s\n' "${*:2}"
    FAILED=$((FAILED + 1))
}

trim() {
    REPLY="${1#"${1%%[![:space:]]*}"}"
    REPLY="${REPLY%"${REPLY##*[![:space:]]}"}"
}

while IFS= read -r line || [[ -n "${line}" ]]; do
    trim "${line}"
    line="${REPLY}"
    if [[ -z "${line}" || "${line}" == "#"* ]]; then continue; fi
    trim "${line%%||*}"
    mask="${REPLY}"
    trim "${line#*||}"
    if [[ "${mask}" == '*' && "${REPLY}" =~ ^(\.|cycleforge)\  ]]; then
        eval "${REPLY}"
    else
        die 1 "this line needs LBNL NHC: ${line}"
    fi
done <"$1"
exit "$((FAILED > 100 ? 100 : FAILED))"
