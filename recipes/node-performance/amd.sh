# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # load.sh reads the names, work and results are of node.sh
# The same tests on AMD GPUs. Sourced by node.sh after the others where the size has such GPUs, and replaces what asks
# NVIDIA's tools: rocm-smi and the driver's files tell what is there, ROCm Validation Suite makes the load, rocm-bandwidth-test
# copies, BabelStream reads and writes the GPUs' memory.

# RVS's own test of MI300X: edges, and for how long it lets clocks settle.
# Source: ROCm/ROCmValidationSuite, rvs/conf/MI300X/gst_single.conf
readonly RVS_SIZES="matrix_size_a: 4864
  matrix_size_b: 4096
  matrix_size_c: 8192
  lda: 8320
  ldb: 8320
  ldc: 4992
  ldd: 4992"
readonly RVS_RAMP_S=5 RVS_GEMM_S=15

# test_inventory: the GPUs are there, and alike. run.sh compares the nodes with each other.
# Form: ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py (printLog): `GPU[0]<tab><tab>: NAME: VALUE`
test_inventory() {
    local -r log="${work}/inventory.log" file="${work}/inventory.csv"
    if ! timeout 60 rocm-smi --showid --showvbios >"${log}" 2>&1; then
        not_proven inventory "rocm-smi: $(last_words "${log}")"
        return
    fi
    # The number of a GPU within the driver (GUID) is its own.
    awk '
        /^GPU\[[0-9]+\][ \t]*:/ {
            gpu = $0; sub(/^GPU\[/, "", gpu); sub(/\].*/, "", gpu)
            text = $0; sub(/^GPU\[[0-9]+\][ \t]*:[ \t]*/, "", text)
            if (text ~ /^(GUID|Node ID)/) next
            gsub(/[ \t]+/, " ", text)
            if (!(gpu in seen)) { seen[gpu] = 1; order[++gpus] = gpu }
            said[gpu] = said[gpu] (said[gpu] == "" ? "" : ", ") text
        }
        END { for (i = 1; i <= gpus; i++) print order[i] ", " said[order[i]] }' "${log}" >"${file}"
    judge_inventory "${file}" rocm-smi "${CF_ROOT:-}/sys/module/amdgpu/version"
}

# find_rvs: the suite, which Azure's Ubuntu images do not bring.
find_rvs() {
    find_program "${RVS}" rvs "${CF_ROOT:-}/opt/rocm/bin/rvs"
}

# run_rvs TOOL NAME TYPE SECONDS: matrix products of a type on all GPUs at once; what it said is in NAME.log. The target is
# one that every GPU reaches: floors are for run.sh.
run_rvs() {
    local -r tool="$1" name="$2" type="$3" seconds="$4"
    {
        printf 'actions:\n- name: %s\n  device: all\n  module: gst\n  parallel: true\n  log_interval: 3000\n' "${name}"
        printf '  ramp_interval: %s\n  duration: %s\n  hot_calls: 1000\n  copy_matrix: false\n  target_stress: 1\n' "${RVS_RAMP_S}000" "${seconds}000"
        printf '  %s\n  matrix_init: rand\n  data_type: %s\n' "${RVS_SIZES}" "${type}"
        if [[ "${type}" == fp8_r ]]; then printf '  out_data_type: fp8_r\n  compute_type: fp32_r\n  blas_source: hipblaslt\n'; fi
        printf '  transa: 1\n  transb: 0\n  alpha: 1\n  beta: 0\n'
    } >"${work}/${name}.conf"
    timeout $((seconds + RVS_RAMP_S + TOOL_TIMEOUT_S)) "${tool}" -c "${work}/${name}.conf" >"${work}/${name}.log" 2>&1
}

# gemm_of_rvs FILE NAME: `GPU TFLOPS` of each GPU: its last line, which names the target, has the best interval.
# Source: ROCm/ROCmValidationSuite 1.3 to 1.7, gst.so/src/gst_worker.cpp (check_target_stress)
gemm_of_rvs() {
    untagged "$1" | awk -v name="[$2]" '
        index($0, name " [GPU::") && / GFLOPS [0-9]+ Target GFLOPS: [0-9]+ met: (TRUE|FALSE)/ {
            gpu = $0; sub(/.*\[GPU:: */, "", gpu); sub(/\].*/, "", gpu)
            rate = $0; sub(/ Target GFLOPS:.*/, "", rate); sub(/.* GFLOPS /, "", rate)
            if (gpu !~ /^[0-9]+$/ || rate !~ /^[0-9]+$/ || rate + 0 <= 0 || gpu in seen) broken = 1
            seen[gpu] = 1
            printf "%s %.1f\n", gpu, rate / 1000
            gpus++
        }
        END { exit broken || !gpus }'
}

