# shellcheck shell=bash
# How fast and how well a model trained, read from the framework's log and judged. Sourced after common.sh.
# Every framework's log becomes one table: progress.tsv, a line per report, with the columns
# STEP <tab> STEPS <tab> LOSS <tab> SECONDS (of one step) <tab> TOKENS (a second and GPU) <tab> TFLOPS (a GPU).
# A figure that the log does not have is `-`. Only whole lines count: what a killed job wrote last may be half a number.

# whole_lines FILE: without a last line that has no end.
whole_lines() {
    if [[ -n "$(tail -c 1 "$1" | tr -d '\n')" ]]; then sed '$d' "$1" | untagged; else untagged "$1"; fi
}

# megatron_progress LOG: Megatron-LM reports `iteration N/ M | name: value | … |`; names come and go with its options.
megatron_progress() {
    whole_lines "$1" | awk -v gpus="$((${wanted_nodes:-${SLURM_JOB_NUM_NODES}} * GPUS_PER_NODE))" -v sequence="${SEQUENCE}" \
        -v layers="${NUM_LAYERS}" -v hidden="${HIDDEN_SIZE}" -v vocabulary="${VOCABULARY}" -v batch="${GLOBAL_BATCH}" '
        function number(text) { return text ~ /^[0-9.]+([eE][-+]?[0-9]+)?$/ ? text : "-" }
        # The last field ends the line: without it the line is cut off, or mixed with that of another process.
        / iteration +[0-9]+\/ *[0-9]+ \|/ && /number of nan iterations: +[0-9]+ \|[ \r]*$/ {
            delete value
            count = split($0, field, "|")
            for (i = 1; i <= count; i++)
                if (match(field[i], /: *[^ ]+ *$/)) {
                    name = substr(field[i], 1, RSTART - 1); gsub(/^ +/, "", name)
                    text = substr(field[i], RSTART + 1); gsub(/ /, "", text)
                    value[name] = text
                }
            step = field[1]; sub(/.*iteration +/, "", step); split(step, of, "/")
            milliseconds = value["elapsed time per iteration (ms)"]
            samples = ("global batch size" in value) ? value["global batch size"] : batch
            tokens = milliseconds + 0 > 0 ? samples * sequence / milliseconds * 1000 / gpus : "-"
            tflops = number(value["throughput per GPU (TFLOP/s/GPU)"])
            # Causal attention: half of the scores. Forward and backward, nothing counted that is calculated again.
            if (tflops == "-" && tokens != "-")
                tflops = tokens * 72 * layers * hidden ^ 2 * (1 + sequence / (12 * hidden) + vocabulary / (12 * hidden * layers)) / 1e12
            printf "%d\t%d\t%s\t%s\t%s\t%s\n", of[1], of[2], number(value["lm loss"]), (tokens == "-" ? "-" : milliseconds / 1000), tokens, tflops
        }'
}

# composer_progress LOG: Composer reports `[batch=N/M]:` and below it `Train name: value`, one a line.
composer_progress() {
    whole_lines "$1" | awk -v samples="$((GLOBAL_BATCH / (${wanted_nodes:-${SLURM_JOB_NUM_NODES}} * GPUS_PER_NODE)))" -v sequence="${SEQUENCE}" -v layers="${NUM_LAYERS}" -v hidden="${HIDDEN_SIZE}" -v vocabulary="${VOCABULARY}" '
        function number(text) { return text ~ /^[0-9.]+([eE][-+]?[0-9]+)?$/ ? text : "-" }
        function report() {
            if (step == "") return
            tflops = tokens == "-" ? "-" : tokens * (6 * (12 * layers * hidden ^ 2 + vocabulary * hidden) + 12 * layers * hidden * sequence) / 1e12
            printf "%d\t%d\t%s\t%s\t%s\t%s\n", step, steps, loss, (tokens + 0 > 0 ? samples * sequence / tokens : "-"), tokens, tflops
            step = ""
        }
        match($0, /\[batch=[0-9]+\/[0-9]+\]:/) {
            report()
            split(substr($0, RSTART + 7, RLENGTH - 9), of, "/")
            step = of[1]; steps = of[2]; loss = tokens = "-"
        }
        /^[ \t]+Train loss\/train\/total: / { loss = number($NF) }
        /^[ \t]+Train throughput\/device\/tokens_per_sec: / { tokens = number($NF) }
        END { report() }'
}

