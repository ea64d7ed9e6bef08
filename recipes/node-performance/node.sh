#!/usr/bin/env bash
# The tests of one node, run by srun: `node.sh host` for what the image brings, `node.sh container` for what a container does.
# What a test measures goes into the node's values, which run.sh judges against floors and the other nodes; what it can
# judge alone, and what it could not measure, goes into the node's checks.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/gpu-tools.sh
. "${JOBS_LIB}/gpu-tools.sh"
# shellcheck source=recipes/lib/fio.sh
. "${JOBS_LIB}/fio.sh"
# shellcheck source=recipes/node-performance/durations.sh
. ./durations.sh
# shellcheck source=recipes/node-performance/gpu.sh
. ./gpu.sh
# shellcheck source=recipes/node-performance/load.sh
. ./load.sh
# shellcheck source=recipes/node-performance/host.sh
. ./host.sh

# note CHECK VERDICT VALUE EXPECTED UNIT DETAIL [SOURCE]: a check that this node judges alone.
note() {
    record "${checks}" "$1" "$2" "$3" "$4" "$5" "$6" "${7:-}" "${SLURMD_NODENAME}"
}

# not_proven CHECK REASON: a test that could not be done is never a pass.
not_proven() {
    note "$1" error "" "" "" "not proven: $2"
}

# value CHECK ITEM VALUE UNIT TOOL DETAIL: a figure for run.sh to judge.
value() {
    append_line "${values}" "$1" "${SLURMD_NODENAME}" "$2" "$3" "$4" "$5" "$6"
}

# curve NAME UNIT X_UNIT X Y: one point of a curve of this node.
curve() {
    append_line "${curves}" "$1" "$2" "$3" "${SLURMD_NODENAME}" "$4" "$5"
}

# last_words FILE: what a tool said last, for people.
last_words() {
    local words
    words="$(grep -v '^[[:space:]]*$' "$1" 2>/dev/null | tail -n 1 | cut -c 1-160)" || words=""
    echo "${words:-it said nothing}"
}

# run_tests TEST...: one after the other, because each wants the node for itself. A test that breaks is an error of its
# own, and the others still run.
run_tests() {
    local test status
    for test in "$@"; do
        if ! declare -F "test_${test}" >/dev/null; then
            not_proven "${test}" "there is no test of that name"
            continue
        fi
        # In a process of its own that is no condition, because `set -e` does not hold in one.
        set +e
        (set -e && "test_${test}")
        status=$?
        set -e
        if ((status)); then not_proven "${test}" "the test broke off with ${status}, see the job's output"; fi
    done
}

main() {
    local -r where="${1:?host or container}"
    load_settings
    require results SLURMD_NODENAME GPUS_PER_NODE
    if [[ "${GPU_VENDOR:-}" == AMD ]]; then
        # shellcheck source=recipes/node-performance/amd.sh
        . ./amd.sh
    else
        # shellcheck source=recipes/node-performance/nvidia-load.sh
        . ./nvidia-load.sh
    fi
    local -r prefix="${results}/${SLURMD_NODENAME}.${where}"
    # Files of this node alone: several nodes cannot append to one file on NFS.
    readonly checks="${prefix}.tsv" values="${prefix}.values" curves="${prefix}.series"
    readonly work="${results}/${SLURMD_NODENAME}"
    mkdir -p "${work}"
    : >"${checks}"
    : >"${values}"
    : >"${curves}"
    # shellcheck disable=SC2153  # of run.sh
    local -r wanted="$([[ "${where}" == host ]] && echo "${HOST_TESTS}" || echo "${CONTAINER_TESTS}")"
    if [[ "${where}" == host ]]; then keep_node_facts; fi
    # shellcheck disable=SC2086  # one word per test
    run_tests ${wanted}
    touch "${prefix}.done"
}
main "$@"
