# shellcheck shell=bash
# Judges figures that every node has of its own: by a floor where one is known, and against the median of all. Sourced after
# common.sh.

# Fewer figures, or nodes, have no median worth the name: of two nodes nobody knows which one is slow. Below MANY figures
# chance alone puts one of them further from the median, so half as much again must be missing, and nothing warns.
readonly FLEET_MIN_VALUES=4 FLEET_MIN_NODES=3 FLEET_MANY_VALUES=12 FLEET_MIN_RUNS=3
# What slows a figure does not speed up others, so the fast half of the figures tells the noise: a slow one must be further
# below the median than this many times what nine of ten fast ones are above it.
readonly FLEET_NOISE_TIMES=2

# judge_fleet FIGURES VALUES [HISTORY]: prints one line as of `record` for every check and node, the slowest item of a node deciding.
#   FIGURES  lines `CHECK TOOL EXPECTED WARN FAIL UNIT KIND FORMULA SOURCE` by tabs, `-` for nothing, TOOL may be `any`,
#            KIND is published or derived: a derived floor warns at most, and above it nothing is proven by it
#   VALUES   lines `CHECK NODE ITEM VALUE UNIT TOOL DETAIL` by tabs; larger is better
#   HISTORY  lines `CHECK TOOL UNIT VALUE RUN` by tabs, of earlier runs: where nodes are too few to be compared with each
#            other, the median of three runs or more takes their place
# FLEET_FAIL_PERCENT and FLEET_WARN_PERCENT say how much slower than the median a figure must be at least. A damaged line, a value that is no positive number and an item that is there twice are errors of their node.
judge_fleet() {
    local -r figures="$1" values="$2" history="${3:-/dev/null}"
    require FLEET_FAIL_PERCENT FLEET_WARN_PERCENT
    awk -F '\t' -v OFS='\t' -v fail_share="${FLEET_FAIL_PERCENT}" -v warn_share="${FLEET_WARN_PERCENT}" -v times="${FLEET_NOISE_TIMES}" \
        -v min_values="${FLEET_MIN_VALUES}" -v min_nodes="${FLEET_MIN_NODES}" -v many="${FLEET_MANY_VALUES}" -v min_runs="${FLEET_MIN_RUNS}" \
        -v figures="${figures}" -v history="${history}" '
        function sort(list, n,    gap, i, j, each) {
            for (gap = int(n / 2); gap > 0; gap = int(gap / 2))
                for (i = gap + 1; i <= n; i++) {
                    each = list[i]
                    for (j = i; j > gap && list[j - gap] > each; j -= gap) list[j] = list[j - gap]
                    list[j] = each
                }
        }
        function median(list, n) { sort(list, n); return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2 }
        function shown(x) { return x >= 100 ? sprintf("%.0f", x) : sprintf("%.2f", x) }
        function given(text) { return text == "-" ? "" : text }
        FNR == 1 { file = FILENAME == figures ? 1 : FILENAME == history ? 3 : 2 }
        file == 3 {
            if (NF != 5 || $4 !~ /^[0-9]+([.][0-9]+)?$/ || $4 + 0 <= 0) next
            earlier[$1, $2, $3, ++earlier_count[$1, $2, $3]] = $4 + 0
            if (!(($1, $2, $3, $5) in run_seen)) { run_seen[$1, $2, $3, $5] = 1; runs[$1, $2, $3]++ }
            next
        }
        file == 1 {
            if ($0 ~ /^#/ || NF < 9) next
            row[$1, $2] = ++rows
            warn[rows] = given($4); fail[rows] = given($5); unit_of[rows] = $6; kind[rows] = $7
            source[rows] = $7 ": " ($8 == "-" ? "" : $8 ", ") $9
            next
        }
        {
            if (!($1 in check_number)) { check_number[$1] = ++checks; check[checks] = $1 }
            c = $1; n = $2
            if (!((c, n) in seen)) { seen[c, n] = 1; place[c, ++places[c]] = n }
            if (NF != 7 || $4 !~ /^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$/ || $4 + 0 <= 0) { broken[c, n] = ($3 == "" ? "a damaged line" : $3 " has no number: " $4); next }
            if ((c, n, $3) in item) { broken[c, n] = $3 " was measured twice"; next }
            item[c, n, $3] = 1
            if (c in unit && (unit[c] != $5)) { broken[c, n] = "unit " $5 " instead of " unit[c]; next }
            unit[c] = $5
            tool[c, n] = $6
            total[c]++
            value[c, total[c]] = $4 + 0
            items[c, n]++
            if (!((c, n) in least) || $4 + 0 < least[c, n]) { least[c, n] = $4 + 0; where[c, n] = $3; said[c, n] = $7; text[c, n] = $4 }
        }
        END {
            for (i = 1; i <= checks; i++) {
                c = check[i]
                count = 0
                for (k = 1; k <= total[c]; k++) list[++count] = value[c, k]
                level = count ? median(list, count) : 0
                above = 0
                for (k = 1; k <= count; k++) if (list[k] >= level && level > 0) deviation[++above] = list[k] / level - 1
                sort(deviation, above)
                noise = above ? times * deviation[int(above * 0.9 + 0.999)] : 0
                # One tool on some nodes and another on the rest do not compare.
                split("", tools); different = 0; sound = 0
                for (k = 1; k <= places[c]; k++) {
                    n = place[c, k]
                    if (!((c, n) in broken)) sound++
                    if ((c, n) in tool && !(tool[c, n] in tools)) { tools[tool[c, n]] = 1; different++ }
                }
                relative = count >= min_values && sound >= min_nodes && different == 1
                # Where nothing could be too slow nothing is proven by not being it.
                uneven = relative && noise >= 1
                if (uneven) relative = 0
                least_fail = fail_share / 100 * (count < many ? 1.5 : 1)
                fail_below = level * (1 - (least_fail > noise ? least_fail : noise))
                warn_below = count < many ? fail_below : level * (1 - (warn_share / 100 > noise ? warn_share / 100 : noise))
                for (k = 1; k <= places[c]; k++) judge(c, place[c, k])
            }
        }
        # The median of earlier runs with the same tool, or 0.
        function usual(c, t,    key, k, list) {
            key = c SUBSEP t SUBSEP unit[c]
            if (runs[key] < min_runs) return 0
            for (k = 1; k <= earlier_count[key]; k++) list[k] = earlier[key, k]
            return median(list, earlier_count[key])
        }
        function judge(c, n,    past, r, v, by_floor, by_fleet, verdict, expected, why, detail, share) {
            if ((c, n) in broken) { print c, "error", "", "", unit[c], broken[c, n], "", n; return }
            v = least[c, n]
            r = (c, tool[c, n]) in row ? row[c, tool[c, n]] : (c, "any") in row ? row[c, "any"] : 0
            if (r && unit_of[r] != unit[c]) { print c, "error", text[c, n], "", unit[c], "the floor is in " unit_of[r], source[r], n; return }
            by_floor = by_fleet = ""
            if (r) by_floor = fail[r] != "" && v < fail[r] + 0 ? "fail" : warn[r] != "" && v < warn[r] + 0 ? "warn" : "pass"
            if (r && kind[r] == "derived") by_floor = by_floor == "pass" ? "" : "warn"
            if (relative) by_fleet = v < fail_below ? "fail" : v < warn_below ? "warn" : "pass"
            detail = (items[c, n] > 1 ? where[c, n] ", the slowest of " items[c, n] "; " : "") tool[c, n] (said[c, n] == "" ? "" : ", " said[c, n])
            if (relative) { share = 100 * (v / level - 1); detail = detail sprintf("; %+.1f %% against the median %s", share, shown(level)) }
            why = "median of " count " figures of " sound " nodes"
            if (!relative && (past = usual(c, tool[c, n])) > 0) {
                # Of few figures, so as far off as with few nodes.
                expected = past * (1 - 1.5 * fail_share / 100)
                by_fleet = v < expected ? "fail" : "pass"
                fail_below = warn_below = expected
                detail = detail sprintf("; %+.1f %% against the median %s of earlier runs", 100 * (v / past - 1), shown(past))
                why = "median of " runs[c, tool[c, n], unit[c]] " earlier runs"
            }
            if (by_fleet == "fail" || by_fleet == "warn" && by_floor != "fail") { verdict = by_fleet; expected = by_fleet == "fail" ? fail_below : warn_below }
            else if (by_floor != "") { verdict = by_floor; expected = by_floor == "fail" || warn[r] == "" ? fail[r] : warn[r]; why = source[r] }
            else if (by_fleet != "") { verdict = by_fleet; expected = fail_below }
            else { verdict = "no_baseline"; expected = ""; why = r ? source[r] : ""; detail = detail (r ? "; above a derived figure, which proves nothing" : "; no floor is published") (uneven ? ", and figures are too uneven to be compared" : ", and fewer than " min_nodes " nodes to compare with") }
            print c, verdict, text[c, n], expected == "" ? "" : shown(expected + 0), unit[c], detail, why, n
        }' "${figures}" "${history}" "${values}"
}
