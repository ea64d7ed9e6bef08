#!/usr/bin/env bash
# Bandwidth of the host's memory by STREAM, as Azure's node health checks measure it. Sourced by checks.sh; never beside a job.
#
# A floor belongs to its program: the published ones were measured with the builds in the container image of Azure's node
# health checks, which its HPC images carry, so nothing else is measured here and nothing is downloaded.
# Source: Azure/azurehpc-health-checks customTests/azure_cpu_stream.nhc, customTests/stream/Makefile
# shellcheck disable=SC2034 # OUTCOME is a result for tools.sh

readonly STREAM_CONTAINER=cycleforge-stream STREAM_LIMIT_S=120
readonly STREAM_ROW='^(Copy|Scale|Add|Triad):[[:space:]]+([0-9]+(\.[0-9]+)?)'

# docker ends 125 when it could start nothing: no service, no such image on this node.
# Source: https://docs.docker.com/engine/containers/run/#exit-status
outcome_of_stream() {
    if (($1 == 125)); then OUTCOME=not_measured; fi
}

# run_stream PROGRAM THREADS PLACES: in a container that ends with this process, or by itself. --init: a program that is a
# container's first process ignores signals. The container of container.sh asks for GPUs, which these nodes do not have.
run_stream() {
    local -r program="$1" threads="$2" places="{${3//,/\},\{}}"
    docker rm --force "${STREAM_CONTAINER}" >/dev/null 2>&1 || true
    run_for_result stream "$((STREAM_LIMIT_S + 10))" 'Triad:' docker run --rm --init --pull never --network none \
        --name "${STREAM_CONTAINER}" --env OMP_SCHEDULE=static --env OMP_DYNAMIC=false --env OMP_MAX_ACTIVE_LEVELS=1 \
        --env OMP_STACKSIZE=256M --env OMP_PROC_BIND=true --env "OMP_NUM_THREADS=${threads}" --env "OMP_PLACES=${places}" \
        --entrypoint timeout "${AZNHC_IMAGE}" "${STREAM_LIMIT_S}" "${AZNHC_BIN}/${program}"
}

# floor_mb_per_s=N program=NAME threads=N places=N,N,...: each of STREAM's four functions has to reach the floor. The slowest
# counts; the second attempt decides.
check_cpu_stream() {
    local -r floor="${GIVEN[floor_mb_per_s]:-}"
    local line value label least="" function="" attempt
    if [[ -z "${floor}" ]]; then
        no_baseline cpu_stream MB/s
        return
    fi
    for attempt in 1 2; do
        if ! run_stream "${GIVEN[program]}" "${GIVEN[threads]}" "${GIVEN[places]}"; then
            record_outcome cpu_stream
            return
        fi
        if [[ "${OUTPUT}" == *"Failed Validation"* ]]; then
            # Wrong results are a hardware fault however fast they come.
            record service cpu_stream_wrong_values "" "" "" "" "STREAM computed wrong values"
            return
        fi
        least="" function=""
        while IFS= read -r line; do
            if [[ ! "${line}" =~ ${STREAM_ROW} ]]; then continue; fi
            label="${BASH_REMATCH[1]}" value="${BASH_REMATCH[2]}"
            if [[ -z "${least}" ]] || cf_compare "${value}" lt "${least}"; then function="${label}" least="${value}"; fi
        done <<<"${OUTPUT}"
        if cf_compare "${least}" ge "${floor}"; then break; fi
    done
    judge cpu_stream "${least}" ge "${floor}" MB/s fail "${function}, slowest of four, attempt ${attempt}"
}
