#!/usr/bin/env bash
# Tests every node of the job by itself, judges each figure by its floor and against the other nodes, and names outliers.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/fleet.sh
. "${JOBS_LIB}/fleet.sh"
# shellcheck source=recipes/node-performance/durations.sh
. ./durations.sh

# choose_tests: what runs on the host and what in the container. `auto` is all that the image and the settings allow; what it
# leaves out is said in the summary.
choose_tests() {
    local test
    local -a wanted=() inside=()
    local in_container=' gemm hbm copies '
    # Images of AMD sizes bring what copies.
    if [[ "${GPU_VENDOR:-}" == AMD ]]; then in_container=' gemm hbm '; fi
    if [[ "${TESTS}" == auto ]]; then
        if ((GPUS_PER_NODE)) && [[ "${GPU_VENDOR:-}" == AMD ]]; then
            wanted+=(inventory)
            if has_rvs; then wanted+=(load); else left_out+=("load, because rvs is not on this node"); fi
            wanted+=(copies)
            if [[ -n "${CONTAINER}" ]] || has_rvs; then wanted+=(gemm); else left_out+=("GEMM of ${GEMM_TYPES// /, }"); fi
            if [[ -n "${CONTAINER}${HBM_BINARY}" ]]; then wanted+=(hbm); else left_out+=("GPU memory"); fi
        elif ((GPUS_PER_NODE)); then
            wanted+=(inventory links load copies dcgm)
            if [[ -n "${CONTAINER}${GEMM_BINARY}" ]]; then wanted+=(gemm); else left_out+=("GEMM of ${GEMM_TYPES// /, }"); fi
            if [[ -n "${CONTAINER}${HBM_BINARY}" ]]; then wanted+=(hbm); else left_out+=("GPU memory"); fi
        fi
        wanted+=(stream)
        if [[ -n "${NVME_MOUNT}" ]]; then wanted+=(nvme); fi
        if ((GPUS_PER_NODE)) && [[ "${GPU_VENDOR:-}" != AMD ]]; then wanted+=(link_errors); fi
    else
        read -r -a wanted <<<"${TESTS//,/ }"
    fi
    HOST_TESTS="" CONTAINER_TESTS=""
    for test in "${wanted[@]}"; do
        if [[ -n "${CONTAINER}" && "${in_container}" == *" ${test} "* ]]; then inside+=("${test}"); else HOST_TESTS+="${HOST_TESTS:+ }${test}"; fi
    done
    CONTAINER_TESTS="${inside[*]}"
    export HOST_TESTS CONTAINER_TESTS
    [[ -n "${HOST_TESTS}${CONTAINER_TESTS}" ]] || die "TESTS is empty; set it to auto, or to names of tests"
}

# has_rvs: ROCm Validation Suite is on this node, and so on all of its image.
has_rvs() {
    [[ -n "${RVS}" || -x "${CF_ROOT:-}/opt/rocm/bin/rvs" ]] || command -v rvs >/dev/null
}

# on_nodes WHERE OPTION...: one task on every node.
on_nodes() {
    local -r where="$1"
    shift
    need_time
    log "tests ($where): $([[ "${where}" == host ]] && echo "${HOST_TESTS}" || echo "${CONTAINER_TESTS}")"
    if ! bounded "${TIMEOUT_S:-$(limit_of_tests)}" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${VCPUS:-1}" --mem=0 --cpu-bind=none \
        --kill-on-bad-exit=0 "$@" ./node.sh "${where}"; then
        log "srun reported a failed task"
    fi
}

# collect WHERE: what the nodes noted, and which of them gave no complete result.
collect() {
    local node
    while read -r node; do
        if [[ -e "${results}/${node}.$1.done" ]]; then
            cat "${results}/${node}.$1.tsv" >>"${results}/checks.tsv"
            # Figures of some GPUs are none of the node, where another one could not be measured.
            awk -F '\t' 'FILENAME == ARGV[1] { noted[$1] = 1; next } !($1 in noted)' \
                "${results}/${node}.$1.tsv" "${results}/${node}.$1.values" >>"${results}/values.tsv"
            cat "${results}/${node}.$1.series" >>"${results}/series.tsv"
        else
            if was_cut_off; then
                log "${node}: had no time for a complete result ($1)"
            else
                record "${results}/checks.tsv" complete fail "" "" "" "no complete result ($1)" "" "${node}"
            fi
            cat "${results}/${node}.$1.tsv" >>"${results}/checks.tsv" 2>/dev/null || true
        fi
    done < <(requested_nodes)
}

