#!/usr/bin/env bash
# Every InfiniBand port of one node against itself, all ports at once; run by srun on every node.
# Writes `DEVICE <tab> Gb/s or failed <tab> memory <tab> detail` lines and, at the very end, a line `end`.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/perftest.sh
. "${JOBS_LIB}/perftest.sh"
readonly first_port=18515

# measure INDEX: server and client on one device.
measure() {
    local -r device="${devices[$1]}"
    local server code=0
    local -a command=() more=(--perform_warm_up)
    # With host memory more than one queue, and for a while; floors of GPU memory are of the plain command.
    if [[ "${memory}" == host ]]; then more+=(-q 2 -D 10); fi
    write_command "$1" "${LINK_TIMEOUT_S}" "$((first_port + $1))" "${more[@]}"
    "${command[@]}" >"${folder}/${device}.server" 2>&1 &
    server=$!
    # The server needs a moment until it listens.
    as_client localhost "${folder}/${device}.client" 50 "${server}" || code=$?
    kill "${server}" 2>/dev/null || true
    wait "${server}" 2>/dev/null || true
    echo "${code}" >"${folder}/${device}.code"
}

# result DEVICE: the line of a device.
result() {
    local value="" code=none detail=""
    if [[ -r "${folder}/$1.code" ]]; then read -r code <"${folder}/$1.code" || true; fi
    if [[ "${code}" == 0 ]]; then value="$(rate_in "${folder}/$1.client")"; fi
    if ! is_number "${value}"; then
        detail="ib_write_bw ended with ${code}: $(words_in "${folder}/$1.client")"
        value=failed
    fi
    printf '%s\t%s\t%s\t%s\n' "$1" "${value}" "${memory}" "${detail}"
}

main() {
    load_settings
    require results SLURMD_NODENAME LINK_MESSAGE_BYTES LINK_TIMEOUT_S
    require_commands ib_write_bw
    keep_node_facts
    readonly folder="${results}/links/${SLURMD_NODENAME}"
    mkdir -p "${folder}"
    local index
    find_devices
    choose_memory
    for index in "${!devices[@]}"; do measure "${index}" & done
    wait
    for index in "${!devices[@]}"; do result "${devices[index]}"; done >"${folder}/result.partial"
    echo end >>"${folder}/result.partial"
    mv "${folder}/result.partial" "${results}/links/${SLURMD_NODENAME}.tsv"
}
main "$@"
