#!/usr/bin/env bash
# Bandwidth of every InfiniBand device of the node. Sourced by checks.sh; never beside a job.

# AzNHC's ports. Source: Azure/azurehpc-health-checks, azure_ib_write_bw_gdr.nhc
readonly IB_WRITE_FIRST_PORT=18510

# listens PORT PID: whether somebody listens on it while the process lives.
wait_until_listening() {
    local -r port="$(printf '%04X' "$1")" pid="$2"
    local address state i
    for ((i = 0; i < 100; i++)); do
        while read -r _ address _ state _; do
            if [[ "${address##*:}" == "${port}" && "${state}" == 0A ]]; then return 0; fi
        done < <(cat "${CF_ROOT}/proc/net/tcp" "${CF_ROOT}/proc/net/tcp6" 2>/dev/null)
        if ! kill -0 "${pid}" 2>/dev/null; then return 1; fi
        sleep 0.1
    done
    return 1
}

# ib_write_pair INDEX DEVICE FOLDER WORD...: server and client on one device, pinned to its NUMA node; the client's output
# and exit code as files, the server's where it never listened. Runs beside the pairs of the other devices.
readonly IB_WRITE_S=60
ib_write_pair() {
    local -r index="$1" device="$2" folder="$3" port=$((IB_WRITE_FIRST_PORT + $1))
    local server code=0
    local -a pin=() command=()
    shift 3
    printf '%s\n' "${OUT_OF_TIME}" >"${folder}/${index}.code"
    read_line "${CF_ROOT}/sys/class/infiniband/${device}/device/numa_node"
    if [[ "${REPLY}" =~ ^[0-9]+$ ]] && command -v numactl >/dev/null; then pin=(numactl -N "${REPLY}" -m "${REPLY}"); fi
    seconds_left "${IB_WRITE_S}" || return 0
    local -r limit_s="${REPLY}"
    command=("${pin[@]}" ib_write_bw "$@" -d "${device}" -p "${port}")
    if [[ -n "${CONTAINER}" ]]; then
        command=(docker exec "${CONTAINER}" "${pin[@]}" "${AZNHC_BIN}/ib_write_bw" "$@" -d "${device}" -p "${port}")
    fi
    timeout --kill-after=2 "${limit_s}" "${command[@]}" >"${folder}/${index}.server" 2>&1 &
    server=$!
    if wait_until_listening "${port}" "${server}"; then
        timeout --kill-after=2 "${limit_s}" "${command[@]}" localhost >"${folder}/${index}.client" 2>&1 || code=$?
        kill "${server}" 2>/dev/null || true
        wait "${server}" 2>/dev/null || true
    elif kill "${server}" 2>/dev/null; then
        code=124
        wait "${server}" 2>/dev/null || true
    else
        wait "${server}" 2>/dev/null || code=$?
    fi
    if [[ ! -e "${folder}/${index}.client" ]]; then cp "${folder}/${index}.server" "${folder}/${index}.client"; fi
    if ((code == 137)); then code=124; fi
    if ((code == 124 && limit_s < IB_WRITE_S)); then code="${OUT_OF_TIME}"; fi
    printf '%s\n' "${code}" >"${folder}/${index}.code"
}

# ib_write_result INDEX FOLDER: OUTCOME of a pair, and its average in VALUE. The last line of numbers has bytes, iterations,
# peak, average, message rate.
readonly IB_WRITE_ROW='^[0-9]+ [0-9]+ [0-9.]+ [0-9.]+ [0-9.]+$'
VALUE=""
ib_write_result() {
    local line code
    local -a field=()
    VALUE="" OUTPUT=""
    read_line "$2/$1.code"
    code="${REPLY}"
    while IFS= read -r line; do
        read -r -a field <<<"${line}"
        if [[ "${field[*]}" =~ ${IB_WRITE_ROW} ]]; then VALUE="${field[3]}"; fi
        # What surrounds a message is lines of stars and dashes.
        if [[ -n "${line//[[:space:]*-]/}" ]]; then OUTPUT+="${line}"$'\n'; fi
    done < <(cat "$2/$1.client" 2>/dev/null)
    outcome ib_write_bw "${code}"
    if [[ "${OUTCOME}" == ran && -z "${VALUE}" ]]; then OUTCOME=failed; fi
}

