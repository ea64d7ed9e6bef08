#!/usr/bin/env bash
# Which node, or which adapter of which node, slows the cluster down: collectives over all nodes, by one adapter at a time,
# then over halves, their halves and so on, and at last between each suspect and good nodes.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/nccl.sh
. "${JOBS_LIB}/nccl.sh"
# shellcheck source=recipes/lib/outliers.sh
. "${JOBS_LIB}/outliers.sh"
# shellcheck source=recipes/lib/tournament.sh
. "${JOBS_LIB}/tournament.sh"
# shellcheck source=recipes/lib/fabric.sh
. "${JOBS_LIB}/fabric.sh"
# shellcheck source=recipes/lib/bisect.sh
. "${JOBS_LIB}/bisect.sh"

# adapters: names of the ports to test one at a time; nothing where a node has one, or none should be.
adapters() {
    local number
    case "${RAILS}" in
        none) ;;
        auto) if [[ "${METHOD}" == nccl ]] && ((LINK_PORTS > 1)); then for ((number = 0; number < LINK_PORTS; number++)); do echo "${ADAPTER_NAME}${number}"; done; fi ;;
        *) tr -s ', ' '\n' <<<"${RAILS}" ;;
    esac
}

# find_slow_rails FILE: all nodes by one adapter after the other; names of slow adapters into FILE, at most MAX_RAILS.
# Every adapter has the same share of the work, so the others are the yardstick.
find_slow_rails() {
    local adapter all
    local -r folder="${results}/rails"
    mkdir -p "${folder}"
    : >"${folder}/measured.tsv"
    all="$(requested_nodes | paste -sd , -)"
    while read -r adapter; do
        printf '%s\t%s\t%s\n' "rail-${adapter}" "${all}" "${adapter}" >"${folder}/plan"
        bisect_measure "${folder}" || return 1
    done < <(adapters)
    awk -F '\t' -v OFS='\t' -v share="${BISECT_LEVEL_PERCENT}" "$(awk_statistics)"'
        # What failed is slow, but no yardstick.
        { name[++count] = substr($1, 6); value[count] = $3 == "failed" ? 0 : $3 + 0; if (value[count] > 0) list[++measured] = value[count] }
        END {
            middle = measured ? median(list, measured) : 0
            for (i = 1; i <= count; i++) print name[i], (value[i] <= 0 || value[i] < middle * (1 - share / 100) ? "slow" : "well"), shown(value[i]), shown(middle)
        }' "${folder}/measured.tsv" >"${folder}/judged.tsv"
    local state value expected verdict
    while IFS=$'\t' read -r adapter state value expected; do
        verdict=pass
        if [[ "${state}" == slow ]]; then verdict=fail; fi
        record "${results}/checks.tsv" "rail ${adapter}" "${verdict}" "${value/#none/}" "${expected/#none/}" GB/s "all nodes by this adapter alone" "median of adapters" ""
    done <"${folder}/judged.tsv"
    awk -F '\t' '$2 == "slow" { print $1 }' "${folder}/judged.tsv" | head -n "${MAX_RAILS}" >"$1"
}

# curves FOLDER LABEL: value by size of the group.
curves() {
    local tag nodes value list
    while IFS=$'\t' read -r tag nodes value; do
        if [[ "${value}" == failed ]]; then
            log "${nodes}: $(problem_of "${tag}")"
            continue
        fi
        IFS=, read -r -a list <<<"${nodes}"
        series "group $2" GB/s nodes "${nodes}" "${#list[@]}" "${value}"
    done <"$1/measured.tsv"
}

# one_bisection LABEL ADAPTER
one_bisection() {
    local -r folder="${results}/$1"
    if ! bisect "${folder}" "${results}/nodes.txt" "$2"; then short=1; fi
    curves "${folder}" "$1"
    record_judged "${folder}/judged.tsv" "$1" GB/s
}

main() {
    load_settings
    new_results_folder
    require FLOOR_SOURCE RAILS ADAPTER_NAME LINK_PORTS MAX_RAILS CONFIRMATIONS
    fabric_tool
    ((SLURM_JOB_NUM_NODES >= 4)) || die "a bisection needs four nodes; fabric-pairs measures fewer"
    describe_nodes
    requested_nodes >"${results}/nodes.txt"
    short=""
    : >"${results}/slow-rails"
    if ! find_slow_rails "${results}/slow-rails"; then short=1; fi
    local adapter
    if [[ -s "${results}/slow-rails" ]]; then
        # A floor is one for all adapters together.
        FLOOR_FAIL="" FLOOR_WARN=""
        while read -r adapter; do one_bisection "${adapter}" "${adapter}"; done <"${results}/slow-rails"
    elif [[ -z "${short}" ]]; then
        one_bisection fabric ""
    fi
    if [[ -n "${short}" ]]; then record "${results}/checks.tsv" time error "${SECONDS}" "${BUDGET_S}" s "not everything was measured in time: raise BUDGET_S, or submit it with a longer --time" given ""; fi
    local named
    named="$(awk -F '\t' '($1 ~ / (node|pair) /) && ($2 == "fail" || $2 == "warn") { sub(/ (node|pair)/, "", $1); printf "%s%s", (n++ ? ", " : ""), $1 }' "${results}/checks.tsv")"
    conclude "slow: ${named:-nobody}"
}
main "$@"
