#!/usr/bin/env bash
# shellcheck disable=SC2153  # settings come from settings.env
# A tournament of nodes: in every round all nodes are paired and measure at once; after n-1 rounds everybody met everybody.
# A node that is slow with everybody is named, and so is a link that is slow between two good nodes.
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

# play PLAN: the rounds of the plan one after the other; adds to measured.tsv, played.tsv and the curves of the run. 1 when
# the time was up before the last round.
play() {
    local round
    local -a rounds=()
    mapfile -t rounds < <(cut -f 1 "$1" | uniq)
    for round in "${rounds[@]}"; do
        if ((SECONDS + GROUP_TIMEOUT_S > BUDGET_S)); then return 1; fi
        play_round "${round}" "$1"
        log "round ${round}, $(grep -c . "${results}/round.plan") pairs"
    done
}

# play_round ROUND PLAN
play_round() {
    local tag names value a b
    awk -F '\t' -v OFS='\t' -v round="$1" '$1 == round { print "r" round "-" $2 "-" $3, $2 "," $3 }' "$2" >"${results}/round.plan"
    : >"${results}/round.table"
    measure_groups "${results}/round.plan" "${results}/round.table"
    rounds_played=$((rounds_played + 1))
    while IFS=$'\t' read -r tag names value; do
        a="${names%,*}" b="${names#*,}"
        if [[ "${a}" > "${b}" ]]; then names="${b},${a}"; fi
        printf '%s\t%s\t%s\n' "$1" "${a}" "${b}" >>"${results}/played.tsv"
        printf '%s\t%s\t%s\t%s\n' "$1" "${a}" "${b}" "${value}" >>"${results}/measured.tsv"
        if [[ "${value}" == failed ]]; then
            log "round ${1}: ${a} with ${b}: $(problem_of "${tag}")"
        else
            series "pair ${METRIC}" GB/s round "${names}" "${rounds_played}" "${value}"
        fi
        if [[ "${METHOD}" == perftest ]]; then ports_of_pair "${tag}" "$1" "${a}" "${b}" "${names}"; fi
    done <"${results}/round.table"
}

# ports_of_pair TAG ROUND NODE NODE NAMES: adds what each port gave to ports.tsv, and to the curves of the run.
ports_of_pair() {
    local port value
    if [[ ! -r "${results}/groups/$1.ports" ]]; then return; fi
    while IFS=$'\t' read -r port value; do
        printf '%s\t%s\t%s\t%s\t%s\n' "$2" "$3" "$4" "${value}" "${port}" >>"${results}/ports.tsv"
        series "pair ${METRIC} ${port}" GB/s round "$5" "${rounds_played}" "${value}"
    done <"${results}/groups/$1.ports"
}

# judge_played: the verdict on all that was measured, in judged.tsv. With perftest each port is judged by itself, too, because
# seven good ones hide what is wrong with one; of a node and of a pair the worst counts, and says which port it is.
judge_played() {
    local port
    judge_pairs "${results}/played.tsv" "${results}/measured.tsv" "${FLOOR_FAIL}" "${FLOOR_WARN}" "${results}/groups.tsv" >"${results}/judged.tsv"
    if [[ ! -s "${results}/ports.tsv" ]]; then return; fi
    sed 's/^/-\t/' "${results}/judged.tsv" >"${results}/judged.all"
    while read -r port; do
        awk -F '\t' -v OFS='\t' -v port="${port}" '$5 == port { print $1, $2, $3, $4 }' "${results}/ports.tsv" >"${results}/port.tsv"
        judge_pairs "${results}/played.tsv" "${results}/port.tsv" "" "${PORT_FLOOR_WARN}" "${results}/groups.tsv" |
            awk -v port="${port}" '{ print port "\t" $0 }' >>"${results}/judged.all"
    done < <(cut -f 5 "${results}/ports.tsv" | sort -u -V)
    worst_judged "" <"${results}/judged.all" >"${results}/judged.tsv"
}

# worst_judged WORDS: of lines `LABEL <tab> what judge_pairs prints` on standard input, the worst of each node, pair and whole,
# the first of several. The label of one that did not pass is added to its words; `-` is none.
worst_judged() {
    awk -F '\t' -v OFS='\t' -v words="$1" '
        BEGIN { for (i = split("pass warn no_baseline error fail", word, " "); i; i--) rank[word[i]] = i }
        {
            key = $2 OFS $3
            if (!(key in worst)) order[++keys] = key
            else if (rank[$4] <= worst[key]) next
            worst[key] = rank[$4]
            if ($4 != "pass" && $1 != "-") $7 = words == "" ? $1 ": " $7 : $7 "; in pass " $1 " of " words
            line[key] = substr($0, length($1) + 2)
        }
        END { for (i = 1; i <= keys; i++) print line[order[i]] }'
}

