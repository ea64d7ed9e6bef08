# shellcheck shell=bash
# How long the tests of a node take. Sourced by run.sh and node.sh.

# Seconds that a level takes at most. Source: DCGM's manual ("about 2 minutes", "about 15 minutes", hours).
readonly DCGM_LIMIT_S=(0 180 900 3600 14400)

# need_of_tests PERCENT: seconds that the tests take, those of DCGM so much of their own limit.
need_of_tests() {
    local test
    local -i seconds=0
    for test in ${HOST_TESTS} ${CONTAINER_TESTS}; do
        case "${test}" in
            load) seconds+=LOAD_S ;;
            dcgm) if [[ "${DCGM_LEVEL}" =~ ^[1-4]$ ]]; then seconds+=$((DCGM_LIMIT_S[DCGM_LEVEL] * $1 / 100)); fi ;;
            nvme) seconds+=$((NVME_S * 2)) ;;
            *) seconds+=60 ;;
        esac
    done
    echo "${seconds}"
}
