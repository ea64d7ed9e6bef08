# shellcheck shell=bash disable=SC2034,SC2154
# The history of a long run: attempts.tsv in its folder, one line when a launch begins and one when it ends. Sourced by
# long-runs.sh.
#   begin  RUN  SECOND  STEP  NODES  GPUS  NAMES       (RUN: job id, "-restartN" appended)
#   end    RUN  SECOND  STEP  HOW    DETAIL            (HOW: finished, stopped, failed, stalled, ended, lost)

# open_attempt: a launch begins on the nodes in $run_nodes.
open_attempt() {
    local now
    printf -v now '%(%s)T' -1
    attempt_from="$(run_mark)"
    launch_log="${results}/launch.log"
    append_line "${attempts}" begin "${results##*/}" "${now}" "${attempt_from:--}" "${#run_nodes[@]}" "$((${#run_nodes[@]} * ${GPUS_PER_NODE:-0}))" \
        "$(IFS=,; echo "${run_nodes[*]}")" || die "${attempts} cannot be written"
    TZ=UTC printf '=== launch %s of %s, job %s, %(%FT%TZ)T, from step %s, on %s\n' "$(count_attempts)" "${RUN_NAME}" "${results##*/}" -1 \
        "${attempt_from:-0}" "${run_nodes[*]}" | tee -a "${run_dir}/train.log" >>"${results}/train.log"
}

# close_attempt HOW DETAIL
# shellcheck disable=SC2034  # long-runs.sh reads them
close_attempt() {
    local now
    printf -v now '%(%s)T' -1
    attempt_how="$1" attempt_detail="$2" attempt_mark="$(run_mark)"
    append_line "${attempts}" end "${results##*/}" "${now}" "${attempt_mark:--}" "$1" "$2" || log "WARNING: ${attempts} cannot be written"
}

# close_lost_attempt: the end of a launch whose job could not write it: it ended when its log did.
close_lost_attempt() {
    local kind run
    if [[ ! -s "${attempts}" ]]; then return 0; fi
    IFS=$'\t' read -r kind run _ < <(tail -n 1 "${attempts}")
    [[ "${kind}" == begin ]] || return 0
    local when mark
    when="$(stat -c %Y "${run_dir}/train.log" 2>/dev/null || stat -c %Y "${attempts}")"
    mark="$(run_mark)"
    append_line "${attempts}" end "${run}" "${when}" "${mark:--}" lost "its job was killed: a node was lost, or preemption"
}

# count_attempts: how many launches the run has had.
count_attempts() {
    awk -F '\t' '$1 == "begin" { count++ } END { print count + 0 }' "${attempts}" 2>/dev/null || echo 0
}

# barren_attempts: how many of the last launches have ended at the step at which they began.
barren_attempts() {
    awk -F '\t' '
        $1 == "begin" { from = $4 }
        $1 == "end" { if ($4 == from && $5 != "finished") count++; else count = 0 }
        END { print count + 0 }' "${attempts}"
}

# attempts_in_words
attempts_in_words() {
    local -r count="$(count_attempts)"
    if ((count == 1)); then echo "one launch"; else echo "${count} launches"; fi
}
