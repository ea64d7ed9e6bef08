# shellcheck shell=bash
# Which nodes and which pairs of nodes are slow, from a table of measurements. Sourced after common.sh.
#
# A pair is as slow as the slower of its two nodes, so a slow node is slow with every partner, and a slow link only with
# one. Interference only slows: the fast half of the measurements tells the noise.
#
# A node is judged by the median of its pairs with good nodes, against the median of all pairs of good nodes. As long as a
# node is too slow for that, the slowest one is set aside and the rest looked at again, so that a slow node spoils neither
# the yardstick nor its partners. Less than half of the nodes can be set aside: beyond that nobody knows which half is
# slow, and the run fails without naming anyone. The same happens when some pairs are so fast that the others cannot all
# be good. With fewer than OUTLIER_MIN_NODES there are no statistics, and floors alone decide.
#
# Method: Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993 (3.5 robust standard deviations).

readonly OUTLIER_MIN_NODES=4
# How much slower than good ones a node must be to fail or to warn; the shares by which all relative judgements go.
: "${OUTLIER_FAIL_PERCENT:=7}" "${OUTLIER_WARN_PERCENT:=3.5}"
# A single measurement is noisier than a median of many.
: "${OUTLIER_PAIR_PERCENT:=8}"
# Good pairs are at most this much faster than the median of good pairs.
: "${OUTLIER_SPREAD_PERCENT:=9}"

# judge_pairs PLAN TABLE [FAIL [WARN [GROUPS]]]: the verdict on every node, on slow pairs and on the whole.
#   PLAN   what was to be measured: lines `ROUND <tab> NODE <tab> NODE`
#   TABLE  what was: lines `ROUND <tab> NODE <tab> NODE <tab> VALUE`, larger is better; `failed` for a pair that gave none
#   FAIL, WARN  floors of a pair, empty where none is known
#   GROUPS  lines `NODE <tab> SWITCH`; where pairs across switches are much slower than those below one switch, they count
#           as many times more, so that nodes are compared and not distances
# A planned measurement that is not in the table has failed; a line that is not planned or not whole is an error.
# Prints lines of: kind (node, pair, whole), names, verdict, value, expected, detail, source; `-` for no value.
judge_pairs() {
    local -r plan="$1" table="$2" fail="${3:-}" warn="${4:-}" groups="${5:-}"
    if [[ ! -s "${plan}" || ! -f "${table}" ]]; then
        printf 'whole\t-\terror\t-\t-\t%s\t-\n' "no plan or no measurements"
        return
    fi
    awk -F '\t' -v OFS='\t' -v floor_fail="${fail:-0}" -v floor_warn="${warn:-0}" -v min_nodes="${OUTLIER_MIN_NODES}" \
        -v fail_share="${OUTLIER_FAIL_PERCENT}" -v warn_share="${OUTLIER_WARN_PERCENT}" -v pair_share="${OUTLIER_PAIR_PERCENT}" \
        -v spread_share="${OUTLIER_SPREAD_PERCENT}" "$(awk_statistics; outlier_judgement)"'
        FILENAME == ARGV[1] {
            if (NF != 3 || $2 == "" || $3 == "" || $2 == $3 || ($1, $2, $3) in planned) { problem = "line " FNR " of the plan is damaged"; next }
            planned[$1, $2, $3] = 1
            plan_round[++plans] = $1; plan_a[plans] = $2; plan_b[plans] = $3
            add_node($2); add_node($3)
            next
        }
        FILENAME == ARGV[3] { group[$1] = $2; next }
        {
            if (NF != 4 || !(($1, $2, $3) in planned) || ($1, $2, $3) in measured) { problem = "line " FNR " of the measurements is damaged"; next }
            if ($4 != "failed" && ($4 !~ /^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$/ || $4 + 0 <= 0)) { problem = "line " FNR " of the measurements has no number"; next }
            measured[$1, $2, $3] = 1
            value[$1, $2, $3] = $4 == "failed" ? 0 : $4 + 0
        }
        END {
            if (problem == "" && !plans) problem = "nothing was planned"
            if (problem != "") { print "whole", "-", "error", "-", "-", problem, "-"; exit }
            collect_pairs()
            level_distances()
            if (nodes < min_nodes) by_floor_alone()
            else by_statistics()
        }' "${plan}" "${table}" "${groups:-/dev/null}"
}

