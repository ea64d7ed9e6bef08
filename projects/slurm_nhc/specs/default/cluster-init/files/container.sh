#!/usr/bin/env bash
# The container of Azure's node health checks (AzNHC). Some floors were measured in it, with its own nccl-tests, perftest
# and nvbandwidth; the x86 HPC images have pulled it. Sourced by checks.sh.
#
# Source: Azure/azurehpc-health-checks, run-health-checks.sh and dockerfile/azure-nvrt-nhc.dockerfile;
# Azure/azhpc-images, components/install_health_checks.sh

readonly AZNHC_IMAGE=mcr.microsoft.com/aznhc/aznhc-nv
# Places in the container.
# shellcheck disable=SC2034 # the files that source this run them
readonly AZNHC_ALL_REDUCE=/opt/nccl-tests/build/all_reduce_perf AZNHC_BIN=/azure-nhc/bin
CONTAINER=""

# start_container: 0 when it runs, with its name in CONTAINER; otherwise why not, in REPLY. Nothing is ever pulled. It ends
# by itself when the run has to be over, so that a killed run leaves none behind.
start_container() {
    local code=0 left_s
    local -r name="cycleforge-health-${BASHPID}"
    if [[ -n "${CONTAINER}" ]]; then return 0; fi
    run_tool 20 docker image inspect --format '{{.Id}}' "${AZNHC_IMAGE}" || code=$?
    if ((code == 1)) && [[ "${OUTPUT,,}" == *"no such image"* ]]; then
        REPLY="the container of Azure's health checks is not on this image"
        return 1
    elif ((code != 0)); then
        why_not "${code}" docker
        return 1
    fi
    if ! seconds_left 3600; then
        why_not "${OUT_OF_TIME}" docker
        return 1
    fi
    left_s="${REPLY}"
    run_tool 60 docker run --detach --rm --pull=never --name "${name}" --privileged --net=host --gpus all --shm-size=8g \
        --cap-add=SYS_ADMIN --cap-add=SYS_NICE --entrypoint sleep "${AZNHC_IMAGE}" "${left_s}" || code=$?
    CONTAINER="${name}"
    if ((code != 0)); then
        why_not "${code}" docker
        local -r why="${REPLY}"
        stop_container
        REPLY="${why}"
        return 1
    fi
}

# stop_container: with everything in it. A tool that is asked to end through docker exec may live on.
stop_container() {
    local -r name="${CONTAINER}"
    CONTAINER=""
    if [[ -n "${name}" ]]; then timeout --kill-after=2 20 docker rm --force "${name}" >/dev/null 2>&1 || true; fi
}
