# shellcheck shell=bash
# Halves of a cluster, their halves and so on, all of one size at once: who is in every slow group? Sourced after
# outliers.sh and tournament.sh. It asks measure_groups PLAN TABLE for measurements (fabric.sh).
#
# Good groups are measured as well as slow ones: they are the yardstick at their size, and cost no time. At last everybody is
# measured with both neighbours, and who is well with neither meets good nodes, one by one. Only that names a node.

# Groups of one size differ by less than this while all is well.
: "${BISECT_LEVEL_PERCENT:=10}"
# Who is slower than the good ones by more than this, in all pairs, is looked at once more.
: "${BISECT_SUSPECT_PERCENT:=5}"

# bisect FOLDER NODES [ADAPTER]: one bisection of the nodes in the file NODES. Leaves in FOLDER:
#   measured.tsv  `TAG <tab> NODES <tab> VALUE`; a tag begins with l<level>-, p<round>-, c<round>- or oe-
#   judged.tsv    verdicts on nodes, pairs and the whole, as judge_pairs prints them; and `level` for sizes of groups
# FLOOR_FAIL and FLOOR_WARN are floors of a group. 1 when the time was up.
bisect() {
    local -r folder="$1" nodes="$2" adapter="${3:-}"
    local level=0 round
    mkdir -p "${folder}"
    : >"${folder}/measured.tsv"
    : >"${folder}/judged.tsv"
    paste -sd , "${nodes}" >"${folder}/groups"
    # osu_bw measures two processes, never more.
    if [[ "${METHOD:-nccl}" == osu ]]; then : >"${folder}/groups"; fi
    while [[ -s "${folder}/groups" ]]; do
        tagged_groups "l${level}" "${adapter}" <"${folder}/groups" >"${folder}/plan"
        bisect_measure "${folder}" || return 1
        halves_of "${folder}/groups" >"${folder}/halves"
        mv "${folder}/halves" "${folder}/groups"
        level=$((level + 1))
    done
    neighbour_rounds "${nodes}" >"${folder}/meetings"
    meet "${folder}" "${adapter}" || return 1
    suspects_of "${folder}/measured.tsv" >"${folder}/roles"
    confirmation_rounds "${folder}/roles" "${CONFIRMATIONS}" >"${folder}/meetings"
    meet "${folder}" "${adapter}" || return 1
    awk -F '\t' -v OFS='\t' '$1 ~ /^[pc][0-9]/ { split($2, each, ","); print $1, each[1], each[2], $3 }' "${folder}/measured.tsv" >"${folder}/pairs.table"
    cut -f 1-3 "${folder}/pairs.table" >"${folder}/pairs.plan"
    judge_pairs "${folder}/pairs.plan" "${folder}/pairs.table" "${FLOOR_FAIL:-}" "${FLOOR_WARN:-}" >"${folder}/judged.tsv"
    judge_levels "${folder}/measured.tsv" >"${folder}/levels.judged"
    if grep -qE $'\t(fail|warn)\t' "${folder}/levels.judged" && ! grep -q $'^node\t[^\t]*\tfail\t' "${folder}/judged.tsv"; then
        # Slow together, well in parts: other halves tell whether it is the distance or the number.
        odd_and_even "${nodes}" | tagged_groups oe "${adapter}" >"${folder}/plan"
        bisect_measure "${folder}" || return 1
        judge_levels "${folder}/measured.tsv" >"${folder}/levels.judged"
    fi
    cat "${folder}/levels.judged" >>"${folder}/judged.tsv"
}

