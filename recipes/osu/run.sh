#!/usr/bin/env bash
# shellcheck disable=SC2153  # settings come from settings.env
# MPI between nodes without GPUs: latency of a small message and bandwidth of a large one, every node with a few others, and
# the curves of one pair over all sizes.
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

# measure PROGRAM MESSAGE: all rounds of the plan; 1 when the time was up.
measure() {
    local round tag names value a b
    local -a rounds=()
    BINARY="${folder_of_programs}$1" MESSAGE_SIZE="$2"
    : >"${results}/$1.tsv"
    mapfile -t rounds < <(cut -f 1 "${results}/plan.tsv" | uniq)
    for round in "${rounds[@]}"; do
        if ((SECONDS + GROUP_TIMEOUT_S > BUDGET_S)); then return 1; fi
        awk -F '\t' -v OFS='\t' -v round="${round}" -v name="$1" '$1 == round { print name round "-" $2 "-" $3, $2 "," $3, "" }' "${results}/plan.tsv" >"${results}/round.plan"
        : >"${results}/round.table"
        measure_groups "${results}/round.plan" "${results}/round.table"
        while IFS=$'\t' read -r tag names value; do
            a="${names%,*}" b="${names#*,}"
            printf '%s\t%s\t%s\t%s\n' "${round}" "${a}" "${b}" "${value}" >>"${results}/$1.tsv"
            if [[ "${value}" == failed ]]; then log "$1 of ${a} with ${b}: $(problem_of "${tag}")"; fi
        done <"${results}/round.table"
    done
}

# played PROGRAM: the plan as far as there was time for it: a pair that was not begun has not failed.
played() {
    awk -F '\t' -v OFS='\t' 'FILENAME == ARGV[1] { begun[$1] = 1; next } $1 in begun' "${results}/$1.tsv" "${results}/plan.tsv" >"${results}/$1.plan"
}

# judge_latency: in microseconds again, for people.
judge_latency() {
    local warn=""
    played osu_latency
    if [[ -n "${LATENCY_WARN_US}" ]]; then warn="$(awk -v us="${LATENCY_WARN_US}" 'BEGIN { printf "%.4f", 1000 / us }')"; fi
    judge_pairs "${results}/osu_latency.plan" "${results}/osu_latency.tsv" "" "${warn}" |
        awk -F '\t' -v OFS='\t' '{ for (i = 4; i <= 5; i++) if ($i + 0 > 0) $i = sprintf("%.2f", 1000 / $i); print }' >"${results}/latency.judged"
    record_judged "${results}/latency.judged" latency us
}

# curves: one pair over all sizes; what cannot be read is an error, because nothing else tells it.
curves() {
    local program size value rows unit
    local -r pair="$(head -n 2 "${results}/nodes.txt" | paste -sd , -)"
    for program in osu_latency osu_bw; do
        need_time
        unit=us
        if [[ "${program}" == osu_bw ]]; then unit=GB/s; fi
        bounded "${GROUP_TIMEOUT_S}" srun --mpi=pmix "--nodelist=${pair}" --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --mem=0 \
            "${folder_of_programs}${program}" -m "1:$(bytes_of "${SWEEP_END}")" -i "${ITERATIONS}" >"${results}/${program}.log" 2>&1 || log "${program} ended with $?"
        rows=0
        while read -r size value; do
            series "${program}" "${unit}" bytes "${pair}" "${size}" "${value}"
            rows=$((rows + 1))
        done < <(untagged "${results}/${program}.log" | awk -v program="${program}" '/^# Size / { table = 1; next } table && NF == 2 && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+\.[0-9]+$/ { print $1, (program == "osu_bw" ? $2 / 1000 : $2) }')
        if ((rows < 2)) && ! was_cut_off; then record "${results}/checks.tsv" "${program} sweep" error "${rows}" 2 sizes "no curve in the output of ${program}" "" "${pair}"; fi
    done
}

main() {
    load_settings
    new_results_folder
    require PARTNERS LATENCY_BYTES SWEEP_END
    METHOD=osu
    fabric_tool
    ((SLURM_JOB_NUM_NODES >= 2)) || die "MPI between nodes needs two of them"
    folder_of_programs="${BINARY%osu_bw}"
    describe_nodes
    node_groups "${results}/groups.tsv"
    requested_nodes >"${results}/nodes.txt"
    tournament_rounds "${results}/nodes.txt" "${PARTNERS}" "$(repeats_for "${SLURM_JOB_NUM_NODES}")" >"${results}/plan.tsv"
    local -r message="${MESSAGE_SIZE}"
    local short=""
    measure osu_latency "${LATENCY_BYTES}" || short=1
    measure osu_bw "${message}" || short=1
    judge_latency
    played osu_bw
    judge_pairs "${results}/osu_bw.plan" "${results}/osu_bw.tsv" "${FLOOR_FAIL}" "${FLOOR_WARN}" "${results}/groups.tsv" >"${results}/bandwidth.judged"
    record_judged "${results}/bandwidth.judged" bandwidth GB/s
    record_groups "${results}/osu_bw.tsv" "${results}/groups.tsv"
    if [[ -n "${short}" ]]; then record "${results}/checks.tsv" time error "${SECONDS}" "${BUDGET_S}" s "not everything was measured in time: raise BUDGET_S, or submit it with a longer --time" given ""; fi
    curves
    conclude "latency of ${LATENCY_BYTES} bytes $(awk -F '\t' '$1 == "whole" { print $4 }' "${results}/latency.judged") us, bandwidth $(awk -F '\t' '$1 == "whole" { print $4 }' "${results}/bandwidth.judged") GB/s"
}
main "$@"
