#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2034
set -euo pipefail
export LC_ALL=C
. "$1/lib/outliers.sh"
. "$1/lib/tournament.sh"
while read -r name nodes seed noise culprits links; do
    seq -f 'n%g' 1 "${nodes}" >"${name}.nodes"
    tournament_rounds "${name}.nodes" 0 "$(repeats_for "${nodes}")" >"${name}.plan"
    awk -v OFS='\t' -v seed="${seed}" -v noise="${noise}" -v culprits="${culprits}" -v links="${links}" '
        BEGIN {
            srand(seed)
            for (i = split(culprits, word, ","); i; i--) bad["n" word[i]] = 1
            for (i = split(links, word, "/"); i; i--) bad[word[i]] = 1
        }
        {
            slow = ($2 in bad) || ($3 in bad) || (($2 "," $3) in bad) || (($3 "," $2) in bad)
            print $1, $2, $3, 187 * (1 + noise / 100 * (2 * rand() - 1)) * (slow ? 0.85 : 1)
        }
    ' "${name}.plan" >"${name}.table"
    judge_pairs "${name}.plan" "${name}.table" >"${name}.judged"
done