# meet FOLDER ADAPTER: the rounds of FOLDER/meetings, lines `ROUND <tab> NODE <tab> NODE`.
meet() {
    local -a rounds=()
    local round
    mapfile -t rounds < <(awk -F '\t' -v OFS='\t' -v adapter="$2" -v folder="$1" '
        !($1 in number) { print $1 }
        { print $1 "-" ++number[$1] (adapter == "" ? "" : "@" adapter), $2 "," $3, adapter >(folder "/plan." $1) }' "$1/meetings")
    for round in "${rounds[@]}"; do
        mv "$1/plan.${round}" "$1/plan"
        bisect_measure "$1" || return 1
    done
}

# tagged_groups PREFIX ADAPTER: a plan of the groups on standard input.
tagged_groups() {
    awk -v OFS='\t' -v prefix="$1" -v adapter="$2" '{ print prefix "-" NR (adapter == "" ? "" : "@" adapter), $1, adapter }'
}

# bisect_measure FOLDER: the groups of FOLDER/plan; 1 when that might end after BUDGET_S.
bisect_measure() {
    if ((SECONDS + GROUP_TIMEOUT_S > BUDGET_S)); then return 1; fi
    measure_groups "$1/plan" "$1/measured.tsv"
}

# halves_of GROUPS: both halves of every group, as long as they are more than pairs; nothing when none is left.
halves_of() {
    awk -F , '
        function part(from, to,    i, text) { for (i = from; i <= to; i++) text = text (i > from ? "," : "") $i; print text }
        NF >= 6 { part(1, int(NF / 2)); part(int(NF / 2) + 1, NF) }' "$1"
}

# odd_and_even NODES: two halves that are mixed from all others.
odd_and_even() {
    awk '{ text[NR % 2] = text[NR % 2] (NR > 2 ? "," : "") $1 } END { if (NR > 3) print text[1] "\n" text[0] }' "$1"
}

# neighbour_rounds NODES: everybody with both neighbours of a ring, in two rounds, or three of an odd number. As long as less
# than half of the nodes are slow, at least one of these pairs is good.
neighbour_rounds() {
    awk -v OFS='\t' '
        { node[NR - 1] = $1 }
        END {
            for (i = 0; i + 1 < NR; i += 2) print "p1", node[i], node[i + 1]
            for (i = 1; i + 1 < NR; i += 2) print "p2", node[i], node[i + 1]
            if (NR > 2) print (NR % 2 ? "p3" : "p2"), node[NR - 1], node[0]
        }' "$1"
}

# suspects_of TABLE: `node <tab> NAME <tab> pass` for who is well with a neighbour, `fail` for who is with none.
suspects_of() {
    awk -F '\t' -v OFS='\t' -v share="${BISECT_SUSPECT_PERCENT}" -v spread="${OUTLIER_SPREAD_PERCENT}" "$(awk_statistics)"'
        $1 ~ /^p[0-9]/ { value[++count] = sorted[count] = $3 == "failed" ? 0 : $3 + 0; group[count] = $2 }
        END {
            sort_values(sorted, count)
            best = sorted[int(count * 0.75 + 0.999)]
            if (sorted[count] > best * (1 + spread / 100)) best = sorted[count]
            for (i = 1; i <= count; i++) {
                split(group[i], each, ",")
                for (j = 1; j <= 2; j++) {
                    if (!(each[j] in well)) { name[++nodes] = each[j]; well[each[j]] = 0 }
                    if (value[i] > 0 && value[i] >= best * (1 - share / 100)) well[each[j]] = 1
                }
            }
            for (i = 1; i <= nodes; i++) print "node", name[i], (well[name[i]] ? "pass" : "fail")
        }' "$1"
}

# judge_levels TABLE: one line for each size of groups: are all as fast as the fastest?
judge_levels() {
    awk -F '\t' -v OFS='\t' -v share="${BISECT_LEVEL_PERCENT}" -v floor_fail="${FLOOR_FAIL:-0}" -v floor_warn="${FLOOR_WARN:-0}" "$(awk_statistics)"'
        $1 ~ /^(l[0-9]+|oe)-/ {
            level = $1
            sub(/-.*/, "", level)
            if (!(level in count)) order[++levels] = level
            value = $3 == "failed" ? 0 : $3 + 0
            number = ++count[level]
            size[level] = split($2, each, ",")
            if (number == 1 || value < least[level]) { least[level] = value; where[level] = $2 }
            if (value > most[level]) most[level] = value
        }
        END {
            for (i = 1; i <= levels; i++) {
                level = order[i]
                verdict = "pass"
                detail = count[level] " groups of about " size[level] " nodes, " shown(least[level]) " to " shown(most[level])
                if (level == "oe") detail = "odd and even nodes: " detail
                if (least[level] < floor_warn) verdict = "warn"
                if (least[level] < most[level] * (1 - share / 100)) { verdict = "warn"; detail = detail "; the slowest is " where[level] }
                if (least[level] <= 0 || least[level] < floor_fail) { verdict = "fail"; detail = detail "; the slowest is " where[level] }
                print "level", level, verdict, shown(least[level]), (most[level] > 0 ? shown(most[level]) : "-"), detail, "groups of the same size"
            }
        }' "$1"
}
