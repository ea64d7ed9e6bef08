#!/usr/bin/env bash
# Bandwidth of the node, before it takes its first job: GPU copies and all-reduce over NVLink, and the image's own NHC.
# Sourced by health.sh. They own the GPUs while they run, so never beside a job.

readonly NVBANDWIDTH=(nvbandwidth /usr/local/bin/nvbandwidth /opt/nvidia/nvbandwidth/nvbandwidth /opt/nvbandwidth/nvbandwidth)
readonly ALL_REDUCE=/opt/nccl-tests/build/all_reduce_perf

deadline_left() {
    REPLY=$((DEEP_DEADLINE - SECONDS))
    ((REPLY > 5))
}

check_bandwidth() {
    local -r count="${CF_FIGURES[gpu.count]:-0}" budget_s="${CF_CONF[deep_s]}"
    DEEP_DEADLINE=$((SECONDS + budget_s))
    if [[ "${CF_FIGURES[gpu.vendor]:-}" != NVIDIA ]] || ((count == 0)); then return 0; fi
    measure_copies host_to_device_memcpy_ce gpu_copy_to_device "${CF_FIGURES[gpu.copy_floor_gb_s]:-}"
    measure_copies device_to_host_memcpy_ce gpu_copy_from_device "${CF_FIGURES[gpu.copy_floor_gb_s]:-}"
    if ((count > 1)); then
        measure_copies device_to_device_memcpy_read_ce gpu_copy_peer "${CF_FIGURES[gpu.peer_floor_gb_s]:-}"
        measure_all_reduce "${count}" "${CF_FIGURES[nccl.floor_gb_s]:-}" "${CF_FIGURES[nccl.message]:-}"
    fi
}

# smallest_number: the least of the decimal numbers in OUTPUT's matrix, in REPLY. Row and column numbers have no point.
smallest_number() {
    local line word least=""
    local -a words=()
    while IFS= read -r line; do
        [[ "${line}" =~ ^[[:space:]]*[0-9]+[[:space:]] ]] || continue
        read -r -a words <<<"${line}"
        for word in "${words[@]}"; do
            if [[ "${word}" =~ ^[0-9]+\.[0-9]+$ ]] && { [[ -z "${least}" ]] || cf_compare "${word}" lt "${least}"; }; then
                least="${word}"
            fi
        done
    done <<<"${OUTPUT}"
    REPLY="${least}"
}

measure_copies() {
    local -r test="$1" check="$2" floor="$3"
    local tool="" candidate code=0
    if [[ -z "${floor}" ]]; then
        record no_baseline "${check}" "" "" "" GB/s ""
        return
    fi
    for candidate in "${NVBANDWIDTH[@]}"; do
        if [[ -z "${tool}" ]] && command -v "${candidate}" >/dev/null; then tool="${candidate}"; fi
    done
    if [[ -z "${tool}" ]]; then
        not_measured "${check}" "nvbandwidth is not installed"
        return
    fi
    if ! deadline_left; then
        not_measured "${check}" "no time left of ${CF_CONF[deep_s]} s"
        return
    fi
    run_tool "${REPLY}" "${tool}" -t "${test}" -i 10 || code=$?
    if ((code != 0)); then
        why_not "${code}" nvbandwidth
        not_measured "${check}" "${REPLY}"
        return
    fi
    smallest_number
    judge "${check}" "${REPLY}" ge "${floor}" GB/s
}

# The floors were published for one process per GPU under mpirun of the image's HPC-X, so that is how it is measured.
measure_all_reduce() {
    local -r count="$1" floor="$2" message="$3"
    local code attempt value="" wrong key
    local -a variables=()
    if [[ -z "${floor}" || -z "${message}" ]]; then
        record no_baseline nccl_all_reduce "" "" "" GB/s ""
        return
    fi
    if [[ ! -x "${CF_ROOT}${ALL_REDUCE}" ]]; then
        not_measured nccl_all_reduce "${ALL_REDUCE} is not in this image"
        return
    fi
    # The same variables under which the floor was measured.
    for key in "${!CF_FIGURES[@]}"; do
        if [[ "${key}" == nccl.env.* ]]; then variables+=("${key#nccl.env.}=${CF_FIGURES[${key}]}"); fi
    done
    for attempt in 1 2; do
        code=0
        if ! deadline_left; then
            not_measured nccl_all_reduce "no time left of ${CF_CONF[deep_s]} s"
            return
        fi
        # shellcheck disable=SC2016 # the inner shell expands it
        run_tool "${REPLY}" env "${variables[@]}" bash -c '
            if [[ -r "$4/etc/profile.d/modules.sh" ]]; then . "$4/etc/profile.d/modules.sh"; module load mpi/hpcx; fi
            if [[ -r "$4/etc/cycleforge/nccl.sh" ]]; then . "$4/etc/cycleforge/nccl.sh"; fi
            exec mpirun -np "$1" --map-by "ppr:$1:node" --bind-to numa -mca coll_hcoll_enable 0 --allow-run-as-root \
                "$3" -b "$2" -e "$2" -f 2 -g 1 -c 1' nccl "${count}" "${message}" "${CF_ROOT}${ALL_REDUCE}" "${CF_ROOT}" || code=$?
        value="$(sed -n -E 's/^#[[:space:]]*Avg bus bandwidth[[:space:]]*:[[:space:]]*([0-9.]+).*/\1/p' <<<"${OUTPUT}")"
        wrong="$(sed -n -E 's/^#[[:space:]]*Out of bounds values[[:space:]]*:[[:space:]]*([0-9]+).*/\1/p' <<<"${OUTPUT}")"
        if [[ -n "${wrong}" && "${wrong}" != 0 ]]; then
            # Wrong sums are a hardware fault however fast they come.
            record fail nccl_wrong_values "${wrong}" le 0 values ""
            return
        fi
        if ((code == 0)) && cf_compare "${value}" ge "${floor}"; then break; fi
    done
    if ((code != 0)); then
        why_not "${code}" all_reduce_perf
        not_measured nccl_all_reduce "${REPLY}"
        return
    fi
    judge nccl_all_reduce "${value}" ge "${floor}" GB/s fail "message ${message}, attempt ${attempt}"
}

# Some images bring LBNL NHC with a configuration of their own. It may expect another image generation, so by default
# its findings are reported. MARK_OFFLINE=0: draining is done here, under our own name.
check_image_nhc() {
    local code=0 finding
    if [[ "${CF_CONF[nhc]}" == off || ! -x "${CF_ROOT}/usr/sbin/nhc" || ! -s "${CF_ROOT}/etc/nhc/nhc.conf" ]]; then return 0; fi
    if ! deadline_left; then
        not_measured image_nhc "no time left of ${CF_CONF[deep_s]} s"
        return
    fi
    local -r limit_s="${REPLY}"
    run_tool "${limit_s}" "${CF_ROOT}/usr/sbin/nhc" MARK_OFFLINE=0 DETACHED_MODE=0 NHC_CHECK_ALL=1 "TIMEOUT=${limit_s}" LOGFILE=- || code=$?
    if ((code == 0)); then
        record pass image_nhc "" "" "" "" ""
        return
    fi
    if ((code >= 124)); then
        why_not "${code}" nhc
        not_measured image_nhc "${REPLY}"
        return
    fi
    finding="$(grep -m 1 -E '^ERROR:' <<<"${OUTPUT}" || true)"
    if [[ "${CF_CONF[nhc]}" == drain ]]; then
        record fail image_nhc "" "" "" "" "${finding:-exit code ${code}}"
    else
        record warn image_nhc "" "" "" "" "${finding:-exit code ${code}}"
    fi
}
