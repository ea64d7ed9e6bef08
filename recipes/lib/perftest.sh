# shellcheck shell=bash disable=SC2034
# ib_write_bw of perftest on the InfiniBand ports of this node. Sourced by what runs on a node, after common.sh.
# Options: linux-rdma/perftest, src/perftest_parameters.c (usage); the row of its table is
# `#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]`, by blanks and tabs (REPORT_FMT in
# src/perftest_parameters.h).
readonly sys="${CF_SYS:-/sys}"

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

# choose_memory: GPU memory where LINK_GPU_MEMORY asks for it and this build of perftest can; else the host's. A floor holds
# for its memory, so the other one is measured without. Sets memory, and words for GPU memory.
choose_memory() {
    local help
    memory=host words=()
    if [[ "${LINK_GPU_MEMORY}" != 1 ]]; then return; fi
    # It ends 1 whatever happens.
    help="$(ib_write_bw --help 2>&1 || true)"
    if [[ "${help}" != *--use_cuda* ]]; then
        log "ib_write_bw of this image cannot use GPU memory; host memory is measured, which no floor holds for"
    elif [[ -d "${sys}/module/nvidia_peermem" ]]; then
        memory=gpu
    elif [[ "${help}" == *--use_cuda_dmabuf* ]]; then
        memory=gpu words=(--use_cuda_dmabuf)
    else
        log "nvidia_peermem is not loaded; host memory is measured, which no floor holds for"
    fi
}

# write_command INDEX SECONDS PORT WORD...: ib_write_bw on a device, pinned to its NUMA node, in $command.
write_command() {
    local -r device="${devices[$1]}" seconds="$2" port="$3"
    local numa="" index="$1"
    shift 3
    command=(timeout --kill-after=5 "${seconds}")
    if [[ -r "${sys}/class/infiniband/${device}/device/numa_node" ]]; then numa="$(<"${sys}/class/infiniband/${device}/device/numa_node")"; fi
    if [[ "${numa}" =~ ^[0-9]+$ ]] && command -v numactl >/dev/null; then command+=(numactl -N "${numa}" -m "${numa}"); fi
    command+=(ib_write_bw -s "${LINK_MESSAGE_BYTES}" -x 0 -F --report_gbits "$@" -d "${device}" -p "${port}" "${words[@]}")
    if [[ "${memory}" == gpu ]]; then command+=("--use_cuda=${index}"); fi
}

# as_client HOST OUTPUT TRIES PROCESS: starts $command as the client of that host, again until the server listens; its exit
# status. PROCESS, if there is one, is that of the server, without which nobody has to wait.
as_client() {
    local -r host="$1" output="$2" tries="$3" process="${4:-}"
    local try code=1
    for ((try = 0; try < tries; try++)); do
        code=0
        "${command[@]}" "${host}" >"${output}" 2>&1 || code=$?
        if ((code == 0)) || ! grep -q "Couldn't connect" "${output}"; then break; fi
        if [[ -n "${process}" ]] && ! kill -0 "${process}" 2>/dev/null; then break; fi
        sleep 0.2
    done
    return "${code}"
}

# rate_in OUTPUT: Gb/s, the average of the last row of five numbers; nothing without a row.
rate_in() {
    awk '
        NF == 5 && $0 ~ /^[0-9.[:blank:]]+$/ && $1 $2 ~ /^[0-9]+$/ { rate = $4 }
        END { if (rate != "") print rate }' "$1" 2>/dev/null || true
}

# words_in OUTPUT: what it said last, for people.
words_in() {
    grep -vE '^[-* ]*$' "$1" 2>/dev/null | tail -n 1 | cut -c 1-160 || true
}
