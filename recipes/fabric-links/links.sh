#!/usr/bin/env bash
# Every InfiniBand port of one node against itself, all ports at once; run by srun on every node.
# Writes `DEVICE <tab> Gb/s or failed <tab> memory <tab> detail` lines and, at the very end, a line `end`.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./lib/common.sh
readonly sys="${CF_SYS:-/sys}" first_port=18515 row='^ *[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ *$'

# find_devices: names of devices whose first port is InfiniBand, in $devices.
find_devices() {
    local port
    devices=()
    for port in "${sys}"/class/infiniband/*/ports/1; do
        if [[ -r "${port}/link_layer" && "$(<"${port}/link_layer")" == InfiniBand ]]; then
            port="${port%/ports/1}"
            devices+=("${port##*/}")
        fi
    done
}

# choose_memory: GPU memory where the floor is one for it and this build of perftest can; else the host's. A floor holds for
# its memory, so the other one is measured without.
choose_memory() {
    local help
    memory=host words=(-q 2 -D 10)
    if [[ "${LINK_GPU_MEMORY}" != 1 ]]; then return; fi
    # It ends 1 whatever happens.
    help="$(ib_write_bw --help 2>&1 || true)"
    if [[ "${help}" != *--use_cuda* ]]; then
        log "ib_write_bw of this image cannot use GPU memory; host memory is measured, which no floor holds for"
    elif [[ -d "${sys}/module/nvidia_peermem" ]]; then
        memory=gpu words=()
    elif [[ "${help}" == *--use_cuda_dmabuf* ]]; then
        memory=gpu words=(--use_cuda_dmabuf)
    else
        log "nvidia_peermem is not loaded; host memory is measured, which no floor holds for"
    fi
}

# measure INDEX: server and client on one device, pinned to its NUMA node.
measure() {
    local -r device="${devices[$1]}" port=$((first_port + $1))
    local server code=0 try numa=""
    local -a command=(timeout --kill-after=5 "${LINK_TIMEOUT_S}")
    if [[ -r "${sys}/class/infiniband/${device}/device/numa_node" ]]; then numa="$(<"${sys}/class/infiniband/${device}/device/numa_node")"; fi
    if [[ "${numa}" =~ ^[0-9]+$ ]] && command -v numactl >/dev/null; then command+=(numactl -N "${numa}" -m "${numa}"); fi
    command+=(ib_write_bw -s "${LINK_MESSAGE_BYTES}" -x 0 -F --report_gbits --perform_warm_up -d "${device}" -p "${port}" "${words[@]}")
    if [[ "${memory}" == gpu ]]; then command+=("--use_cuda=$1"); fi
    "${command[@]}" >"${folder}/${device}.server" 2>&1 &
    server=$!
    # The server needs a moment until it listens.
    for ((try = 0; try < 50; try++)); do
        code=0
        "${command[@]}" localhost >"${folder}/${device}.client" 2>&1 || code=$?
        if ((code == 0)) || ! grep -q "Couldn't connect" "${folder}/${device}.client" || ! kill -0 "${server}" 2>/dev/null; then break; fi
        sleep 0.2
    done
    kill "${server}" 2>/dev/null || true
    wait "${server}" 2>/dev/null || true
    echo "${code}" >"${folder}/${device}.code"
}

# result DEVICE: the line of a device. The average is the fourth number of the last row of numbers.
result() {
    local value="" code detail=""
    code="$(cat "${folder}/$1.code" 2>/dev/null || echo none)"
    if [[ "${code}" == 0 ]]; then value="$(grep -E "${row}" "${folder}/$1.client" | tail -n 1 | awk '{ print $4 }' || true)"; fi
    if ! is_number "${value}"; then
        detail="ib_write_bw ended with ${code}: $(grep -vE '^[-* ]*$' "${folder}/$1.client" 2>/dev/null | tail -n 1 | cut -c 1-160 || true)"
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