# judge_progress PROGRESS FILE: loss and speed. The first two figures of speed are left out: compiling, warming up.
judge_progress() {
    local -r progress="$1" file="$2"
    local reports first="" last="" step loss tokens tflops verdict
    reports="$(wc -l <"${progress}")"
    if ((reports == 0)); then
        record "${file}" progress error "" "a report of progress" "" "the log has no whole report of progress"
        return
    fi
    while IFS=$'\t' read -r step _ loss _ tokens tflops; do
        series loss "" step "" "${step}" "${loss}"
        series "tokens per GPU" tokens/s step "" "${step}" "${tokens}"
        series "model TFLOP/s per GPU" TFLOP/s step "" "${step}" "${tflops}"
    done <"${progress}"
    IFS=$'\t' read -r first last < <(loss_ends "${progress}")
    verdict=fail
    if ((reports < 2)); then
        verdict=no_baseline
    elif is_number "${first}" && is_number "${last}" && ! at_least "${last}" "${first}"; then
        verdict=pass
    fi
    record "${file}" loss_falls "${verdict}" "${last:-none}" "below ${first:-a first report}" "" "means of the first and of the last quarter of ${reports} reports"
    judge_speed "${progress}" "${file}" tokens_per_gpu 5 "tokens/s/GPU"
    judge_words "${progress}" "${file}"
    judge_speed "${progress}" "${file}" model_tflops 6 "TFLOP/s/GPU"
    if is_number "${GPU_PEAK_TFLOPS:-}"; then
        awk -F '\t' -v OFS='\t' -v peak="${GPU_PEAK_TFLOPS}" '{ $6 = $6 == "-" ? "-" : $6 / peak * 100; print }' "${progress}" >"${progress}.mfu"
        judge_speed "${progress}.mfu" "${file}" mfu 6 "% of ${GPU_PEAK_TFLOPS} TFLOP/s" 100
        rm -f "${progress}.mfu"
    fi
}

# loss_ends PROGRESS: mean loss of the first and of the last quarter, at least one report each; `-` where one is no number.
loss_ends() {
    awk -F '\t' '
        function mean(from, to,    i, sum) {
            for (i = from; i <= to; i++) { if (loss[i] == "-") return "-"; sum += loss[i] }
            return sum / (to - from + 1)
        }
        { loss[NR] = $3 }
        END { part = int(NR / 4); if (part < 1) part = 1; print mean(1, part) "\t" mean(NR - part + 1, NR) }' "$1"
}

# judge_speed PROGRESS FILE METRIC COLUMN UNIT [LIMIT]: the median of a column against the nearest published figure; what
# is above LIMIT cannot be true.
judge_speed() {
    local -r progress="$1" file="$2" metric="$3" column="$4" unit="$5"
    local value verdict floor="" fail="" published="" gpus="" source="" detail
    value="$(cut -f "${column}" "${progress}" | steady_median)"
    if ! is_number "${value}"; then
        verdict=no_baseline
        if [[ "$(tail -n 1 "${progress}" | cut -f "${column}")" == - ]]; then verdict=fail; fi
        record "${file}" "${metric}" "${verdict}" "" "a positive number" "${unit}" "the log must have it to its end, and in more than two reports"
        return
    fi
    if [[ -n "${6:-}" ]] && ! at_least "$6" "${value}"; then
        record "${file}" "${metric}" error "${value}" "at most $6" "${unit}" "more than the GPU can do: shape, batch or times of the log are not what they seem"
        return
    fi
    IFS=$'\t' read -r gpus published floor fail source < <(published_speed "${metric}") || true
    if [[ -z "${gpus:-}" ]]; then
        record "${file}" "${metric}" pass "${value}" "a positive number" "${unit}" "nobody published this figure for the model, this GPU and about as many of them"
        return
    fi
    # A figure of another number of GPUs says what to expect, but convicts nobody.
    detail="${published} was published for ${gpus} GPUs"
    if [[ "${fail}" == - ]] || ! is_count "${gpus}" || ((gpus != ${wanted_nodes:-${SLURM_JOB_NUM_NODES}} * GPUS_PER_NODE)); then fail=""; fi
    record "${file}" "${metric}" "$(judge "${value}" "${floor}" "${fail}")" "${value}" "${floor}" "${unit}" "${detail}" "${source}"
}