# values_of_rvs CHECK NAME DETAIL: a figure for each GPU of the node; fails where one is missing.
values_of_rvs() {
    local found gpu rate
    if ! found="$(gemm_of_rvs "${work}/$2.log" "$2")"; then
        not_proven "$1" "rvs printed no result: $(last_words "${work}/$2.log")"
        return 1
    elif [[ "$(wc -l <<<"${found}")" != "${GPUS_PER_NODE}" ]]; then
        note "$1" fail "$(wc -l <<<"${found}")" "${GPUS_PER_NODE}" GPUs "GPUs are missing in what rvs printed"
        return 1
    fi
    while read -r gpu rate; do value "$1" "GPU ${gpu}" "${rate}" TFLOPS rvs "$3"; done <<<"${found}"
}

# test_gemm: matrix products of each type in GEMM_TYPES, all GPUs at once.
test_gemm() {
    local tool type
    if ! tool="$(find_rvs)"; then
        for type in ${GEMM_TYPES}; do not_proven "gemm_${type}" "rvs is not here; install rocm-validation-suite, or set CONTAINER or RVS"; done
        return
    fi
    for type in ${GEMM_TYPES}; do
        if run_rvs "${tool}" "gemm_${type}" "${type}_r" "${RVS_GEMM_S}"; then
            values_of_rvs "gemm_${type}" "gemm_${type}" "" || true
        else
            not_proven "gemm_${type}" "rvs failed or ran past its time: $(last_words "${work}/gemm_${type}.log")"
        fi
    done
}

# make_load: the first type on all GPUs for LOAD_S seconds. 127: there is no tool for it.
make_load() {
    local tool
    load_tool=rvs
    tool="$(find_rvs)" || return 127
    if ! run_rvs "${tool}" load "${GEMM_TYPES%% *}_r" "${LOAD_S}"; then
        not_proven gemm "rvs failed: $(last_words "${work}/load.log")"
        return 1
    fi
    values_of_rvs gemm load "${GEMM_TYPES%% *}, ${LOAD_S} s"
}
readonly NO_LOAD_TOOL="rvs is not on this node (package rocm-validation-suite)" WATCHED_BY=amdgpu

begin_samples() {
    :
}

# sample_gpus: `INDEX, temperature, power, clock, reasons` of each GPU, from the driver's files: the junction's temperature, and
# as a reason for which it is slowed that it is as hot as the driver calls critical. What a virtual machine is not shown is 0.
# Source: Linux Documentation/gpu/amdgpu/thermal.rst (hwmon: thousandths of a degree, Hz, millionths of a watt)
sample_gpus() {
    local device folder label index=0 temperature power clock reason
    for device in "${CF_ROOT:-}"/sys/bus/pci/devices/*; do
        if ! is_amd "${device}"; then continue; fi
        temperature=0 power=0 clock=0 reason=0x00
        for folder in "${device}"/hwmon/hwmon*; do
            label=""
            if [[ -r "${folder}/temp2_label" ]]; then read -r label <"${folder}/temp2_label" || true; fi
            if [[ "${label}" != junction ]]; then continue; fi
            hwmon_value "${folder}/temp2_input" 1000
            temperature="${REPLY}"
            hwmon_value "${folder}/temp2_crit" 1000
            if ((REPLY > 0 && temperature >= REPLY)); then printf -v reason '0x%02x' "${THROTTLE_MASK}"; fi
            hwmon_value "${folder}/power1_input" 1000000
            if ((REPLY == 0)); then hwmon_value "${folder}/power1_average" 1000000; fi
            power="${REPLY}"
            hwmon_value "${folder}/freq1_input" 1000000
            clock="${REPLY}"
        done
        printf '%s, %s, %s, %s, %s\n' "${index}" "${temperature}" "${power}" "${clock}" "${reason}"
        index=$((index + 1))
    done
    ((index > 0))
}

# hwmon_value FILE DIVISOR: in REPLY; 0 where the driver does not show it.
hwmon_value() {
    local value=""
    if [[ -r "$1" ]]; then read -r value <"$1" || true; fi
    if [[ "${value}" =~ ^[0-9]{1,15}$ ]]; then REPLY=$((10#${value} / $2)); else REPLY=0; fi
}

# is_amd DEVICE: a GPU of AMD. Classes: 0x12 accelerators, 0x03 display controllers.
is_amd() {
    local vendor="" class=""
    if [[ -r "$1/vendor" && -r "$1/class" ]]; then
        read -r vendor <"$1/vendor" || true
        read -r class <"$1/class" || true
    fi
    [[ "${vendor}" == 0x1002 && "${class}" == 0x@(03|12)* ]]
}

# limit_of_heat: the least temperature that a driver calls critical.
limit_of_heat() {
    local device file least=""
    for device in "${CF_ROOT:-}"/sys/bus/pci/devices/*; do
        if ! is_amd "${device}"; then continue; fi
        for file in "${device}"/hwmon/hwmon*/temp2_crit; do
            hwmon_value "${file}" 1000
            if ((REPLY > 0)) && [[ -z "${least}" || "${REPLY}" -lt "${least}" ]]; then least="${REPLY}"; fi
        done
    done
    echo "${least}"
}

