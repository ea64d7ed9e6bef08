# shellcheck shell=bash
# Reads the output of nccl-tests and judges it. Sourced by run.sh.

# bytes_of SIZE: 16G -> 17179869184, the way nccl-tests reads sizes.
bytes_of() {
    local -r number="${1%[KMGkmg]}"
    [[ "${number}" =~ ^[0-9]+$ ]] || return 1
    case "${1: -1}" in
        K | k) echo $((number * 1024)) ;;
        M | m) echo $((number * 1024 * 1024)) ;;
        G | g) echo $((number * 1024 * 1024 * 1024)) ;;
        *) echo "${number}" ;;
    esac
}

# used_algorithm FOLDER: what rank 0 and the others logged; the counts of special channels decide.
used_algorithm() {
    local -a logs=("$1"/nccl.*.log)
    [[ -e "${logs[0]}" ]] || return 0
    if grep -qE '[^0-9][1-9][0-9]* collnet channels' "${logs[@]}"; then
        echo collnet
    elif grep -qE '[^0-9][1-9][0-9]* nvls channels' "${logs[@]}"; then
        echo nvls
    else
        echo ring_tree
    fi
}

# judge_all_reduce LOG FILE: records the verdicts; sets bus_bandwidth and algorithm.
judge_all_reduce() {
    local -r output="$1" file="$2"
    local bytes wrong average row verdict note=""
    bytes="$(bytes_of "${MESSAGE_SIZE}")" || die "message size ${MESSAGE_SIZE} is not a valid size"
    algorithm="$(used_algorithm "$(dirname "${output}")")"
    # One row per size: size count type redop root, then time algbw busbw #wrong out of place and in place.
    row="$(awk -v bytes="${bytes}" '$1 == bytes && NF == 13 { print }' "${output}" | tail -n 1)"
    if [[ -z "${row}" ]]; then
        record "${file}" all_reduce error "" "" "" "no row of 13 columns for ${bytes} bytes in the output"
        return
    fi
    bus_bandwidth="$(awk '{ print $8 }' <<<"${row}")"
    wrong="$(awk '{ print $9 " " $13 }' <<<"${row}")"
    average="$(awk -F ':' '/^# Avg bus bandwidth/ { gsub(/ /, "", $2); print $2 }' "${output}")"
    verdict=fail
    if [[ "${wrong}" == "0 0" ]]; then verdict=pass; fi
    record "${file}" wrong_values "${verdict}" "${wrong}" "0 0" "values out of and in place" "any other number is a hardware fault"
    verdict=fail
    if grep -qE '^# Out of bounds values *: *0 +OK' "${output}"; then verdict=pass; fi
    record "${file}" out_of_bounds "${verdict}" "$(grep -E '^# Out of bounds values' "${output}" || true)" "0 OK" "" ""

    if [[ "${BASELINE_METRIC}" == "avg busbw" ]]; then bus_bandwidth="${average}"; fi
    local warn="${BASELINE_WARN}" fail="${BASELINE_FAIL}"
    if [[ -z "${BASELINE_METRIC}" ]]; then
        note="no published figure for this VM size, node count and message size"
    elif [[ -n "${BASELINE_ALGORITHM}" && "${BASELINE_ALGORITHM}" != "${algorithm}" ]]; then
        note="the figure holds for ${BASELINE_ALGORITHM}, this run used ${algorithm:-an unknown algorithm}"
        warn="" fail=""
    elif [[ "${BASELINE_MESSAGE_SIZE}" != "${MESSAGE_SIZE}" ]]; then
        note="the figure holds for ${BASELINE_MESSAGE_SIZE}"
        warn="" fail=""
    fi
    verdict="$(judge "${bus_bandwidth}" "${warn}" "${fail}")"
    record "${file}" all_reduce "${verdict}" "${bus_bandwidth}" "${BASELINE_EXPECTED:-${warn:-${fail}}}" GB/s "${note:-source ${BASELINE_SOURCE}}"
}
