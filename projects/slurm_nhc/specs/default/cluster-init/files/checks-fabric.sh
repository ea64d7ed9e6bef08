#!/usr/bin/env bash
# Bandwidth of InfiniBand and of NCCL inside one node. Sourced by checks.sh; never beside a job.

readonly ALL_REDUCE=/opt/nccl-tests/build/all_reduce_perf
# AzNHC's ports. Source: Azure/azurehpc-health-checks, azure_ib_write_bw_gdr.nhc
readonly IB_WRITE_FIRST_PORT=18510
declare -a NCCL_VARIABLES=()
MPI_MODULE=""

# NAME=VALUE...: the variables under which the floors below were published. module=NAME of the MPI that starts the ranks.
check_nccl_environment() {
    local name
    NCCL_VARIABLES=()
    for name in "${!GIVEN[@]}"; do
        if [[ "${name}" == module ]]; then MPI_MODULE="${GIVEN[module]}"; else NCCL_VARIABLES+=("${name}=${GIVEN[${name}]}"); fi
    done
}

# run_all_reduce RANKS MESSAGE VARIABLE...: as the floors were measured: one process per GPU under mpirun of the image.
run_all_reduce() {
    local -r ranks="$1" message="$2"
    shift 2
    # shellcheck disable=SC2016 # the inner shell expands it
    run_tool 300 env "${NCCL_VARIABLES[@]}" bash -c '
        ranks="$1" message="$2" program="$3" root="$4" module="$5"
        shift 5
        if [[ -n "${module}" && -r "${root}/etc/profile.d/modules.sh" ]]; then . "${root}/etc/profile.d/modules.sh"; module load "${module}"; fi
        if [[ -r "${root}/etc/cycleforge/nccl.sh" ]]; then . "${root}/etc/cycleforge/nccl.sh"; fi
        exec env "$@" mpirun -np "${ranks}" --map-by "ppr:${ranks}:node" --bind-to numa -mca coll_hcoll_enable 0 --allow-run-as-root \
            "${program}" -b "${message}" -e "${message}" -f 2 -g 1 -c 1' \
        all_reduce "${ranks}" "${message}" "${CF_ROOT}${ALL_REDUCE}" "${CF_ROOT}" "${MPI_MODULE}" "$@"
}

