#!/usr/bin/env bash
# What needs AMD GPUs for itself: waiting for the driver, copies, RCCL's all-reduce. Sourced by checks.sh; run before the node
# takes its first job and while it is idle, never beside a job.
#
# Tools and arguments are those with which the floors were measured. Source: Azure/azurehpc-health-checks
# customTests/azure_rccl_allreduce.nhc, customTests/azure_gpu_bandwidth.nhc
# shellcheck disable=SC2034 # OUTCOME is a result for tools.sh

readonly RCCL_ALL_REDUCE=/opt/rccl-tests/all_reduce_perf
readonly ROCM_COPIES=/opt/rocm/bin/rocm-bandwidth-test

# ready_s=N: the image loads the driver minutes after the boot. What comes after this line needs it.
check_amd_ready() {
    local wait_s=0
    if seconds_left "${GIVEN[ready_s]:-0}"; then wait_s="${REPLY}"; fi
    cf_wait_for "${wait_s}" amd_driver_is_loaded || true
    check_amd_driver
}

# Its successor of the same name prints other tables, which says nothing about the GPUs.
outcome_of_rocm_bandwidth_test() {
    if (($1 == 0)); then OUTCOME=not_measured; fi
}

# least_copy FROM TO: the least value of the table between devices of these kinds in REPLY, its place in PLACE. A row has
# the number of its device and what it copies to each device of the header; kinds are in COPY_KIND by number.
declare -A COPY_KIND=()
least_copy() {
    local -r from="$1" to="$2"
    local line least="" place
    local -a words=() header=()
    PLACE=""
    while IFS= read -r line; do
        read -r -a words <<<"${line}"
        if [[ "${words[0]:-}" == D/D ]]; then
            header=("${words[@]:1}")
        elif [[ "${COPY_KIND[${words[0]:-none}]:-}" == "${from}" ]]; then
            for place in "${!header[@]}"; do
                if [[ "${COPY_KIND[${header[place]}]:-}" != "${to}" || "${header[place]}" == "${words[0]}" ]]; then continue; fi
                if [[ ! "${words[place + 1]:-}" =~ ^[0-9]+(\.[0-9]+)?$ ]]; then continue; fi
                if [[ -z "${least}" ]] || cf_compare "${words[place + 1]}" lt "${least}"; then
                    least="${words[place + 1]}" PLACE="device ${words[0]} to ${header[place]}"
                fi
            done
        fi
    done <<<"$3"
    REPLY="${least}"
}

# host_floor_gb_per_s=N peer_floor_gb_per_s=N: one run measures copies between all processors and GPUs.
check_amd_copies() {
    local line table
    amd_driver_or_not_measured gpu_copies || return 0
    if [[ ! -x "${CF_ROOT}${ROCM_COPIES}" ]]; then
        not_measured gpu_copies "${ROCM_COPIES} is not in this image"
        return
    fi
    if ! run_for_result rocm_bandwidth_test 300 'Unidirectional copy peak bandwidth GB/s' "${CF_ROOT}${ROCM_COPIES}" -a; then
        record_outcome gpu_copies
        return
    fi
    COPY_KIND=()
    while IFS= read -r line; do
        # "Device: 2,  AMD Instinct MI300X VF,  GPU-6f1c,  c2:0.0"; a processor has neither of the last two.
        if [[ "${line}" =~ Device:[[:space:]]*([0-9]+),(.*) ]]; then
            COPY_KIND["${BASH_REMATCH[1]}"]=processor
            if [[ "${BASH_REMATCH[2]}" == *GPU-* ]]; then COPY_KIND["${BASH_REMATCH[1]}"]=gpu; fi
        fi
    done <<<"${OUTPUT}"
    table="${OUTPUT#*Unidirectional copy peak bandwidth GB/s}"
    table="${table%%Bidirectional*}"
    least_copy processor gpu "${table}"
    judge gpu_copy_to_device "${REPLY}" ge "${GIVEN[host_floor_gb_per_s]:-}" GB/s fail "${PLACE}"
    least_copy gpu processor "${table}"
    judge gpu_copy_from_device "${REPLY}" ge "${GIVEN[host_floor_gb_per_s]:-}" GB/s fail "${PLACE}"
    least_copy gpu gpu "${table}"
    judge gpu_copy_peer "${REPLY}" ge "${GIVEN[peer_floor_gb_per_s]:-}" GB/s fail "${PLACE}"
}

# ranks=N message=SIZE floor_gb_per_s=N module=NAME library_path=PATH VARIABLE=VALUE...: one process per GPU under mpirun of the image, with these
# variables and no others. rccl-tests print and end as nccl-tests do.
check_rccl_all_reduce() {
    local -r check=rccl_all_reduce message="${GIVEN[message]:-}"
    local name line value="" wrong=""
    local -a variables=()
    amd_driver_or_not_measured "${check}" || return 0
    if [[ ! -x "${CF_ROOT}${RCCL_ALL_REDUCE}" ]]; then
        not_measured "${check}" "${RCCL_ALL_REDUCE} is not in this image"
        return
    fi
    for name in "${!GIVEN[@]}"; do
        if [[ "${name}" == [A-Z]* ]]; then variables+=("${name}=${GIVEN[${name}]}"); fi
    done
    # shellcheck disable=SC2016 # the inner shell expands it
    if ! run_for_result all_reduce_perf 300 'Avg bus bandwidth[[:space:]]*:[[:space:]]*[0-9]' bash -c '
        root="$1" module="$2" library="$3" ranks="$4" message="$5" program="$6"
        shift 6
        if [[ -n "${module}" && -r "${root}/etc/profile.d/modules.sh" ]]; then . "${root}/etc/profile.d/modules.sh"; module load "${module}"; fi
        export LD_LIBRARY_PATH="${library}:${LD_LIBRARY_PATH:-}"
        exec env "$@" mpirun -np "${ranks}" --map-by "ppr:${ranks}:node" --bind-to numa -mca coll_hcoll_enable 0 --allow-run-as-root \
            "${program}" -b "${message}" -e "${message}" -f 2 -g 1 -c 1' \
        all_reduce "${CF_ROOT}" "${GIVEN[module]:-}" "${GIVEN[library_path]:-}" "${GIVEN[ranks]}" "${message}" \
        "${CF_ROOT}${RCCL_ALL_REDUCE}" "${variables[@]}"; then
        record_outcome "${check}"
        return
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ^#[[:space:]]*Avg\ bus\ bandwidth[[:space:]]*:[[:space:]]*([0-9.]+) ]]; then value="${BASH_REMATCH[1]}"; fi
        if [[ "${line}" =~ ^#[[:space:]]*Out\ of\ bounds\ values[[:space:]]*:[[:space:]]*([0-9]+) ]]; then wrong="${BASH_REMATCH[1]}"; fi
    done <<<"${OUTPUT}"
    if [[ -n "${wrong}" && "${wrong}" != 0 ]]; then
        # Wrong sums are a hardware fault however fast they come.
        record service "${check}_wrong_values" "${wrong}" le 0 values ""
        return
    fi
    judge "${check}" "${value}" ge "${GIVEN[floor_gb_per_s]:-}" GB/s fail "message ${message}"
}
