#!/usr/bin/env bash
# What needs the GPUs for itself: copies between host and GPUs and between GPUs, NVIDIA's diagnostics, the image's own
# NHC. Sourced by checks.sh; run before the node takes its first job and while it is idle, never beside a job.

readonly NVBANDWIDTH=(nvbandwidth /usr/local/bin/nvbandwidth /opt/nvidia/nvbandwidth/nvbandwidth /opt/nvbandwidth/nvbandwidth)

# least_of_matrix: the smallest number of nvbandwidth's matrix in REPLY and its place in PLACE. A header line has column
# numbers only; the lines below begin with the row's number; "N/A" stands where a GPU would copy to itself.
PLACE=""
least_of_matrix() {
    local line least="" i
    local -a words=() columns=()
    PLACE=""
    while IFS= read -r line; do
        read -r -a words <<<"${line}"
        if [[ "${words[*]}" =~ ^[0-9]+(\ [0-9]+)*$ ]]; then
            columns=("${words[@]}")
        elif [[ "${words[*]}" =~ ^[0-9]+(\ ([0-9]+\.[0-9]+|N/A))+$ ]]; then
            for ((i = 1; i < ${#words[@]}; i++)); do
                if [[ "${words[i]}" != N/A ]] && { [[ -z "${least}" ]] || cf_compare "${words[i]}" lt "${least}"; }; then
                    least="${words[i]}"
                    PLACE="row ${words[0]}, GPU ${columns[i - 1]:-?}"
                fi
            done
        fi
    done <<<"${OUTPUT}"
    REPLY="${least}"
}

# measure_copies CHECK TEST: floor_gb_per_s=N warn_below_gb_per_s=N
measure_copies() {
    local -r check="$1" test="$2" floor="${GIVEN[floor_gb_per_s]:-}"
    local tool="" candidate
    if [[ -z "${floor}" ]]; then
        no_baseline "${check}" GB/s
        return
    fi
    for candidate in "${NVBANDWIDTH[@]}"; do
        if [[ -z "${tool}" ]] && command -v "${candidate}" >/dev/null; then tool="${candidate}"; fi
    done
    if [[ -z "${tool}" ]]; then
        not_measured "${check}" "nvbandwidth is not installed"
        return
    fi
    if ! run_for_result nvbandwidth 300 '[[:space:]][0-9]+\.[0-9]+[[:space:]]' "${tool}" -t "${test}" -i 10; then
        record_outcome "${check}"
        return
    fi
    least_of_matrix
    judge_floor "${check}" "${REPLY}" "${floor}" "${GIVEN[warn_below_gb_per_s]:-}" GB/s "${PLACE}"
}

check_gpu_copy_to_device() { measure_copies gpu_copy_to_device host_to_device_memcpy_ce; }
check_gpu_copy_from_device() { measure_copies gpu_copy_from_device device_to_host_memcpy_ce; }
check_gpu_copy_peer() { measure_copies gpu_copy_peer device_to_device_memcpy_read_ce; }

# level=N: NVIDIA's own diagnostics. Without its service nothing was measured.
check_gpu_diagnostic() {
    local finding
    run_for_result dcgmi 300 [Pp]ass dcgmi diag -r "${GIVEN[level]:-1}" || true
    finding="$(grep -m 1 -i -E "${DCGMI_FAILED_ROW}" <<<"${OUTPUT}" || true)"
    if [[ -n "${finding}" ]]; then
        record reboot gpu_diagnostic "" "" "" "" "dcgmi: $(tr -s ' |' ' ' <<<"${finding}")"
    elif [[ "${OUTCOME}" == ran ]]; then
        record pass gpu_diagnostic "" "" "" "" "level ${GIVEN[level]:-1}"
    else
        record_outcome gpu_diagnostic
    fi
}

# policy=off|report|drain: some images bring LBNL NHC with a configuration of their own. It may expect another image
# generation, so by default its findings are reported.
check_image_nhc() {
    local -r conf=/etc/nhc/nhc.conf
    if [[ "${GIVEN[policy]:-report}" == off || ! -s "${CF_ROOT}${conf}" || "${CYCLEFORGE_NHC:-}" != */usr/sbin/nhc ]]; then return 0; fi
    run_nhc_file image_nhc "${conf}" "${GIVEN[policy]:-report}" 300
}
