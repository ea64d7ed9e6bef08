#!/usr/bin/env bash
# All checks, for the engine: every configuration sources this file in its first line and then calls `cycleforge CHECK
# KEY=VALUE...` once per line. Works the same in LBNL NHC and in the built-in runner of engine.sh.
#
# Environment: CYCLEFORGE_ROWS (file for the records), CYCLEFORGE_BUDGET_S (seconds for the whole run),
# CYCLEFORGE_PATH (NHC replaces PATH), CYCLEFORGE_SINCE_S (when somebody last said that the node is repaired, in seconds
# since 1970, or 0: what a log or a counter tells from before it is over). A value that nobody published is written null and arrives empty.
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib disable=SC1091,SC2034

PATH="${CYCLEFORGE_PATH:-${PATH}}"
# shellcheck source=cycleforge.sh
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"
# shellcheck source=verdicts.sh
. "${BASH_SOURCE[0]%/*}/verdicts.sh"
# shellcheck source=tools.sh
. "${BASH_SOURCE[0]%/*}/tools.sh"
# shellcheck source=kernel-log.sh
. "${BASH_SOURCE[0]%/*}/kernel-log.sh"
# shellcheck source=checks-node.sh
. "${BASH_SOURCE[0]%/*}/checks-node.sh"
# shellcheck source=checks-infiniband.sh
. "${BASH_SOURCE[0]%/*}/checks-infiniband.sh"
# shellcheck source=smi.sh
. "${BASH_SOURCE[0]%/*}/smi.sh"
# shellcheck source=checks-gpu.sh
. "${BASH_SOURCE[0]%/*}/checks-gpu.sh"
# shellcheck source=checks-nvlink.sh
. "${BASH_SOURCE[0]%/*}/checks-nvlink.sh"
# shellcheck source=checks-mig.sh
. "${BASH_SOURCE[0]%/*}/checks-mig.sh"
# shellcheck source=checks-xid.sh
. "${BASH_SOURCE[0]%/*}/checks-xid.sh"
# shellcheck source=checks-gpu-fabric.sh
. "${BASH_SOURCE[0]%/*}/checks-gpu-fabric.sh"
# shellcheck source=checks-topology.sh
. "${BASH_SOURCE[0]%/*}/checks-topology.sh"
# shellcheck source=container.sh
. "${BASH_SOURCE[0]%/*}/container.sh"
# shellcheck source=checks-dcgm.sh
. "${BASH_SOURCE[0]%/*}/checks-dcgm.sh"
# shellcheck source=checks-amd.sh
. "${BASH_SOURCE[0]%/*}/checks-amd.sh"
# shellcheck source=checks-deep.sh
. "${BASH_SOURCE[0]%/*}/checks-deep.sh"
# shellcheck source=checks-nccl.sh
. "${BASH_SOURCE[0]%/*}/checks-nccl.sh"
# shellcheck source=checks-fabric.sh
. "${BASH_SOURCE[0]%/*}/checks-fabric.sh"
# shellcheck source=checks-rocm.sh
. "${BASH_SOURCE[0]%/*}/checks-rocm.sh"
# shellcheck source=checks-stream.sh
. "${BASH_SOURCE[0]%/*}/checks-stream.sh"

# cycleforge CHECK [KEY=VALUE...]: one line of the configuration. A check that fails ends in the engine's die(), so that
# NHC counts and logs it as one of its own.
cycleforge() {
    local -r name="$1"
    local -A GIVEN=()
    local word code=0 noglob=off
    if [[ -o noglob ]]; then noglob=on; fi
    local IFS=$' \t\n'
    set +f
    shift
    for word in "$@"; do
        if [[ "${word#*=}" != null ]]; then GIVEN["${word%%=*}"]="${word#*=}"; fi
    done
    FAILED_TEXT=""
    printf '@begin%s%s\n' "${FIELD}" "${name}" >>"${CYCLEFORGE_ROWS}"
    if declare -F "check_${name}" >/dev/null; then
        "check_${name}" || code=$?
        if ((code != 0)); then not_measured "${name}" "the check itself ended with exit code ${code}"; fi
    else
        not_measured "${name}" "this version has no such check"
    fi
    printf '@end%s%s\n' "${FIELD}" "${name}" >>"${CYCLEFORGE_ROWS}"
    if [[ "${noglob}" == on ]]; then set -f; fi
    if [[ -n "${FAILED_TEXT}" ]]; then die 1 "${FAILED_TEXT}"; fi
}
