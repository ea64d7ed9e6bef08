#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2034
set -euo pipefail
export LC_ALL=C
. "$1/lib/outliers.sh"
. "$1/lib/tournament.sh"
. "$1/lib/bisect.sh"
GROUP_TIMEOUT_S=1 BUDGET_S=9999 CONFIRMATIONS=4
measure_groups() {
    calls=$((calls + 1))
    awk -F '\t' -v OFS='\t' -v seed="${seed}${calls}" -v noise="${noise}" -v bad="${culprits}" -v far="${far}" '
        BEGIN { srand(seed); count = split(bad, word, ","); while (count) slow["n" word[count--]] = 1 }
        {
            factor = 1
            count = split($2, node, ",")
            for (i = 1; i <= count; i++) {
                if (node[i] in slow) factor = 0.85
                side[substr(node[i], 2) + 0 > far ? 2 : 1] = 1
            }
            if (far && (1 in side) && (2 in side)) factor = 0.8
            split("", side)
            print $1, $2, 187 * factor * (1 + noise / 100 * (2 * rand() - 1))
        }' "$1" >>"$2"
}
while read -r name nodes seed noise culprits far; do
    calls=0
    seq -f 'n%g' 1 "${nodes}" >"${name}.nodes"
    FLOOR_FAIL="" FLOOR_WARN=""
    bisect "${name}" "${name}.nodes"
    echo "${calls}" >"${name}/calls"
done
