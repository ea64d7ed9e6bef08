# shellcheck shell=bash
# Who meets whom: rounds of pairs of nodes, all pairs of a round at once. Sourced after common.sh.

# tournament_rounds NODES [ROUNDS [REPEATS]]: lines `ROUND <tab> NODE <tab> NODE` in which every node of the file NODES
# meets every other once, in n-1 rounds (n with an odd number of nodes: one pauses). With ROUNDS only that many of them,
# evenly spread; with REPEATS all of them so many times.
# The circle method: microsoft/superbenchmark, superbench/common/utils/gen_traffic_pattern_config.py
tournament_rounds() {
    awk -v OFS='\t' -v wanted="${2:-0}" -v repeats="${3:-1}" '
        NF { node[count++] = $1 }
        END {
            places = count + count % 2
            rounds = places - 1
            if (wanted < 1 || wanted > rounds) wanted = rounds
            for (place = 0; place < places; place++) seat[place] = place
            for (round = 0; round < rounds; round++) {
                if (int((round + 1) * wanted / rounds) > int(round * wanted / rounds))
                    for (place = 0; place < places / 2; place++) {
                        a = seat[place]; b = seat[places - 1 - place]
                        if (a < count && b < count) for (again = 0; again < repeats; again++) print again * rounds + round + 1, node[a], node[b]
                    }
                first = seat[1]
                for (place = 1; place < places - 1; place++) seat[place] = seat[place + 1]
                seat[places - 1] = first
            }
        }' "$1" | sort -n -s -k 1,1
}

# repeats_for NODES: how often each pair is measured: few nodes have few pairs, whose noise would decide.
repeats_for() {
    if (($1 < 6)); then echo 3; else echo 1; fi
}

# confirmation_rounds JUDGED ROUNDS: further rounds, named c1, c2, ..., in which every node that did not pass meets good
# nodes, and every pair that did not pass meets again. JUDGED is what judge_pairs printed. Nothing without suspects, or
# without a good node that could tell.
confirmation_rounds() {
    awk -F '\t' -v OFS='\t' -v rounds="$2" '
        function meet(a, b) { print "c" round, a, b; busy[a] = busy[b] = 1 }
        function pairs_meet(    i, name) {
            for (i = 1; i <= pairs; i++) {
                split(pair[i], name, ",")
                if (!(name[1] in busy) && !(name[2] in busy)) meet(name[1], name[2])
            }
        }
        function suspects_meet(    i, tries, partner) {
            for (i = 1; i <= suspects; i++)
                for (tries = 0; tries < goods; tries++) {
                    partner = good[(turn++) % goods + 1]
                    if (partner in busy) continue
                    meet(suspect[i], partner)
                    break
                }
        }
        $1 == "node" { if ($3 == "pass") good[++goods] = $2; else suspect[++suspects] = $2 }
        $1 == "pair" && $3 != "pass" { pair[++pairs] = $2 }
        END {
            if (!goods) exit
            # In turns, because good nodes may be few.
            for (round = 1; round <= rounds; round++) {
                split("", busy)
                # Not the same partners as in the round before.
                turn++
                if (round % 2) { pairs_meet(); suspects_meet() } else { suspects_meet(); pairs_meet() }
            }
        }' "$1"
}