# tournament: all rounds, then more of those in which something seemed slow. Sets short.
tournament() {
    local -r count="$(requested_nodes | wc -l)"
    local limit="${ROUNDS}" repeats
    short=""
    if [[ "${limit}" == auto ]]; then limit=$((count > 32 ? 12 : 0)); fi
    repeats="$(repeats_for "${count}")"
    requested_nodes >"${results}/nodes.txt"
    tournament_rounds "${results}/nodes.txt" "${limit}" "${repeats}" >"${results}/plan.tsv"
    : >"${results}/played.tsv"
    : >"${results}/measured.tsv"
    : >"${results}/ports.tsv"
    if ! play "${results}/plan.tsv"; then short="the time was up after $(cut -f 1 "${results}/played.tsv" | uniq | wc -l) of $(cut -f 1 "${results}/plan.tsv" | uniq | wc -l) rounds"; fi
    judge_played
    if [[ -n "${short}" ]]; then return; fi
    confirmation_rounds "${results}/judged.tsv" "${CONFIRMATIONS}" >"${results}/confirmation.tsv"
    if [[ -s "${results}/confirmation.tsv" ]]; then
        log "$(awk -F '\t' '($1 == "node" || $1 == "pair") && $3 != "pass"' "${results}/judged.tsv" | wc -l) suspects meet good nodes again"
        play "${results}/confirmation.tsv" || short="the time was up before all suspects were looked at again"
        judge_played
    fi
}

# passes: tournaments until the stated time is over. Each is judged by itself, because earlier ones would outvote what begins
# late; the worst that was ever said of a node or a pair counts.
passes() {
    local name
    local -i number=1
    rounds_played=0
    tournament
    while ((SECONDS < stated_s)) && [[ -z "${short}" ]]; do
        keep_pass "${number}"
        number+=1
        tournament
    done
    if ((number == 1)); then return; fi
    keep_pass "${number}"
    for name in played measured; do mv "${results}/${name}.passes" "${results}/${name}.tsv"; done
    worst_judged "${number}" <"${results}/judged.passes" >"${results}/judged.tsv"
    log "${number} passes in ${SECONDS} s"
}

# keep_pass NUMBER: adds the files of the last tournament to those of all.
keep_pass() {
    local name
    for name in played measured; do cat "${results}/${name}.tsv" >>"${results}/${name}.passes"; done
    awk -v number="$1" '{ print number "\t" $0 }' "${results}/judged.tsv" >>"${results}/judged.passes"
}

# judge_rounds: everybody has met enough others for a verdict.
judge_rounds() {
    local -r count="$(wc -l <"${results}/nodes.txt")"
    local least verdict=pass
    local -r wanted="$((count - 1 < MIN_PARTNERS ? count - 1 : MIN_PARTNERS))"
    least="$(awk -F '\t' '
        FILENAME == ARGV[1] { met[$1] = 0; next }
        !(($2, $3) in seen) && !(($3, $2) in seen) { seen[$2, $3] = 1; met[$2]++; met[$3]++ }
        END { for (node in met) if (least == "" || met[node] < least) least = met[node]; print least + 0 }' "${results}/nodes.txt" "${results}/played.tsv")"
    if [[ -n "${short}" ]]; then verdict=warn; fi
    if ((least < wanted)); then verdict=error; fi
    record "${results}/checks.tsv" "pairs partners" "${verdict}" "${least}" "${wanted}" nodes "the least that a node has met${short:+; ${short}: raise BUDGET_S, or submit it with a longer --time}"
}

main() {
    load_settings
    new_results_folder
    require FLOOR_SOURCE METRIC ROUNDS MIN_PARTNERS CONFIRMATIONS MINUTES
    fabric_tool
    stated_time
    ((SLURM_JOB_NUM_NODES >= 2)) || die "a pair needs two nodes"
    describe_nodes
    node_groups "${results}/groups.tsv"
    passes
    judge_rounds
    record_judged "${results}/judged.tsv" pairs GB/s
    record_groups "${results}/measured.tsv" "${results}/groups.tsv"
    local named
    named="$(awk -F '\t' '($1 == "node" || $1 == "pair") && $3 != "pass" && $3 != "no_baseline" { printf "%s%s", (n++ ? " " : ""), $2 }' "${results}/judged.tsv")"
    conclude "$(wc -l <"${results}/played.tsv") measurements of pairs; slow: ${named:-nobody}"
}
main "$@"
