# shellcheck shell=bash
# shellcheck disable=SC2154  # work and results are of node.sh
# Tests of the GPUs one by one: inventory, copies, links, memory, matrix products, DCGM. Sourced by node.sh.

readonly DCGM_FAILED=' 205 226 237 238 199 '

# smi FIELDS: one line `INDEX, VALUE, …` for each GPU; fails where the driver does not answer or does not know a field.
smi() {
    timeout 60 nvidia-smi "--query-gpu=index,$1" --format=csv,noheader,nounits
}

# test_inventory: the GPUs are there, and alike. run.sh compares the nodes with each other.
test_inventory() {
    local -r file="${work}/inventory.csv"
    if ! smi name,driver_version,vbios_version,clocks.max.sm,power.limit,ecc.mode.current,persistence_mode >"${file}" 2>&1; then
        not_proven inventory "nvidia-smi: $(last_words "${file}")"
        return
    fi
    judge_inventory "${file}" nvidia-smi
}

# judge_inventory FILE TOOL [FILE]: GPUs as lines `INDEX, WORDS`: as many as the size has, and all with the same words. Those are
# what nodes have in common; the second file is of the whole node.
judge_inventory() {
    local -r file="$1" tool="$2" more="${3:-}"
    local count different
    count="$(grep -c '^[0-9]' "${file}" || true)"
    if [[ "${count}" == "${GPUS_PER_NODE}" ]]; then
        note gpus pass "${count}" "${GPUS_PER_NODE}" GPUs ""
    else
        note gpus fail "${count}" "${GPUS_PER_NODE}" GPUs "counted by ${tool}"
    fi
    different="$(sed -E 's/^[0-9]+, *//' "${file}" | sort | uniq -c | sort -rn | tail -n +2)"
    if [[ -z "${different}" ]]; then
        note gpus_alike pass "" "" "" "$(sed -nE '1s/^[0-9]+, *//p' "${file}")"
    else
        note gpus_alike warn "" "" "" "differs from the others of the node: $(head -n 1 <<<"${different}" | sed -E 's/^ *[0-9]+ //')"
    fi
    {
        sed -E 's/^[0-9]+, *//' "${file}"
        if [[ -r "${more}" ]]; then cat "${more}"; fi
    } | sort -u >"${results}/${SLURMD_NODENAME}.alike"
}

# find_program NAME-OR-PATH...: the first that is there.
find_program() {
    local candidate
    for candidate in "$@"; do
        if [[ -n "${candidate}" ]] && command -v "${candidate}" >/dev/null; then
            echo "${candidate}"
            return
        fi
    done
    return 1
}

# test_copies: host to GPU, GPU to host, GPU to GPU. x86 images of Azure have no nvbandwidth; there DCGM's own copy of it
# runs, which judges by figures of its own.
test_copies() {
    local tool
    if tool="$(find_program "${NVBANDWIDTH}" nvbandwidth /opt/nvidia/nvbandwidth/nvbandwidth /opt/superbench/bin/nvbandwidth)"; then
        measure_copy copy_to_gpu host_to_device_memcpy_ce "${GPUS_PER_NODE}" "${tool}"
        measure_copy copy_from_gpu device_to_host_memcpy_ce "${GPUS_PER_NODE}" "${tool}"
        if ((GPUS_PER_NODE > 1)); then
            measure_copy copy_peer device_to_device_memcpy_read_ce $((GPUS_PER_NODE * (GPUS_PER_NODE - 1))) "${tool}"
        fi
    elif command -v dcgmi >/dev/null; then
        diagnose copies nvbandwidth 600
    else
        not_proven copies "neither nvbandwidth nor DCGM is on this node; set CONTAINER to an image that has nvbandwidth"
    fi
}

# measure_copy CHECK TEST CELLS TOOL: one matrix, whole. A GPU is as fast as its slowest cell.
measure_copy() {
    local -r check="$1" test="$2" cells="$3" tool="$4"
    local -r log="${work}/${check}.log"
    local row column rate found
    if ! timeout "${TOOL_TIMEOUT_S}" "${tool}" -t "${test}" -i 10 >"${log}" 2>&1; then
        not_proven "${check}" "nvbandwidth failed or ran past ${TOOL_TIMEOUT_S} s: $(last_words "${log}")"
    elif ! found="$(cells_of_nvbandwidth "${log}" "${test}")"; then
        not_proven "${check}" "nvbandwidth printed no whole matrix"
    elif [[ "$(wc -l <<<"${found}")" != "${cells}" ]]; then
        note "${check}" fail "$(wc -l <<<"${found}")" "${cells}" copies "GPUs are missing in the matrix"
    else
        while read -r row column rate; do value "${check}" "row ${row}, GPU ${column}" "${rate}" GB/s nvbandwidth ""; done <<<"${found}"
    fi
}