# choose_gpu_memory: what makes perftest write from GPU memory, in GPU_WORDS: the host's build where it was made with CUDA,
# otherwise that of the container, which is started. 1, and why in REPLY, when neither can: no build of it, or no way of the
# driver into GPU memory. Its help ends 1 like everything else. Source: linux-rdma/perftest, src/perftest_parameters.c and
# the README's "GPUDirect usage": nvidia_peermem, or dma-buf.
declare -a GPU_WORDS=()
choose_gpu_memory() {
    local peermem=no
    GPU_WORDS=()
    if [[ -d "${CF_ROOT}/sys/module/nvidia_peermem" ]]; then peermem=yes; fi
    run_tool 20 ib_write_bw --help || true
    if [[ "${OUTPUT}" == *--use_cuda=* || "${OUTPUT}" == *"--use_cuda "* ]]; then
        if [[ "${peermem}" == yes ]]; then return 0; fi
        if [[ "${OUTPUT}" == *--use_cuda_dmabuf* ]]; then
            GPU_WORDS=(--use_cuda_dmabuf)
            return 0
        fi
    fi
    if [[ "${peermem}" == no ]]; then
        REPLY="nvidia_peermem is not loaded"
        return 1
    fi
    if start_container; then return 0; fi
    REPLY="ib_write_bw of this image cannot use GPU memory, and ${REPLY}"
    return 1
}

# floor_gbit_per_s=N message_bytes=N gpu_memory=yes|no queue_pairs=N seconds=N lock_mhz=N: every device to itself, all at
# once. With GPU memory, device and GPU of the same number, which hang at the same switch. Where GPU memory cannot be
# used, ib_write is not measured, and ib_write_host, from host memory, is measured without a floor.
check_ib_write() {
    local line
    local -a devices=()
    find_ib_ports
    if ! command -v ib_write_bw >/dev/null && [[ "${GIVEN[gpu_memory]:-no}" != yes ]]; then
        not_measured ib_write "ib_write_bw is not installed"
        return
    fi
    if ((${#IB_PORTS[@]} == 0)); then
        not_measured ib_write "there is no InfiniBand port"
        return
    fi
    if [[ -z "${GIVEN[message_bytes]:-}" ]]; then
        no_baseline ib_write Gb/s
        return
    fi
    for line in "${IB_PORTS[@]}"; do
        device_of "${line}"
        devices+=("${REPLY}")
    done
    if [[ "${GIVEN[gpu_memory]:-no}" != yes ]]; then
        measure_ib_write ib_write "${GIVEN[floor_gbit_per_s]:-}" no
    elif choose_gpu_memory; then
        if lock_clock ib_write; then measure_ib_write ib_write "${GIVEN[floor_gbit_per_s]:-}" yes; fi
        unlock_clock
    else
        not_measured ib_write "${REPLY}; see ib_write_host"
        if command -v ib_write_bw >/dev/null; then
            # As AzNHC measures from host memory: azure_ib_write_bw_non_gdr.nhc
            GIVEN["queue_pairs"]=2 GIVEN["seconds"]=10
            measure_ib_write ib_write_host "" no
        else
            not_measured ib_write_host "ib_write_bw is not installed"
        fi
    fi
    stop_container
}

# measure_ib_write CHECK FLOOR GPU_MEMORY: of the caller's devices.
measure_ib_write() {
    local -r check="$1" floor="$2" gpu_memory="$3"
    local folder index words least="" least_device=""
    local -a again=()
    # Beside the records, where the next run removes what a killed one has left.
    folder="$(mktemp -d "${CYCLEFORGE_ROWS}.ib_write.XXXXXX")"
    again=("${!devices[@]}")
    for _ in first second; do
        for index in "${again[@]}"; do
            words=(-s "${GIVEN[message_bytes]}" -x 0 -F --report_gbits --perform_warm_up)
            if [[ "${gpu_memory}" == yes ]]; then words+=("--use_cuda=${index}" "${GPU_WORDS[@]}"); fi
            if [[ -n "${GIVEN[seconds]:-}" ]]; then words+=(-D "${GIVEN[seconds]}"); fi
            if [[ -n "${GIVEN[queue_pairs]:-}" ]]; then words+=(-q "${GIVEN[queue_pairs]}"); fi
            rm -f "${folder}/${index}."*
            ib_write_pair "${index}" "${devices[index]}" "${folder}" "${words[@]}" &
        done
        wait
        again=()
        for index in "${!devices[@]}"; do
            ib_write_result "${index}" "${folder}"
            if [[ "${OUTCOME}" == failed ]]; then again+=("${index}"); fi
        done
        if ((${#again[@]} == 0)) || ! seconds_left "${IB_WRITE_S}" || ((REPLY < IB_WRITE_S)); then break; fi
        # A server of the first try may still listen in the container.
        if [[ -n "${CONTAINER}" ]]; then
            stop_container
            if ! start_container; then break; fi
        fi
    done
    for index in "${!devices[@]}"; do
        ib_write_result "${index}" "${folder}"
        if [[ "${OUTCOME}" != ran ]]; then
            record_outcome "${check}" "${devices[index]}"
        elif [[ -z "${least}" ]] || cf_compare "${VALUE}" lt "${least}"; then
            least="${VALUE}" least_device="${devices[index]}"
        fi
    done
    rm -rf "${folder}"
    if [[ -n "${least}" ]]; then judge "${check}" "${least}" ge "${floor}" Gb/s fail "${least_device}, slowest of ${#devices[@]}"; fi
}
