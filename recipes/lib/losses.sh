# shellcheck shell=bash
# The loss of a run from the lines `step N … loss X` of its log. Sourced by recipes after common.sh.

# losses LOG: `STEP LOSS`, one line a step in ascending order; what a later launch has repeated counts.
losses() {
    sed -nE 's/.*step[ =:]+([0-9]+).*loss[ =:]+([^ ,|]+).*/\1 \2/p' "$1" 2>/dev/null | awk '{ loss[$1 + 0] = $2 } END { for (step in loss) print step, loss[step] }' | sort -n
}

# judge_losses LOG FILE: the mean of the last tenth must be below that of the first, and every loss a number.
judge_losses() {
    local verdict first last count bad
    losses "$1" >"${results:?}/losses"
    read -r count bad first last < <(awk '
        { value[NR] = $2; if ($2 !~ /^[-+]?[0-9]*[.]?[0-9]+([eE][-+]?[0-9]+)?$/) bad++ }
        END {
            part = int((NR + 9) / 10)
            for (i = 1; i <= part; i++) { head += value[i]; tail += value[NR - part + i] }
            if (NR) printf "%d %d %.6g %.6g\n", NR, bad, head / part, tail / part; else print "0 0 - -"
        }' "${results}/losses")
    if ((count < 2)); then
        record "$2" loss no_baseline "" "falls" "" "the log has ${count} lines like 'step 10 loss 0.5', so nobody can say whether the loss falls"
        return
    fi
    verdict=fail
    if ((bad == 0)) && awk -v a="${first}" -v b="${last}" 'BEGIN { exit !(b < a) }'; then verdict=pass; fi
    record "$2" loss "${verdict}" "${last}" "below ${first}" "" "means of the first and the last tenth of ${count} steps; ${bad} are no numbers"
    # At most 200 points: a record is read by people.
    local step value
    while read -r step value; do series loss "" step "" "${step}" "${value}"; done < <(awk -v every="$(((count + 199) / 200))" 'NR % every == 1 || every == 1' "${results}/losses")
}