# test_links: each GPU has as many NVLinks as the size has, and as many of them are active: some cards have links that nothing is
# wired to. Error counters are kept as they are now; after the load they are read again.
test_links() {
    local -r log="${work}/nvlink.log"
    local -r published="${NVLINKS_ACTIVE:-0}"
    local gpu active inactive states bad="" most="${published}" all="${NVLINKS_LISTED:-0}"
    if ((GPUS_PER_NODE < 2)); then return 0; fi
    if ! timeout 60 nvidia-smi nvlink -s >"${log}" 2>&1 || ! states="$(links_of_nvlink "${log}")"; then
        not_proven nvlink "nvidia-smi nvlink -s: $(last_words "${log}")"
        return
    fi
    # Where nobody has published the size's links, the GPU with most of them says how many there are.
    while read -r gpu active inactive; do
        if ! is_count "${active}" || ! is_count "${inactive}"; then continue; fi
        if ((published == 0 && active > most)); then most=${active}; fi
        if ((published == 0 && active + inactive > all)); then all=$((active + inactive)); fi
    done <<<"${states}"
    while read -r gpu active inactive; do
        if ! is_count "${active}" || ! is_count "${inactive}"; then
            bad+="${bad:+, }GPU ${gpu:0:20}: no number of links"
        elif ((active < most || active + inactive < all || (published == 0 && inactive > 0))); then
            bad+="${bad:+, }GPU ${gpu}: ${active} of ${most} links"
        fi
    done <<<"${states}"
    if ((most == 0)); then
        note nvlink no_baseline 0 "" "links" "no GPU of this node has an active NVLink, and the size has no published number"
    elif [[ "$(wc -l <<<"${states}")" != "${GPUS_PER_NODE}" ]]; then
        note nvlink fail "$(wc -l <<<"${states}")" "${GPUS_PER_NODE}" GPUs "GPUs are missing in the list of links"
    elif [[ -n "${bad}" ]]; then
        note nvlink fail "" "${most}" "links per GPU" "${bad}"
    else
        note nvlink pass "${most}" "${most}" "links per GPU" ""
    fi
    read_link_errors before || true
}

# read_link_errors WHEN: the counters of this moment.
read_link_errors() {
    local -r log="${work}/nvlink-errors.$1"
    timeout 60 nvidia-smi nvlink -e >"${log}.log" 2>&1 && errors_of_nvlink "${log}.log" >"${log}"
}

# test_link_errors: counters that grew since test_links. Replays and recoveries are transfers that failed once.
test_link_errors() {
    if ((GPUS_PER_NODE < 2)) || [[ ! -e "${work}/nvlink.log" ]]; then return 0; fi
    if ! read_link_errors after || [[ ! -e "${work}/nvlink-errors.before" ]]; then
        not_proven nvlink_errors "nvidia-smi nvlink -e: $(last_words "${work}/nvlink-errors.after.log")"
        return
    fi
    local grown
    grown="$(awk '
        { key = $1 " " $2; name = $4; for (i = 5; i <= NF; i++) name = name " " $i; key = key " " name }
        FILENAME == ARGV[1] { before[key] = $3; next }
        $3 - before[key] > 0 { printf "%sGPU %s link %s: %d %s", (found++ ? ", " : ""), $1, $2, $3 - before[key], name }' \
        "${work}/nvlink-errors.before" "${work}/nvlink-errors.after")"
    if [[ -n "${grown}" ]]; then
        note nvlink_errors fail "" 0 errors "grown during the tests: ${grown}"
    elif [[ ! -s "${work}/nvlink-errors.after" ]]; then
        not_proven nvlink_errors "the driver shows no counters"
    else
        note nvlink_errors pass 0 0 errors "$(wc -l <"${work}/nvlink-errors.after") counters, none has grown"
    fi
}

# test_dcgm: DCGM's diagnosis of the level that is set.
test_dcgm() {
    if ! command -v dcgmi >/dev/null; then
        not_proven dcgm "DCGM is not on this node"
        return
    fi
    if [[ ! "${DCGM_LEVEL}" =~ ^[1-4]$ ]]; then
        not_proven dcgm "DCGM_LEVEL is '${DCGM_LEVEL}'; levels are 1 to 4"
        return
    fi
    diagnose dcgm "${DCGM_LEVEL}" "${DCGM_LIMIT_S[DCGM_LEVEL]}"
}

