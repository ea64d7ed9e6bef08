#!/usr/bin/env bash
# shellcheck disable=SC2154  # lib/perftest.sh sets memory and devices
# Every InfiniBand port of one node with the same port of another, all ports at once, first one way, then the other; run by
# srun on both: `pair.sh NODE NODE FOLDER`. Each says what it has sent: lines `port DEVICE from NODE Gb/s MEMORY`, or
# `port DEVICE from NODE failed WORDS`, and at the very end `end NODE`.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/perftest.sh
. "${JOBS_LIB}/perftest.sh"
# Not those of fabric-links: what is left of one job must not answer the other.
readonly first_port=18715

# exchange INDEX FIRST SECOND: with the first node as the server, then with the second.
exchange() {
    local -r device="${devices[$1]}"
    local server client way=0
    for server in "$2" "$3"; do
        client="$2"
        if [[ "${server}" == "$2" ]]; then client="$3"; fi
        send "$1" "${device}" "${server}" "${client}" "$((first_port + 2 * $1 + way))"
        way=1
    done
}

# send INDEX DEVICE SERVER CLIENT PORT: this node's part of one way.
send() {
    local -r device="$2" server="$3" client="$4"
    local -r log="${folder}.${SLURMD_NODENAME}.${device}"
    local -a command=()
    local code=0 rate
    write_command "$1" "${limit}" "$5" -q 2 -D "${PORT_SECONDS}"
    if [[ "${SLURMD_NODENAME}" == "${server}" ]]; then
        "${command[@]}" >"${log}.server" 2>&1 || log "${device}: the server for ${client} ended with $?: $(words_in "${log}.server")"
        return
    fi
    as_client "${server}" "${log}.client" "$((limit * 5))" || code=$?
    rate="$(rate_in "${log}.client")"
    if ((code == 0)) && is_number "${rate}"; then
        printf 'port %s from %s %s %s\n' "${device}" "${client}" "${rate}" "${memory}"
    else
        printf 'port %s from %s failed ib_write_bw ended with %s: %s\n' "${device}" "${client}" "${code}" "$(words_in "${log}.client")"
    fi
}

main() {
    load_settings
    require SLURMD_NODENAME LINK_MESSAGE_BYTES PORT_SECONDS GROUP_TIMEOUT_S
    require_commands ib_write_bw
    local index
    local -a devices=() words=() running=()
    readonly folder="$3" limit="$((GROUP_TIMEOUT_S > 30 ? (GROUP_TIMEOUT_S - 20) / 2 : 5))"
    find_devices
    choose_memory
    for index in "${!devices[@]}"; do
        exchange "${index}" "$1" "$2" &
        running+=("$!")
    done
    if ((${#running[@]})); then wait "${running[@]}"; fi
    echo "end ${SLURMD_NODENAME}"
}
main "$@"
