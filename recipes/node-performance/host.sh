# shellcheck shell=bash
# shellcheck disable=SC2154  # work and results are of node.sh
# Tests of the host: memory bandwidth and the local NVMe disks. Sourced by node.sh.

# test_stream: the four loops of STREAM on all CPUs, by the program of STREAM_BINARY, or by stream.c as this node compiles it.
# Published floors are of other builds, so nodes are compared with each other.
test_stream() {
    local -r log="${work}/stream.log"
    local tool="${STREAM_BINARY}" name="${STREAM_BINARY##*/}" elements rate
    local -a command=("${tool}")
    if [[ -z "${tool}" ]]; then
        if ! command -v gcc >/dev/null; then
            not_proven cpu_stream "gcc is not on this node; set STREAM_BINARY"
            return
        fi
        tool="${work}/stream" name="stream.c"
        if ! gcc -O3 -march=native -fopenmp -o "${tool}" stream.c >"${log}" 2>&1; then
            not_proven cpu_stream "gcc: $(last_words "${log}")"
            return
        fi
        elements="$(stream_elements)"
        command=("${tool}" "${elements}" 10)
    elif ! command -v "${tool}" >/dev/null; then
        not_proven cpu_stream "STREAM_BINARY is ${tool}, which is not on this node"
        return
    fi
    if ! OMP_PROC_BIND="${OMP_PROC_BIND:-spread}" timeout "${TOOL_TIMEOUT_S}" "${command[@]}" >"${log}" 2>&1; then
        if grep -q 'Failed Validation' "${log}"; then
            note cpu_stream fail "" "" "" "the CPUs or the memory computed wrong values: $(grep -m 1 'Failed Validation' "${log}")"
        else
            not_proven cpu_stream "${name} failed or ran past ${TOOL_TIMEOUT_S} s: $(last_words "${log}")"
        fi
    elif grep -q 'Failed Validation' "${log}"; then
        note cpu_stream fail "" "" "" "the CPUs or the memory computed wrong values: $(grep -m 1 'Failed Validation' "${log}")"
    elif rate="$(stream_triad "${log}")"; then
        value cpu_stream Triad "${rate}" MB/s "${name}" ""
    else
        not_proven cpu_stream "${name} printed no whole result: $(last_words "${log}")"
    fi
}

# stream_elements: arrays of STREAM_MIB each, three of them in at most a quarter of the memory.
stream_elements() {
    awk -v mib="${STREAM_MIB}" '/^MemAvailable:/ { most = $2 / 1024 / 12; if (most < mib) mib = most; printf "%d\n", mib * 131072 }' "${CF_ROOT:-}/proc/meminfo"
}

# stream_triad FILE: MB/s of Triad, where all four lines are there. Best rates, as STREAM prints them.
# Form: https://www.cs.virginia.edu/stream/ref.html ("Triad:  rate  avg  min  max")
stream_triad() {
    awk '
        /^(Copy|Scale|Add|Triad):[ \t]+[0-9]+([.][0-9]+)?/ { lines++; if ($1 == "Triad:") rate = $2 }
        END { if (lines != 4 || rate + 0 <= 0) exit 1; printf "%.1f\n", rate }' "$1"
}

# test_nvme: sequential writes, then reads of the array of local disks.
test_nvme() {
    local folder way rate log
    local -r tool="$(disk_tool)"
    if [[ -z "${NVME_MOUNT}" ]]; then
        not_proven nvme "no array of local disks is mounted here: NVME_MOUNT is empty"
        return
    fi
    if ! folder="$(mktemp -d "${NVME_MOUNT}/cycleforge.XXXXXX" 2>&1)"; then
        not_proven nvme "${folder}"
        return
    fi
    # shellcheck disable=SC2064
    trap "rm -rf '${folder}'" EXIT
    for way in write read; do
        log="${work}/nvme_${way}.log"
        if rate="$(DISK_SECONDS="${NVME_S}" disk_rate "${folder}" "${way}" "${NVME_JOBS}" "${NVME_MIB}" "${log}")"; then
            value "nvme_${way}" array "${rate}" MB/s "${tool}" "${NVME_JOBS} processes of ${NVME_MIB} MiB"
        else
            not_proven "nvme_${way}" "${tool}: $(last_words "${log}")"
        fi
    done
    rm -rf "${folder}"
    trap - EXIT
}
