# shellcheck shell=bash
# What a framework does with an option that it does not know. Sourced by the stand-ins; the lists are those of the
# pinned versions: tests/jobs/option_names.py.

# known_options PROGRAM ARGUMENT...: ends the stand-in as argparse ends a program.
known_options() {
    local -r list="${BASH_SOURCE[0]%/*}/../options/$1.txt"
    local unknown
    unknown="$(printf '%s\n' "${@:2}" | grep -E '^--[a-z]' | sed 's/=.*//' | grep -vxFf <(grep -v '^#' "${list}" | tr ' ' '\n') || true)"
    if [[ -n "${unknown}" ]]; then
        echo "$1: error: unrecognized arguments: ${unknown//$'\n'/ }" >&2
        exit 2
    fi
}

# known_overrides ARGUMENT...: LLM Foundry's `key=value`; the first part of a key is a field of its configuration.
known_overrides() {
    local -r list="${BASH_SOURCE[0]%/*}/../options/train.txt"
    local unknown
    unknown="$(printf '%s\n' "$@" | sed 's/[.=].*//' | grep -vxFf <(grep -v '^#' "${list}" | tr ' ' '\n') || true)"
    if [[ -n "${unknown}" ]]; then
        echo "ValueError: Unused parameter(s) found in cfg: ${unknown//$'\n'/ }" >&2
        exit 1
    fi
}