# diagnose CHECK WHAT SECONDS: the answer decides, and the exit status, which is DCGM's code modulo 256, has to agree with it.
# Source: NVIDIA/DCGM, dcgmi/main_dcgmi.cpp and Diag.cpp; DCGM 3 ends with 1 for a failed test.
diagnose() {
    local -r check="$1" what="$2" limit="$3"
    local -r log="${work}/dcgm-${what}.json"
    local status=0 word text
    local -A said=()
    timeout "${limit}" dcgmi diag -r "${what}" -j >"${log}" 2>&1 || status=$?
    while IFS=$'\t' read -r word text; do said[${word}]="${text}"; done < <(dcgm_summary "${log}" || true)
    local -r version="DCGM ${said[version]:-unknown}"
    if [[ -n "${said[fail]:-}" ]]; then
        note "${check}" fail "" "" "" "${said[why]:-${said[fail]}} (${version})" "DCGM's own limits"
    elif [[ "${DCGM_FAILED}" == *" ${status} "* ]]; then
        note "${check}" fail "${status}" 0 "exit status" "$(last_words "${log}")" "DCGM's own limits"
    elif ((status == 124 || status == 137)); then
        not_proven "${check}" "dcgmi diag -r ${what} ran past ${limit} s"
    elif [[ -n "${said[error]:-}" ]]; then
        not_proven "${check}" "dcgmi: ${said[error]}"
    elif ((status != 0)); then
        not_proven "${check}" "dcgmi ended with ${status}: $(last_words "${log}")"
    elif [[ -z "${said[pass]:-}${said[warn]:-}" || -n "${said[skip]:-}" ]]; then
        not_proven "${check}" "dcgmi skipped: ${said[skip]:-everything}; passed: ${said[pass]:-nothing}"
    elif [[ -n "${said[warn]:-}" ]]; then
        note "${check}" warn "" "" "" "${said[why]:-${said[warn]}} (${version})" "DCGM's own limits"
    else
        note "${check}" pass "" "" "" "diag -r ${what}: ${said[pass]} (${version})" "DCGM's own limits"
    fi
}

# per_gpu LOG-PREFIX COMMAND...: the command once for each GPU, all at once, each seeing only its own. Fails where one fails.
per_gpu() {
    local -r prefix="$1"
    shift
    local gpu process failed=0
    local -a processes=()
    for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
        CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="${gpu}" HIP_VISIBLE_DEVICES="${gpu}" timeout "${TOOL_TIMEOUT_S}" "$@" >"${prefix}.${gpu}.log" 2>&1 &
        processes+=("$!")
    done
    for process in "${processes[@]}"; do wait "${process}" || failed=1; done
    return "${failed}"
}

# test_gemm: matrix products of each type in GEMM_TYPES by SuperBench's cublaslt_gemm, all GPUs at once.
test_gemm() {
    local tool type gpu rate
    if ! tool="$(find_program "${GEMM_BINARY}" cublaslt_gemm /opt/superbench/bin/cublaslt_gemm)"; then
        for type in ${GEMM_TYPES}; do not_proven "gemm_${type}" "cublaslt_gemm is not here; set CONTAINER to SuperBench's image, or GEMM_BINARY"; done
        return
    fi
    for type in ${GEMM_TYPES}; do
        if ! per_gpu "${work}/gemm_${type}" "${tool}" -m "${GEMM_EDGE}" -n "${GEMM_EDGE}" -k "${GEMM_EDGE}" -b 0 -w "${GEMM_WARMUP}" -i "${GEMM_ITERATIONS}" -t "${type}"; then
            not_proven "gemm_${type}" "cublaslt_gemm failed on a GPU or ran past ${TOOL_TIMEOUT_S} s: $(last_words "${work}/gemm_${type}.0.log")"
            continue
        fi
        for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
            if rate="$(gemm_of_cublaslt "${work}/gemm_${type}.${gpu}.log" "${GEMM_EDGE}")"; then
                value "gemm_${type}" "GPU ${gpu}" "${rate}" TFLOPS cublaslt_gemm "edge ${GEMM_EDGE}"
            else
                not_proven "gemm_${type}" "GPU ${gpu} printed no result: $(last_words "${work}/gemm_${type}.${gpu}.log")"
            fi
        done
    done
}

# test_hbm: copy and triad in the GPUs' own memory by SuperBench's gpu_stream, all GPUs at once.
test_hbm() {
    local tool kind gpu rate
    if ! tool="$(find_program "${HBM_BINARY}" gpu_stream /opt/superbench/bin/gpu_stream)"; then
        not_proven hbm "gpu_stream is not here; set CONTAINER to SuperBench's image, or HBM_BINARY"
        return
    fi
    if ! per_gpu "${work}/hbm" "${tool}" --size "${HBM_BYTES}" --num_warm_up 20 --num_loops 100 --check_data; then
        not_proven hbm "gpu_stream failed on a GPU or ran past ${TOOL_TIMEOUT_S} s: $(last_words "${work}/hbm.0.log")"
        return
    fi
    for kind in COPY TRIAD; do
        for ((gpu = 0; gpu < GPUS_PER_NODE; gpu++)); do
            if rate="$(memory_of_gpu_stream "${work}/hbm.${gpu}.log" "${kind}")"; then
                value "hbm_${kind,,}" "GPU ${gpu}" "${rate}" GB/s gpu_stream ""
            else
                not_proven "hbm_${kind,,}" "GPU ${gpu} printed no result: $(last_words "${work}/hbm.${gpu}.log")"
            fi
        done
    done
}
