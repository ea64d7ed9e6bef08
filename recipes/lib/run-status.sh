# shellcheck shell=bash
# What a long run has reached and cost, over all its launches and jobs: `./run.sh --status [RUN_NAME]`. Sourced by
# recipes after common.sh. It reads attempts.tsv and train.log of the run's folder, and asks Slurm only who is running.

# steps_of LOG: `STEP OF SECONDS`, one line for each that the framework has logged; `-` for what it does not say. The
# forms are those of Megatron-LM, of Composer and of the example of the recipe `own`. A launch begins with `===`.
steps_of() {
    untagged "$1" 2>/dev/null | awk '
        function after(text, words,    place) { place = index($0, words); return place ? substr($0, place + length(words)) + 0 : "-" }
        /^=== launch / { print "launch", after($0, ", from step "); next }
        match($0, / iteration +[0-9]+\/ *[0-9]+ \|/) {
            line = substr($0, RSTART, RLENGTH); gsub(/[^0-9\/]/, "", line); split(line, part, "/")
            ms = after($0, "elapsed time per iteration (ms):")
            print part[1] + 0, part[2] + 0, (ms == "-" ? "-" : ms / 1000); next
        }
        /\[batch=[0-9]+\/[0-9]+\]/ { line = $0; sub(/.*\[batch=/, "", line); split(line, part, "/"); print part[1] + 0, part[2] + 0, "-"; next }
        /step[ =:]+[0-9]+.*loss/ {
            line = $0; sub(/.*step[ =:]+/, "", line); step = line + 0; total = "-"
            if (line ~ /^[0-9]+ of [0-9]+/) { sub(/^[0-9]+ of /, "", line); total = line + 0 }
            print step, total, after($0, "seconds ")
        }'
}

# run_figures: the figures of the run as `NAME=VALUE` lines; a figure that nobody can know is left out.
run_figures() {
    local now
    printf -v now '%(%s)T' -1
    { sed 's/^/attempt\t/' "${attempts:?}"; steps_of "${run_dir:?}/train.log" | sed 's/^/step\t/'; } | awk -F '\t' -v now="${now}" '
        $1 == "attempt" && $2 == "begin" { count++; since = $4; nodes = $6; gpus = $7; open = 1 }
        $1 == "attempt" && $2 == "end" { spent += $4 - since; node_s += nodes * ($4 - since); gpu_s += gpus * ($4 - since); open = 0; how = $6; mark = $5; if ($6 != "finished" && $6 != "stopped") broken++ }
        # A line stands for the steps since the line before.
        $1 == "step" {
            split($2, part, " ")
            if (part[1] == "launch") { previous = part[2]; next }
            step = part[1]
            if (part[2] != "-") total = part[2]
            if (part[3] != "-") { seconds[step] = part[3]; width[step] = step - previous; recent = recent ? 0.9 * recent + 0.1 * part[3] : part[3] }
            previous = step
            last = step
        }
        END {
            if (open) { spent += now - since; node_s += nodes * (now - since); gpu_s += gpus * (now - since) }
            print "launches=" count; print "broken=" broken + 0; print "open=" open + 0; print "how=" how; print "mark=" (mark == "-" ? "" : mark)
            printf "spent_s=%d\nnode_h=%.2f\ngpu_h=%.2f\n", spent, node_s / 3600, gpu_s / 3600
            if (last != "") print "step=" last
            if (total != "") print "total=" total
            if (recent) {
                printf "step_s=%.4g\n", recent
                # Every step once, however often it was trained.
                for (step in seconds) if (width[step] > 0) useful += seconds[step] * width[step]
                if (spent > 0) printf "goodput=%.0f\n", (useful > spent ? 100 : 100 * useful / spent)
                if (total != "") printf "eta_s=%d\n", (total - last) * recent
            }
        }'
}

# show_status [RUN_NAME]: the newest run, if none is named.
show_status() {
    local -r runs="${STAGE_PATH:?}/runs"
    local name="${1:-${RUN_NAME:-}}" newest
    if [[ -z "${name}" ]]; then
        # shellcheck disable=SC2012  # the names are those of begin_long_run
        newest="$(ls -t "${runs}"/*/attempts.tsv 2>/dev/null | sed -n 1p)"
        [[ -n "${newest}" ]] || die "there is no run below ${runs}"
        name="$(basename "$(dirname "${newest}")")"
    fi
    run_dir="${runs}/${name}" attempts="${runs}/${name}/attempts.tsv"
    [[ -s "${attempts}" ]] || die "there is no run ${name} below ${runs}; there are: $(find "${runs}" -mindepth 1 -maxdepth 1 -type d -printf '%f ' 2>/dev/null)"
    local -A figure=()
    local key value state
    while IFS='=' read -r key value; do figure["${key}"]="${value}"; done < <(run_figures)
    state="${figure[how]:-} "
    if [[ "${figure[open]}" == 1 ]]; then
        key="$(cat "${run_dir}/job" 2>/dev/null || true)"
        state="its last job ended without a word; continue it with SET_RUN_NAME=${name},SET_RESUME=1"
        if [[ -n "$(squeue --noheader --jobs="${key:-0}" --format=%i 2>/dev/null)" ]]; then state="running or waiting as job ${key}"; fi
    fi
    printf 'run       %s: %s\n' "${name}" "${state% }"
    printf 'progress  step %s of %s, saved: %s\n' "${figure[step]:-none}" "${figure[total]:-an unknown number}" "${figure[mark]:-nothing yet}"
    if [[ -n "${figure[step_s]:-}" ]]; then printf 'speed     %s s per step\n' "${figure[step_s]}"; fi
    if [[ -n "${figure[eta_s]:-}" && "${state}" != finished* ]]; then printf 'to go     %s at this speed, without interruptions\n' "$(hours "${figure[eta_s]}")"; fi
    printf 'spent     %s in %s launches (%s of them broke); %s node-hours, %s GPU-hours\n' "$(hours "${figure[spent_s]}")" "${figure[launches]}" "${figure[broken]}" \
        "${figure[node_h]}" "${figure[gpu_h]}"
    if [[ -n "${figure[goodput]:-}" ]]; then printf 'goodput   %s %%: time in steps that count, of the time of all launches\n' "${figure[goodput]}"; fi
    awk -F '\t' '
        $1 == "begin" { count++; printf "launch %d  job %s, from step %s on %s nodes", count, $2, ($4 == "-" ? 0 : $4), $5; since = $3; open = 1 }
        $1 == "end" { printf ": %s at step %s after %d s%s\n", $5, ($4 == "-" ? 0 : $4), $3 - since, ($6 == "" ? "" : "; " $6); open = 0 }
        END { if (open) print ": not ended" }' "${attempts}"
}

# hours SECONDS: for people.
hours() {
    printf '%d h %02d min' $(($1 / 3600)) $(($1 % 3600 / 60))
}
