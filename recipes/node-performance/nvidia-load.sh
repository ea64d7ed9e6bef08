# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # load.sh reads the names, work is of node.sh
# The load of NVIDIA's GPUs, and how they are watched. Sourced by node.sh.

readonly NO_LOAD_TOOL="neither ubergemm nor dcgmproftester is on this node (both are of DCGM)" WATCHED_BY=nvidia-smi

# make_load: ubergemm where DCGM has it, by whose figures public floors are; else dcgmproftester. 127: there is neither.
make_load() {
    local tool
    if tool="$(find_ubergemm)"; then
        load_tool=ubergemm
        load_by_ubergemm "${tool}"
    elif tool="$(find_program "${PROFTESTER}" dcgmproftester13 dcgmproftester12)"; then
        load_tool=dcgmproftester
        load_by_proftester "${tool}"
    else
        return 127
    fi
}

# limit_of_heat: from which temperature on a GPU is too hot, in Celsius.
limit_of_heat() {
    echo "${TEMPERATURE_WARN_C}"
}

# begin_samples: the field of the reasons has two names: before driver 535.54 it is clocks_throttle_reasons.active.
begin_samples() {
    reasons_field=clocks_event_reasons.active
    if ! smi "${reasons_field}" >/dev/null 2>&1; then reasons_field=clocks_throttle_reasons.active; fi
}

# sample_gpus: `INDEX, temperature, power, clock, reasons` of each GPU.
sample_gpus() {
    smi "temperature.gpu,power.draw,clocks.current.sm,${reasons_field}"
}

# find_ubergemm: of DCGM 4 for CUDA 13 or 12, of DCGM 3. The build for CUDA 13 does not run on V100 and older.
find_ubergemm() {
    local -r root="${CF_ROOT:-}"
    local -a folders=("${root}/usr/libexec/datacenter-gpu-manager-4/plugins/cuda13/updated" "${root}/usr/libexec/datacenter-gpu-manager-4/plugins/cuda12/updated"
        "${root}/usr/libexec/datacenter-gpu-manager-4/plugins/cuda12" "${root}/usr/share/nvidia-validation-suite/plugins/cuda12")
    if smi name 2>/dev/null | grep -q V100; then folders=("${folders[@]:1}"); fi
    find_program "${UBERGEMM}" "${folders[@]/%//ubergemm}"
}

# load_by_ubergemm TOOL: one process for each GPU. Its GFLOPS are in its output.
load_by_ubergemm() {
    local gpu rate failed=0
    local -a processes=()
    for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
        timeout $((LOAD_S + TOOL_TIMEOUT_S)) "$1" --adapters "${gpu}" --time_to_run "${LOAD_S}" >"${work}/ubergemm.${gpu}.log" 2>&1 &
        processes+=("$!")
    done
    for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
        if ! wait "${processes[gpu]}"; then
            failed=1
            not_proven gemm "ubergemm failed on GPU ${gpu}: $(last_words "${work}/ubergemm.${gpu}.log")"
        elif rate="$(gemm_of_ubergemm "${work}/ubergemm.${gpu}.log")"; then
            value gemm "GPU ${gpu}" "${rate}" TFLOPS "$(tool_name ubergemm)" "${LOAD_S} s"
        else
            failed=1
            not_proven gemm "ubergemm printed no result for GPU ${gpu}: $(last_words "${work}/ubergemm.${gpu}.log")"
        fi
    done
    return "${failed}"
}

# tool_name TOOL: the public floors are of runs of a minute; a shorter one is another test.
tool_name() {
    if ((LOAD_S < 60)); then echo "$1 below a minute"; else echo "$1"; fi
}

# load_by_proftester TOOL: one process for all GPUs, on the tensor cores (target 1004).
load_by_proftester() {
    local gpu rate failed=0
    local -r log="${work}/dcgmproftester.log"
    if ! timeout $((LOAD_S + TOOL_TIMEOUT_S)) "$1" --no-dcgm-validation --max-processes 0 -t 1004 -d "${LOAD_S}" >"${log}" 2>&1; then
        not_proven gemm "dcgmproftester failed: $(last_words "${log}")"
        return 1
    fi
    for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
        if rate="$(gemm_of_proftester "${log}" "${gpu}")"; then
            value gemm "GPU ${gpu}" "${rate}" TFLOPS "$(tool_name dcgmproftester)" "${LOAD_S} s"
        else
            # Some releases load the GPUs and print no rate. Source: https://github.com/NVIDIA/DCGM/issues/239
            failed=2
        fi
    done
    if ((failed == 2)); then not_proven gemm "this dcgmproftester prints no rate for every GPU"; fi
}