# awk_statistics: awk functions for any program. They use no variable but their own: mawk takes a name for one kind only.
awk_statistics() {
    cat <<'AWK'
# Shell sort: mawk has none.
function sort_values(list, count,    gap, i, j, each) {
    for (gap = int(count / 2); gap > 0; gap = int(gap / 2))
        for (i = gap + 1; i <= count; i++) {
            each = list[i]
            for (j = i; j > gap && list[j - gap] > each; j -= gap) list[j] = list[j - gap]
            list[j] = each
        }
}
function median(list, count) {
    if (!count) return 0
    sort_values(list, count)
    return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
}
function largest(a, b) { return a > b ? a : b }
function shown(x) { return x > 0 ? sprintf("%.2f", x) : "none" }
AWK
}

# outlier_judgement: awk functions of judge_pairs, beside awk_statistics.
outlier_judgement() {
    cat <<'AWK'
function add_node(name) { if (!(name in number)) { number[name] = ++nodes; node_name[nodes] = name } }

function names_of(i,    a, b) { a = node_name[pair_a[i]]; b = node_name[pair_b[i]]; return a < b ? a "," b : b "," a }
# One value for each pair: the median of its measurements.
function collect_pairs(    i, j, key, count, list, a, b) {
    for (i = 1; i <= plans; i++) {
        a = number[plan_a[i]]; b = number[plan_b[i]]
        key = a < b ? a SUBSEP b : b SUBSEP a
        if (!(key in times)) { pair_key[++pairs] = key; pair_a[pairs] = a < b ? a : b; pair_b[pairs] = a < b ? b : a }
        samples[key, ++times[key]] = value[plan_round[i], plan_a[i], plan_b[i]] + 0
    }
    for (i = 1; i <= pairs; i++) {
        count = 0
        for (j = 1; j <= times[pair_key[i]]; j++) list[++count] = samples[pair_key[i], j]
        pair_value[i] = median(list, count)
        pair_times[i] = count
        a = pair_a[i]; b = pair_b[i]
        own[a, ++owned[a]] = i; own[b, ++owned[b]] = i
        if (pair_value[i] > 0) alive[a] = alive[b] = 1
    }
}

# What the better pairs of each kind reach tells near from far, whoever is slow. Small differences are left alone.
function level_distances(    i, kind, near, far, nears, fars, factor) {
    for (i = 1; i <= pairs; i++) {
        kind[i] = group[node_name[pair_a[i]]] "" == group[node_name[pair_b[i]]] ""
        if (kind[i]) near[++nears] = pair_value[i]; else far[++fars] = pair_value[i]
    }
    if (!nears || !fars) return
    sort_values(near, nears); sort_values(far, fars)
    if (!near[int(nears * 0.75 + 0.999)] || !far[int(fars * 0.75 + 0.999)]) return
    factor = near[int(nears * 0.75 + 0.999)] / far[int(fars * 0.75 + 0.999)]
    if (factor <= 1 + spread_share / 100) return
    for (i = 1; i <= pairs; i++) if (!kind[i]) pair_value[i] *= factor
    distance_note = sprintf("; pairs across switches count %.2f times", factor)
}

# Sets score[], met[] (pairs with good nodes), upper[] and most[] of every node and, over pairs of good nodes, level, noise,
# slowest_pair and fast_pair.
function look(    i, j, n, count, list, deviations, above) {
    count = above = 0
    for (i = 1; i <= pairs; i++) if (!(pair_a[i] in aside) && !(pair_b[i] in aside)) list[++count] = pair_value[i]
    good_pairs = count
    level = median(list, count)
    slowest_pair = list[1]
    fast_pair = list[int(count * 0.95 + 0.999)]
    if (level > 0) for (i = 1; i <= count; i++) if (list[i] >= level) deviations[++above] = list[i] / level - 1
    noise = 1.4826 * median(deviations, above)
    # Few measurements tell little about the noise.
    few = above ? 1 + 8 / above : 1
    for (n = 1; n <= nodes; n++) {
        count = 0
        for (j = 1; j <= owned[n]; j++) {
            i = own[n, j]
            if (!((pair_a[i] == n ? pair_b[i] : pair_a[i]) in aside)) list[++count] = pair_value[i]
        }
        sort_values(list, count)
        # Of two middle values the better one: one slow link of two must not make a node slow.
        score[n] = count ? list[int(count / 2) + 1] : 0
        met[n] = count
        most[n] = count ? list[count] : 0
        # The upper quarter tells good nodes from slow ones even where half of the partners are slow.
        upper[n] = count ? list[int(count * 0.75 + 0.999)] : 0
    }
}
# The standard error of a median of that many measurements. What slow nodes add to the noise must not hide them.
function uncertainty(count) { return 1.2533 * (noise > 0.04 ? 0.04 : noise) / sqrt(count) }
# Slow enough, and not by chance: beyond the noise, or slower with its best partner than any two good nodes. -1: it met
# slow nodes only, so that nobody knows.
function too_slow(n) {
    if (!met[n]) return alive[n] ? -1 : 1
    if (score[n] <= 0 || score[n] < floor_fail) return 1
    # A level that only few pairs give is uncertain itself.
    if (score[n] >= level * (1 - fail_share / 100 * (1 + 1 / largest(1, good_pairs)))) return 0
    return score[n] < level * (1 - 3.5 * uncertainty(met[n])) || most[n] < slowest_pair
}

# The largest number of slow nodes that explains everything: all of them are slow, and no other is.
function by_statistics(    n, k, i, slowest, settled, best) {
    best = -1
    for (k = 0; 2 * k < nodes; k++) {
        look()
        settled = good_pairs > 0 && level > 0 && fast_pair <= level * (1 + spread_share / 100)
        for (n = 1; n <= nodes; n++) if ((n in aside) != too_slow(n)) settled = 0
        if (settled) best = k
        if (best >= 0 && k >= best + 4) break
        slowest = 0
        for (n = 1; n <= nodes; n++)
            if (!(n in aside) && (!slowest || upper[n] < upper[slowest] || (upper[n] == upper[slowest] && score[n] < score[slowest]))) slowest = n
        aside[slowest] = 1
        order[k + 1] = slowest
    }
    for (n in aside) delete aside[n]
    for (i = 1; i <= best; i++) aside[order[i]] = 1
    look()
    if (best >= 0) { report(best); return }
    print "whole", "-", "fail", shown(level), "-", "good pairs reach " shown(fast_pair) ", and no few nodes explain why the others do not: most of the fabric is slow, or the measurements are too noisy", "median of " nodes " nodes"
}

function report(k,    n, i, verdict, bad_pairs, limit, detail, worst, count, list, failed) {
    worst = "pass"
    for (n = 1; n <= nodes; n++) {
        verdict = "pass"
        detail = "median of " met[n] " pairs with good nodes"
        if (n in aside) {
            verdict = worst = "fail"
            detail = detail (score[n] > 0 ? sprintf(", %.1f %% below", 100 * (1 - score[n] / level)) : ": most gave no result")
        } else if (score[n] < floor_warn || (met[n] >= 3 && most[n] < level && score[n] < level * (1 - largest(warn_share / 100, 5 * few * uncertainty(met[n]))))) {
            verdict = "warn"
            if (worst == "pass") worst = "warn"
            detail = detail sprintf(", %.1f %% below", 100 * (1 - score[n] / level))
        }
        print "node", node_name[n], verdict, shown(score[n]), shown(level), detail, "median of " nodes " nodes"
    }
    for (i = 1; i <= pairs; i++) {
        if (pair_a[i] in aside || pair_b[i] in aside) continue
        limit = largest(pair_share / 100, 2.5 * few * uncertainty(pair_times[i]))
        if (pair_value[i] >= level * (1 - limit) && pair_value[i] >= floor_fail) continue
        # One look is not enough to take a cable for bad.
        verdict = pair_value[i] <= 0 || pair_times[i] >= 3 ? "fail" : "warn"
        detail = "measured " pair_times[i] " times" (verdict == "warn" ? ", repeat it before you believe it" : "") "; both nodes are well with others: a link or switch between them"
        if (verdict == "fail") worst = "fail"; else if (worst == "pass") worst = "warn"
        bad_pairs++
        print "pair", names_of(i), verdict, shown(pair_value[i]), shown(level), detail, "median of " nodes " nodes"
    }
    print "whole", "-", worst, shown(level), "-", k " of " nodes " nodes and " bad_pairs + 0 " pairs are slow; noise of one measurement " sprintf("%.1f", 100 * noise) " %" distance_note, "median of " nodes " nodes"
}

function by_floor_alone(    i, verdict, worst, detail, floor, rank) {
    rank["pass"] = 0; rank["warn"] = 1; rank["no_baseline"] = 2; rank["fail"] = 3
    worst = "pass"
    floor = largest(floor_fail, floor_warn)
    for (i = 1; i <= pairs; i++) {
        verdict = floor > 0 ? "pass" : "no_baseline"
        if (pair_value[i] < floor_warn) verdict = "warn"
        if (pair_value[i] <= 0 || pair_value[i] < floor_fail) verdict = "fail"
        detail = pair_value[i] > 0 ? "fewer than " min_nodes " nodes: judged by floors alone" : "no result"
        print "pair", names_of(i), verdict, shown(pair_value[i]), (floor > 0 ? floor : "-"), detail, "floor"
        if (rank[verdict] > rank[worst]) worst = verdict
    }
    print "whole", "-", worst, "-", "-", pairs " pairs of " nodes " nodes", "floor"
}
AWK
}
