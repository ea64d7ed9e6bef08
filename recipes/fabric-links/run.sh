#!/usr/bin/env bash
# shellcheck disable=SC2153  # settings come from settings.env
# Every InfiniBand port of every node against itself; then, with GPUs, NCCL inside each node with the ways through the node
# switched off, so that everything goes out of the ports and in again. No second node takes part: what is slow is this node.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/nccl.sh
. "${JOBS_LIB}/nccl.sh"
# shellcheck source=recipes/lib/outliers.sh
. "${JOBS_LIB}/outliers.sh"
# shellcheck source=recipes/lib/fabric.sh
. "${JOBS_LIB}/fabric.sh"

# measure_links: one task on every node; one that dies leaves no result.
measure_links() {
    mkdir -p "${results}/links"
    if ! bounded "$((LINK_TIMEOUT_S * 2 + 60))" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task="${VCPUS:-1}" --cpu-bind=none \
        --gpus-per-node="${GPUS_PER_NODE:-0}" --mem=0 --kill-on-bad-exit=0 ./links.sh; then
        log "srun reported a failed task"
    fi
}

# measure_passes: all ports once, or again and again until the stated time is over. Of several passes each port has the lowest
# figure, from three passes on the second lowest; the lowest is in links.lowest.
measure_passes() {
    local node
    local -i passes=0
    : >"${results}/links.lowest"
    while ((passes == 0 || SECONDS < stated_s)); do
        rm -f "${results}"/links/*.tsv
        measure_links
        if ((passes)) && was_cut_off; then break; fi
        passes+=1
        if ((stated_s == 0)); then return; fi
        while read -r node; do
            awk -v OFS='\t' -v node="${node}" '{ print node, $0 }' "${results}/links/${node}.tsv" 2>/dev/null >>"${results}/links.passes" || true
        done < <(requested_nodes)
    done
    log "${passes} passes in ${SECONDS} s"
    while read -r node; do combine_passes "${node}" "${passes}"; done < <(requested_nodes)
}

# combine_passes NODE PASSES: one result of all passes; without `end` where one of them was not whole. A port that a pass lacks has
# failed in it.
combine_passes() {
    awk -F '\t' -v OFS='\t' -v node="$1" -v passes="$2" -v lowest="${results}/links.lowest" "$(awk_statistics)"'
        $1 != node { next }
        $2 == "end" { ends++; next }
        {
            if (!($2 in count)) order[++devices] = $2
            value[$2, ++count[$2]] = $3 == "failed" ? 0 : $3 + 0
            memory[$2] = $4
            if ($3 == "failed") said[$2] = "; " $5
        }
        END {
            for (d = 1; d <= devices; d++) {
                device = order[d]
                for (i = 1; i <= passes; i++) list[i] = value[device, i] + 0
                sort_values(list, passes)
                figure = list[passes < 3 ? 1 : 2]
                print device, (figure > 0 ? figure : "failed"), memory[device], "the lowest of " passes " passes is " shown(list[1]) said[device]
                print node, device, (list[1] > 0 ? list[1] : "failed") >>lowest
            }
            if (ends == passes) print "end"
        }' "${results}/links.passes" >"${results}/links/$1.tsv"
}

# judge_links: one line for each port. By a floor where one holds for the memory that was measured, else by the median of all.
judge_links() {
    local node file device value memory detail verdict middle
    local ports limit=""
    cat "${results}"/links/*.tsv 2>/dev/null >"${results}/links.all" || true
    middle="$(awk -F '\t' "$(awk_statistics)"' NF == 4 && $2 != "failed" { list[++count] = $2 + 0 } END { if (count >= 4) printf "%.2f", median(list, count) }' "${results}/links.all")"
    if [[ -n "${middle}" ]]; then limit="$(awk -v middle="${middle}" -v share="${OUTLIER_FAIL_PERCENT}" 'BEGIN { printf "%.2f", middle * (1 - share / 100) }')"; fi
    while read -r node; do
        file="${results}/links/${node}.tsv"
        if [[ ! -s "${file}" || "$(tail -n 1 "${file}")" != end ]]; then
            if was_cut_off; then continue; fi
            record "${results}/checks.tsv" "links ${node}" error "" "${LINK_PORTS}" ports "$(with_host "${node}" "no complete result of this node")" "" "${node}"
            continue
        fi
        ports="$(grep -c $'\t' "${file}" || true)"
        verdict=pass
        if [[ "${ports}" != "${LINK_PORTS}" ]]; then verdict=fail; fi
        record "${results}/checks.tsv" "links ${node}" "${verdict}" "${ports}" "${LINK_PORTS}" ports "$(with_host "${node}" "InfiniBand ports of the node")" "${VM_SIZE}" "${node}"
        while IFS=$'\t' read -r device value memory detail; do
            if [[ "${device}" != end ]]; then judge_link; fi
        done <"${file}"
    done < <(requested_nodes)
}

# judge_link: the caller's device, value, memory and detail, by its middle and limit.
judge_link() {
    local verdict=no_baseline expected="" source="" lowest
    if [[ "${value}" == failed ]]; then
        verdict=fail value=""
    elif [[ -n "${LINK_FLOOR_GBPS}" && ("${memory}" == gpu || "${LINK_GPU_MEMORY}" != 1) ]]; then
        expected="${LINK_FLOOR_GBPS}" source="${LINK_SOURCE}"
        verdict="$(judge "${value}" "${limit}" "${LINK_FLOOR_GBPS}")"
        if [[ "${verdict}" == warn ]]; then detail="more than ${OUTLIER_FAIL_PERCENT} % below the median of all ports, ${middle}"; fi
    elif [[ -n "${middle}" ]]; then
        expected="${middle}" source="median of $(grep -c $'\t' "${results}/links.all") ports"
        verdict="$(judge "${value}" "" "${limit}")"
    fi
    # Once in many passes is no reason to replace a node, and none to keep silent.
    lowest="$(awk -F '\t' -v node="${node}" -v device="${device}" '$1 == node && $2 == device { print $3 }' "${results}/links.lowest")"
    if [[ "${verdict}" == pass && -n "${lowest}" && "$(judge "${lowest}" "" "${expected}")" == fail ]]; then verdict=warn; fi
    detail="${memory} memory, ${LINK_MESSAGE_BYTES} bytes${detail:+; ${detail}}"
    if [[ "${verdict}" != pass ]]; then detail="$(with_host "${node}" "${detail}")"; fi
    record "${results}/checks.tsv" "link ${node} ${device}" "${verdict}" "${value}" "${expected}" Gb/s "${detail}" "${source}" "${node}"
}

# loopback: NCCL in every node by itself, over its ports only; a node below the floor tries again.
loopback() {
    local attempt node value verdict
    export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET_GDR_LEVEL=5
    requested_nodes >"${results}/waiting"
    : >"${results}/loopback.tsv"
    for ((attempt = 1; attempt <= LOOPBACK_ATTEMPTS; attempt++)); do
        if [[ ! -s "${results}/waiting" ]]; then break; fi
        if ((SECONDS + GROUP_TIMEOUT_S > BUDGET_S)); then
            if ((attempt > 1)); then break; fi
            record "${results}/checks.tsv" time error "${SECONDS}" "${BUDGET_S}" s "no time was left for NCCL over the ports: raise BUDGET_S, or submit it with a longer --time" given ""
            return
        fi
        awk -v OFS='\t' -v attempt="${attempt}" '{ print "loop" attempt "-" NR, $1, "" }' "${results}/waiting" >"${results}/plan"
        measure_groups "${results}/plan" "${results}/loopback.tsv"
        # Without a floor one number is as good as the next.
        awk -F '\t' -v floor="${LOOPBACK_FLOOR:-0}" 'FILENAME == ARGV[1] { if ($3 != "failed" && $3 > best[$2]) best[$2] = $3; next } !($1 in best) || best[$1] < floor + 0' \
            "${results}/loopback.tsv" "${results}/waiting" >"${results}/still"
        mv "${results}/still" "${results}/waiting"
    done
    local middle limit
    awk -F '\t' -v OFS='\t' '!($2 in best) { best[$2] = 0 } $3 != "failed" && $3 > best[$2] { best[$2] = $3 } END { for (node in best) print node, best[node] }' "${results}/loopback.tsv" >"${results}/loopback.best"
    middle="$(awk -F '\t' "$(awk_statistics)"' $2 > 0 { list[++count] = $2 + 0 } END { if (count >= 4) printf "%.2f", median(list, count) }' "${results}/loopback.best")"
    limit="${middle:+$(awk -v middle="${middle}" -v share="${OUTLIER_FAIL_PERCENT}" 'BEGIN { printf "%.2f", middle * (1 - share / 100) }')}"
    while read -r node; do
        value="$(awk -F '\t' -v node="${node}" '$1 == node { print $2 }' "${results}/loopback.best")"
        if [[ -n "${LOOPBACK_FLOOR}" ]]; then
            verdict="$(judge "${value}" "${limit}" "${LOOPBACK_FLOOR}")"
            record "${results}/checks.tsv" "loopback ${node}" "${verdict}" "${value}" "${LOOPBACK_FLOOR}" GB/s "$(with_host "${node}" "NCCL over the ports of the node alone")" "${LOOPBACK_SOURCE}" "${node}"
        else
            verdict="$(judge "${value}" "" "${limit}")"
            record "${results}/checks.tsv" "loopback ${node}" "${verdict}" "${value}" "${middle}" GB/s "$(with_host "${node}" "NCCL over the ports of the node alone")" "${middle:+median of nodes}" "${node}"
        fi
    done < <(requested_nodes)
}

main() {
    load_settings
    new_results_folder
    require LINK_PORTS LINK_MESSAGE_BYTES LINK_TIMEOUT_S LOOPBACK LOOPBACK_ATTEMPTS BUDGET_S MINUTES
    stated_time
    require_commands srun scontrol timeout awk
    forget_tuning
    need_time
    measure_passes
    judge_links
    end_if_cut_off
    if [[ "${LOOPBACK}" == auto && "${METHOD}" == nccl ]]; then
        MESSAGE_SIZE="${LOOPBACK_MESSAGE_END}"
        fabric_tool
        loopback
    fi
    conclude "$(grep -c $'\t' "${results}/links.all" || true) ports of ${SLURM_JOB_NUM_NODES} nodes"
}
main "$@"