# test_copies: one run measures copies between all processors and GPUs. A GPU is as fast as its slowest copy.
test_copies() {
    local tool found kind from to rate
    local -r log="${work}/copies.log"
    local -A cells=()
    if ! tool="$(find_program "${ROCM_BANDWIDTH_TEST}" "${CF_ROOT:-}/opt/rocm/bin/rocm-bandwidth-test" rocm-bandwidth-test)"; then
        not_proven copies "rocm-bandwidth-test is not on this node"
        return
    fi
    if ! timeout "${TOOL_TIMEOUT_S}" "${tool}" -a >"${log}" 2>&1; then
        not_proven copies "rocm-bandwidth-test failed or ran past ${TOOL_TIMEOUT_S} s: $(last_words "${log}")"
    elif ! found="$(cells_of_rocm "${log}")"; then
        not_proven copies "rocm-bandwidth-test printed no whole matrix: $(last_words "${log}")"
    elif [[ "$(awk '{ print ($1 == "copy_to_gpu" ? $3 : $2) }' <<<"${found}" | sort -u | wc -l)" != "${GPUS_PER_NODE}" ]]; then
        note copies fail "" "${GPUS_PER_NODE}" GPUs "GPUs are missing in the matrix"
    else
        while read -r kind from to rate; do value "${kind}" "device ${from} to ${to}" "${rate}" GB/s rocm-bandwidth-test ""; done <<<"${found}"
    fi
}

# cells_of_rocm FILE: `CHECK FROM TO GB/s` of the copies in one direction. A row has the number of its device and what it copies to
# each device of the header. A device with a GPU's name and bus address is a GPU.
# Sources: ROCm/rocm_bandwidth_test, rocm_bandwidth_test_report.cpp; its successor of the same name prints other tables
cells_of_rocm() {
    awk '
        match($0, /Device: *[0-9]+,/) {
            number = substr($0, RSTART + 7, RLENGTH - 8) + 0
            is_gpu[number] = ($0 ~ /GPU-/)
            known[number] = 1
            next
        }
        /Unidirectional copy peak bandwidth GB\/s/ { inside = 1; next }
        /Bidirectional copy peak bandwidth/ { whole = inside; inside = 0 }
        inside && $1 == "D/D" { columns = NF - 1; for (i = 2; i <= NF; i++) device[i - 1] = $i; next }
        inside && columns && ($1 in known) {
            if (NF != columns + 1) { broken = 1; next }
            for (i = 1; i <= columns; i++) {
                if ($1 == device[i] || !is_gpu[$1] && !is_gpu[device[i]]) continue
                kind = is_gpu[$1] ? (is_gpu[device[i]] ? "copy_peer" : "copy_from_gpu") : "copy_to_gpu"
                if ($(i + 1) !~ /^[0-9]+([.][0-9]+)?$/) { broken = 1; continue }
                cell[++cells] = kind " " $1 " " device[i] " " $(i + 1)
            }
        }
        END { if (broken || !whole || !cells) exit 1; for (i = 1; i <= cells; i++) print cell[i] }' "$1"
}

# test_hbm: copy and triad in the GPUs' own memory by BabelStream's hip-stream, all GPUs at once.
test_hbm() {
    local tool kind gpu rate
    if ! tool="$(find_program "${HBM_BINARY}" hip-stream /opt/superbench/bin/hip-stream)"; then
        not_proven hbm "BabelStream's hip-stream is not here; set CONTAINER to an image that has it, or HBM_BINARY"
        return
    fi
    if ! per_gpu "${work}/hbm" "${tool}" --arraysize $((HBM_BYTES / 8)) --numtimes 100; then
        not_proven hbm "hip-stream failed on a GPU or ran past ${TOOL_TIMEOUT_S} s: $(last_words "${work}/hbm.0.log")"
        return
    fi
    for kind in Copy Triad; do
        for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
            if rate="$(memory_of_babelstream "${work}/hbm.${gpu}.log" "${kind}")"; then
                value "hbm_${kind,,}" "GPU ${gpu}" "${rate}" GB/s hip-stream ""
            else
                not_proven "hbm_${kind,,}" "GPU ${gpu} printed no result: $(last_words "${work}/hbm.${gpu}.log")"
            fi
        done
    done
}

# memory_of_babelstream FILE Copy|Triad: GB/s (10^9 bytes) of the one table, in MB/s, where nothing says that a result is wrong.
# Source: UoB-HPC/BabelStream, src/main.cpp
memory_of_babelstream() {
    awk -v kind="$2" '
        /Validation failed/ { broken = 1 }
        $1 == "Function" { table = ($2 == "MBytes/sec"); next }
        table && $1 == kind { if (NF != 5 || $2 !~ /^[0-9]+([.][0-9]+)?$/) broken = 1; rows++; rate = $2 }
        END { if (broken || rows != 1 || rate + 0 <= 0) exit 1; printf "%.1f\n", rate / 1000 }' "$1"
}