# measure_all_reduce CHECK VARIABLE...: ranks=N message=SIZE floor_gb_per_s=N attempts=N; any attempt may reach the floor, and
# a failure of the tool itself is no failure before the last one.
measure_all_reduce() {
    local -r check="$1" floor="${GIVEN[floor_gb_per_s]:-}" message="${GIVEN[message]:-}" attempts="${GIVEN[attempts]:-2}"
    local code=0 attempt=1 value="" wrong line words="" cure=""
    shift
    if [[ -z "${floor}" || -z "${message}" ]]; then
        no_baseline "${check}" GB/s
        return
    fi
    if [[ ! -x "${CF_ROOT}${ALL_REDUCE}" ]]; then
        not_measured "${check}" "${ALL_REDUCE} is not in this image"
        return
    fi
    for ((attempt = 1; attempt <= attempts; attempt++)); do
        code=0 wrong="" value=""
        run_all_reduce "${GIVEN[ranks]}" "${message}" "$@" || code=$?
        while IFS= read -r line; do
            if [[ "${line}" =~ ^#[[:space:]]*Avg\ bus\ bandwidth[[:space:]]*:[[:space:]]*([0-9.]+) ]]; then value="${BASH_REMATCH[1]}"; fi
            if [[ "${line}" =~ ^#[[:space:]]*Out\ of\ bounds\ values[[:space:]]*:[[:space:]]*([0-9]+) ]]; then wrong="${BASH_REMATCH[1]}"; fi
        done <<<"${OUTPUT}"
        if [[ -n "${wrong}" && "${wrong}" != 0 ]]; then
            # Wrong sums are a hardware fault however fast they come.
            record fail "${check}_wrong_values" "${wrong}" le 0 values ""
            return
        fi
        outcome all_reduce_perf "${code}" 'Avg bus bandwidth[[:space:]]*:[[:space:]]*[0-9]'
        if [[ "${OUTCOME}" == failed ]]; then words="${REPLY}" cure="${OUTCOME_CURE}"; fi
        if [[ "${OUTCOME}" == not_measured ]] || { [[ "${OUTCOME}" == ran ]] && cf_compare "${value}" ge "${floor}"; }; then break; fi
        if ! seconds_left 20; then break; fi
    done
    if [[ "${OUTCOME}" != ran && -n "${words}" ]]; then OUTCOME=failed OUTCOME_CURE="${cure}" REPLY="${words}"; fi
    if [[ "${OUTCOME}" != ran ]]; then
        record_outcome "${check}"
        return
    fi
    judge "${check}" "${value}" ge "${floor}" GB/s fail "message ${message}, attempt $((attempt > attempts ? attempts : attempt))"
}

check_nccl_all_reduce() { measure_all_reduce nccl_all_reduce; }

# Shared memory and NVLink switched off: what is left is InfiniBand. They come last, so nothing overrides them.
check_nccl_loopback() { measure_all_reduce nccl_loopback NCCL_SHM_DISABLE=1 NCCL_P2P_DISABLE=1 NCCL_NET_GDR_LEVEL=5; }

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
    local -a pin=()
    shift 3
    printf '%s\n' "${OUT_OF_TIME}" >"${folder}/${index}.code"
    read_line "${CF_ROOT}/sys/class/infiniband/${device}/device/numa_node"
    if [[ "${REPLY}" =~ ^[0-9]+$ ]] && command -v numactl >/dev/null; then pin=(numactl -N "${REPLY}" -m "${REPLY}"); fi
    seconds_left "${IB_WRITE_S}" || return 0
    local -r limit_s="${REPLY}"
    timeout --kill-after=2 "${limit_s}" "${pin[@]}" ib_write_bw "$@" -d "${device}" -p "${port}" >"${folder}/${index}.server" 2>&1 &
    server=$!
    if wait_until_listening "${port}" "${server}"; then
        timeout --kill-after=2 "${limit_s}" "${pin[@]}" ib_write_bw "$@" -d "${device}" -p "${port}" localhost >"${folder}/${index}.client" 2>&1 || code=$?
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

# floor_gbit_per_s=N message_bytes=N gpu_memory=yes|no queue_pairs=N seconds=N: every device to itself, all at once. With GPU
# memory, device and GPU of the same number, which hang at the same switch.
check_ib_write() {
    local -r floor="${GIVEN[floor_gbit_per_s]:-}" check=ib_write
    local folder index words least="" least_device="" line
    local -a devices=() again=()
    find_ib_ports
    if [[ -z "${floor}" ]]; then
        no_baseline "${check}" Gb/s
        return
    fi
    if ! command -v ib_write_bw >/dev/null; then
        not_measured "${check}" "ib_write_bw is not installed"
        return
    fi
    if ((${#IB_PORTS[@]} == 0)); then
        not_measured "${check}" "there is no InfiniBand port"
        return
    fi
    for line in "${IB_PORTS[@]}"; do
        device_of "${line}"
        devices+=("${REPLY}")
    done
    # Beside the records, where the next run removes what a killed one has left.
    folder="$(mktemp -d "${CYCLEFORGE_ROWS}.ib_write.XXXXXX")"
    again=("${!devices[@]}")
    for _ in first second; do
        for index in "${again[@]}"; do
            words=(-s "${GIVEN[message_bytes]}" -x 0 -F --report_gbits)
            if [[ "${GIVEN[gpu_memory]:-no}" == yes ]]; then words+=("--use_cuda=${index}"); fi
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