# earlier_runs: what they measured, as `judge_fleet` takes it; runs that failed do not count.
earlier_runs() {
    local folder verdict
    for folder in "${HISTORY_DIR:-${RESULTS_DIR}}"/*/; do
        if [[ "${folder}" -ef "${results}" || ! -f "${folder}values.tsv" || ! -f "${folder}verdict" ]]; then continue; fi
        read -r verdict <"${folder}verdict" || true
        if [[ " pass warn no_baseline " == *" ${verdict} "* ]]; then
            awk -F '\t' -v OFS='\t' -v run="$(basename "${folder}")" 'NF == 7 { print $1, $6, $5, $4, run }' "${folder}values.tsv"
        fi
    done
}

# judge_values: figures by floor and fleet; a node that has no figure where others have one is not proven.
judge_values() {
    earlier_runs >"${results}/history.tsv"
    judge_fleet figures.tsv "${results}/values.tsv" "${results}/history.tsv" >>"${results}/checks.tsv"
    # A node that had no time for its figures lacks none.
    if was_cut_off; then cut -f 2 "${results}/values.tsv" | sort -u; else requested_nodes; fi >"${results}/nodes.txt"
    awk -F '\t' -v OFS='\t' '
        FILENAME == ARGV[1] { node[++nodes] = $1; next }
        FILENAME == ARGV[2] { found[$1, $NF] = 1; next }
        !($1 in check) { check[$1] = 1; name[++names] = $1 }
        END {
            for (i = 1; i <= names; i++)
                for (k = 1; k <= nodes; k++)
                    if (!((name[i], node[k]) in found)) print name[i], "error", "", "", "", "not proven: other nodes have a figure, this one has none", "", node[k]
        }' "${results}/nodes.txt" "${results}/checks.tsv" "${results}/values.tsv" >"${results}/missing.tsv"
    cat "${results}/missing.tsv" >>"${results}/checks.tsv"
}

# compare_nodes: GPUs, driver and settings of the odd nodes out, against what most nodes have.
compare_nodes() {
    local node usual
    local -a files=("${results}"/*.alike)
    if [[ ! -e "${files[0]}" ]] || ((${#files[@]} < 2)); then return 0; fi
    usual="$(for node in "${files[@]}"; do tr '\n' ';' <"${node}"; echo; done | sort | uniq -c | sort -rn | awk 'NR == 1 { sub(/^ *[0-9]+ /, ""); print }')"
    for node in "${files[@]}"; do
        if [[ "$(tr '\n' ';' <"${node}")" != "${usual}" ]]; then
            record "${results}/checks.tsv" nodes_alike warn "$(tr '\n' ';' <"${node}")" "${usual}" "" "differs from most nodes" "most of ${#files[@]} nodes" "$(basename "${node}" .alike)"
        fi
    done
}

# limit_of_tests: who has not ended by then hangs, also where two tools have run until they were ended.
limit_of_tests() {
    echo $(($(need_of_tests 100) + 2 * TOOL_TIMEOUT_S))
}

# enough_time: a burn that the time limit cuts off proves nothing.
enough_time() {
    local -r need="$(($(need_of_tests 50) + BEFORE_END_S))"
    if ! ends_within "${need}"; then return 0; fi
    die "the tests take about ${need} s (LOAD_S is ${LOAD_S}, DCGM_LEVEL ${DCGM_LEVEL}) and the job ends in ${seconds_left} s; submit it with a longer --time, for example --time=$((need / 60 + 15))"
}

main() {
    local -a left_out=()
    load_settings
    new_results_folder
    require TESTS LOAD_S SAMPLE_S TOOL_TIMEOUT_S THROTTLE_MASK TEMPERATURE_WARN_C DCGM_LEVEL
    require_commands srun scontrol timeout awk
    forget_tuning
    choose_tests
    enough_time
    : >"${results}/values.tsv"
    if [[ -n "${HOST_TESTS}" ]]; then
        on_nodes host
        collect host
    fi
    if [[ -n "${CONTAINER_TESTS}" ]]; then
        on_nodes container --container-image="${CONTAINER}" --container-mounts="${PWD}:${PWD},${JOBS_LIB}:${JOBS_LIB},${results}:${results}" --container-workdir="${PWD}"
        collect container
    fi
    judge_values
    compare_nodes
    awk -F '\t' '$2 == "fail" && $NF != "" { print $NF }' "${results}/checks.tsv" | sort -u >"${results}/failed_nodes.txt"
    conclude "$(wc -l <"${results}/failed_nodes.txt") of ${SLURM_JOB_NUM_NODES} nodes failed$(not_tested "${left_out[@]}")"
}
main "$@"
