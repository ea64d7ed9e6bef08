#!/usr/bin/env bash
# What needs the GPUs for itself: copies between host and GPUs and between GPUs, the image's own NHC. Sourced by checks.sh;
# run before the node takes its first job and while it is idle, never beside a job.

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

# lock_clock CHECK: lock_mhz=N: hold the GPUs' clock as the source of the floor does. 1: it cannot be held, which is recorded.
# unlock_clock: let it go again. Source: Azure/azurehpc-health-checks, customTests/azure_common.nhc (boost_gpu_clock)
lock_clock() {
    local code=0
    if [[ -z "${GIVEN[lock_mhz]:-}" ]]; then return 0; fi
    run_tool 60 nvidia-smi -lgc "${GIVEN[lock_mhz]}" || code=$?
    if ((code == 0)); then return 0; fi
    why_not "${code}" nvidia-smi
    not_measured "$1" "the GPUs' clock cannot be held at ${GIVEN[lock_mhz]} MHz, as for the floor: ${REPLY}"
    return 1
}
unlock_clock() {
    if [[ -n "${GIVEN[lock_mhz]:-}" ]]; then run_tool 60 nvidia-smi -rgc || true; fi
}

# choose_nvbandwidth: the program with what stands before it, in COPY_TOOL: of the image, otherwise that of the container,
# which is started. 1, and why in REPLY, when there is none.
declare -a COPY_TOOL=()
choose_nvbandwidth() {
    local candidate
    COPY_TOOL=()
    for candidate in "${NVBANDWIDTH[@]}"; do
        if command -v "${candidate}" >/dev/null; then
            # That of the GB200 images is built with HPC-X. Source: Azure/azhpc-images, components/install_nvbandwidth_tool.sh
            # shellcheck disable=SC2016 # the inner shell expands it
            COPY_TOOL=(bash -c 'if [[ -r "$1" ]]; then . "$1"; module load mpi/hpcx; fi; shift; exec "$@"'
                nvbandwidth "${CF_ROOT}/etc/profile.d/modules.sh" "${candidate}")
            return 0
        fi
    done
    if start_container; then
        COPY_TOOL=(docker exec "${CONTAINER}" "${AZNHC_BIN}/nvbandwidth")
        return 0
    fi
    REPLY="nvbandwidth is not on this image, and ${REPLY}"
    return 1
}

# measure_copies CHECK TEST: floor_gb_per_s=N warn_below_gb_per_s=N lock_mhz=N
measure_copies() {
    local -r check="$1" test="$2"
    if ! choose_nvbandwidth; then
        not_measured "${check}" "${REPLY}; see gpu_copy_dcgm"
        copies_of_dcgm
        return
    fi
    if lock_clock "${check}"; then
        if run_for_result nvbandwidth 300 '[[:space:]][0-9]+\.[0-9]+([[:space:]]|$)' "${COPY_TOOL[@]}" -t "${test}" -i 10; then
            least_of_matrix
            judge_floor "${check}" "${REPLY}" "${GIVEN[floor_gb_per_s]:-}" "${GIVEN[warn_below_gb_per_s]:-}" GB/s "${PLACE}"
        else
            record_outcome "${check}"
        fi
    fi
    unlock_clock
    stop_container
}

# copies_of_dcgm: DCGM has nvbandwidth in itself and judges by figures of its own. Once in a run, for all copies.
COPIES_OF_DCGM=""
copies_of_dcgm() {
    if [[ -n "${COPIES_OF_DCGM}" ]]; then return; fi
    COPIES_OF_DCGM=asked
    diagnose gpu_copy_dcgm nvbandwidth 300
}

check_gpu_copy_to_device() { measure_copies gpu_copy_to_device host_to_device_memcpy_ce; }
check_gpu_copy_from_device() { measure_copies gpu_copy_from_device device_to_host_memcpy_ce; }
check_gpu_copy_peer() { measure_copies gpu_copy_peer device_to_device_memcpy_read_ce; }

# policy=off|report|drain: some images bring LBNL NHC with a configuration of their own. It may expect another image
# generation, so by default its findings are reported.
check_image_nhc() {
    local -r conf=/etc/nhc/nhc.conf
    if [[ "${GIVEN[policy]:-report}" == off || ! -s "${CF_ROOT}${conf}" || "${CYCLEFORGE_NHC:-}" != */usr/sbin/nhc ]]; then return 0; fi
    run_nhc_file image_nhc "${conf}" "${GIVEN[policy]:-report}" 300
}