# judge_words PROGRESS FILE: tokens a second of the whole job, where that was published for as many GPUs as it has.
judge_words() {
    local -r gpus=$((${wanted_nodes:-${SLURM_JOB_NUM_NODES}} * GPUS_PER_NODE))
    local published
    IFS=$'\t' read -r published _ < <(published_speed words_per_s) || true
    [[ "${published:-}" == "${gpus}" ]] || return 0
    awk -F '\t' -v OFS='\t' -v gpus="${gpus}" '{ $5 = $5 == "-" ? "-" : $5 * gpus; print }' "$1" >"$1.words"
    judge_speed "$1.words" "$2" words_per_s 5 "words/s"
    rm -f "$1.words"
}

# steady_median: of the figures, one a line, without the first two; nothing where the last one is missing. Composer has
# none before its window is full.
steady_median() {
    awk '{ last = $1 } $1 != "-" && ++count > 2 { print } END { if (last == "-") print "-" }' | sort -g |
        awk '{ v[NR] = $1 } END { if (NR && v[1] != "-") { m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2; printf (m < 10000 ? "%.4g" : "%.0f"), m } }'
}

# published_speed METRIC: the line of throughput.tsv for MODEL with the nearest number of GPUs, at most four times more or fewer:
# GPUS <tab> FIGURE <tab> WARN_BELOW <tab> FAIL_BELOW <tab> SOURCE; nothing where there is none.
published_speed() {
    [[ -s throughput.tsv ]] || return 0
    awk -F '\t' -v metric="$1" -v model="${MODEL:-}" -v gpus="$((${wanted_nodes:-${SLURM_JOB_NUM_NODES}} * GPUS_PER_NODE))" '
        $1 == metric && $7 == model {
            ratio = $2 > gpus ? $2 / gpus : gpus / $2
            if (ratio <= 4 && (best == "" || ratio < nearest)) { nearest = ratio; best = $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 }
        }
        END { if (best != "") print best }' throughput.tsv
}

# judge_stragglers LOG FILE: Megatron-LM names the slowest rank of each interval; here its node, where it is slow for long.
# Ranks count in the order of the nodes, because each node is told its own.
judge_stragglers() {
    local rank share count node="" verdict=pass
    local -a nodes
    IFS=$'\t' read -r rank share count < <(whole_lines "$1" | slowest_rank) || true
    if [[ -z "${rank:-}" ]]; then
        record "$2" straggler no_baseline "" "a report of every interval" "" "the log does not say which rank was slowest"
        return
    fi
    # Those of the launch, where long-runs.sh has chosen them.
    # shellcheck disable=SC2154
    nodes=("${run_nodes[@]}")
    if ((${#nodes[@]} == 0)); then mapfile -t nodes < <(requested_nodes); fi
    node="${nodes[rank / GPUS_PER_NODE]:-}"
    if [[ -z "${node}" ]]; then
        record "$2" straggler error "${rank}" "a rank of the job" rank "no node has this rank"
        return
    fi
    # Ours: nobody publishes how far the ranks of a healthy job are apart.
    if ! at_least "${share}" 93; then verdict=warn; fi
    record "$2" straggler "${verdict}" "${share}" 93 "% of the fastest rank" "rank ${rank} on ${node} was the slowest of ${count} intervals" "ours" "${node}"
}

# slowest_rank: of the lines `… | MnEtpt/Rnk: 371.20TF/37 | MxEtpt/Rnk: 402.11TF/5` the rank that is slowest most
# often, its median share (%) of the fastest, and in how many intervals.
slowest_rank() {
    awk '
        match($0, /MnEtpt\/Rnk: [0-9.]+TF\/[0-9]+ \| MxEtpt\/Rnk: [0-9.]+TF\/[0-9]+/) {
            split(substr($0, RSTART, RLENGTH), part, /[ |\/]+/)
            slow = part[3] + 0; rank = part[4]; fast = part[7] + 0
            if (fast > 0) printf "%s\t%.1f\n", rank, slow / fast * 100
        }' | sort -k 2,2g | awk -F '\t' '
        { times[$1]++; share[$1, times[$1]] = $2; if (times[$1] > times[worst]) worst = $1 }
        END { if (NR) print worst "\t" share[worst, int((times[worst] + 1) / 2)] "\t" times[worst] }'
}
