# shellcheck shell=bash
# Long runs: training that goes on over launches and jobs until its end, or ends with a verdict that says why not.
# Sourced after common.sh.
#
# A run is a folder below STAGE_PATH/runs. It is trained by launches of a framework: one after the other in a job, and in
# as many jobs as it takes. A job ends itself before its time limit and submits the next one; a job that Slurm requeues
# (a node was lost, preemption) finds its run again. Between two launches every node is looked at, and a bad one is left
# out. MAX_RESTARTS bounds the launches after the first, and MAX_SAME_STEP the launches in a row without a new checkpoint.
#
# A recipe calls `begin_long_run NAME` and `train_to_the_end`, and defines:
#   prepare_launch          what a launch needs on the nodes in $run_nodes, for instance the image; may die
#   launch                  starts the framework on these nodes and waits for it; its output is the log
#   run_mark                prints the step of the newest whole checkpoint; nothing if there is none
#   run_is_finished STATUS  whether the launch that ended with this status has come to the end of the training;
#                           $launch_log is what the launch has written
#   mend_mark               before a launch: the framework must find the newest whole checkpoint, whatever a full file
#                           system or a lost node has left; otherwise it would begin anew and say nothing
#   way_back                prints the command that goes back to the checkpoint before; nothing if there is none
#   judge_long_run          records the checks of the run
# What the framework is told: STOP_AT, the second (Unix time) at which it has to write a checkpoint and end, empty if
# there is no time limit, and STOP_FILE, a file that is there when it has to do so now.

# shellcheck source=recipes/lib/node-gate.sh
. "${JOBS_LIB}/node-gate.sh"
# shellcheck source=recipes/lib/attempts.sh
. "${JOBS_LIB}/attempts.sh"

# begin_long_run NAME: the folder of the run, $run_dir. RUN_NAME with RESUME=1 continues one; a job that Slurm has
# requeued continues its own.
begin_long_run() {
    require STAGE_PATH MAX_RESTARTS MAX_SAME_STEP STOP_BEFORE_END_S SPARE_NODES
    require_commands srun sbatch scontrol timeout tee
    RUN_NAME="${RUN_NAME:-${1}-${SLURM_JOB_ID}}"
    [[ "${RUN_NAME}" =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || die "RUN_NAME ${RUN_NAME} is no name of a folder: letters, digits, '.', '_' and '-'"
    run_dir="${STAGE_PATH}/runs/${RUN_NAME}"
    attempts="${run_dir}/attempts.tsv" stop_file="${run_dir}/stop"
    local owner=""
    if [[ -d "${run_dir}" ]]; then
        if [[ -s "${run_dir}/job" ]]; then owner="$(<"${run_dir}/job")"; fi
        if [[ "${owner}" != "${SLURM_JOB_ID}" ]]; then
            [[ "${RESUME:-0}" == 1 ]] || die "${run_dir} exists; set RESUME=1 to continue it or choose another RUN_NAME"
            ! is_running "${owner}" || die "job ${owner} is training ${RUN_NAME}; two jobs would overwrite each other's checkpoints"
        fi
    fi
    mkdir -p "${run_dir}/checkpoints" || die "${run_dir}/checkpoints cannot be made"
    can_write "${run_dir}" || die "${run_dir} cannot be written: ${problem}"
    printf '%s\n' "${SLURM_JOB_ID}" >"${run_dir}/job"
    wanted_nodes=$((SLURM_JOB_NUM_NODES - SPARE_NODES))
    ((wanted_nodes > 0)) || die "${SLURM_JOB_NUM_NODES} nodes and SPARE_NODES=${SPARE_NODES}: none is left to train on"
    # What Slurm had killed could not write its own end.
    close_lost_attempt
    export RUN_NAME run_dir STOP_FILE="${stop_file}"
}

# is_running JOB: whether Slurm still runs it.
is_running() {
    [[ -n "$1" ]] || return 1
    [[ -n "$(squeue --noheader --jobs="$1" --states=RUNNING,CONFIGURING --format=%i 2>/dev/null)" ]]
}

# can_write FOLDER: a mebibyte fits; otherwise the reason is in $problem.
can_write() {
    local -r probe="${1}/.probe-${SLURM_JOB_ID:?}"
    # In one shell, so that its words are kept whatever fails.
    problem="$({ head -c 1048576 /dev/zero >"${probe}"; } 2>&1)" || { rm -f "${probe}" || true; return 1; }
    rm -f "${probe}"
}

# seconds_left: until the time limit of the job; nothing if there is none or nobody knows.
seconds_left() {
    local left
    left="$(squeue --noheader --jobs="${SLURM_JOB_ID}" --format=%L 2>/dev/null)" || left=""
    [[ "${left}" =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]] || return 0
    echo $((10#${BASH_REMATCH[2]:-0} * 86400 + 10#${BASH_REMATCH[4]:-0} * 3600 + 10#${BASH_REMATCH[5]} * 60 + 10#${BASH_REMATCH[6]}))
}

# train_to_the_end: launches until the training is at its end, the next job has been submitted, or nothing helps any more.
train_to_the_end() {
    local status
    trap on_notice USR1
    trap on_termination TERM
    while :; do
        choose_nodes
        prepare_launch
        mend_mark
        open_attempt
        status=0
        launch_and_wait || status=$?
        if [[ -e "${results}/stalled" ]]; then
            close_attempt stalled "no line in the log for ${STALL_S} s"
        elif run_is_finished "${status}"; then
            rm -f "${results}/reserve"
            close_attempt finished ""
            judge_long_run
            conclude "run ${RUN_NAME}, $(attempts_in_words), in ${run_dir}"
        elif [[ -n "${stop_requested}" ]] || ((status == 0)); then
            close_attempt stopped "before its end, as asked"
        else
            close_attempt failed "exit status ${status}; $(last_words)"
        fi
        go_on_or_end
    done
}

# go_on_or_end: after a launch that was not the last one. Returns if the next launch is to be in this job.
go_on_or_end() {
    local -r how="${attempt_how}"
    local full=""
    if grep -qiE 'no space left on device|disk quota exceeded' "${launch_log}" || ! can_write "${run_dir}" || ! can_write "${results}"; then full=1; fi
    rm -f "${results}/reserve"
    if [[ -n "${full}" ]]; then
        give_up "the file system of ${run_dir} is full: remove what is not needed, then continue with: $(continue_command)"
    fi
    if (($(barren_attempts) >= MAX_SAME_STEP)); then
        local back
        back="$(way_back)"
        give_up "${MAX_SAME_STEP} launches in a row have ended at step ${attempt_mark:-0} without a new checkpoint; the last one ${how}: ${attempt_detail}${back:+. If that checkpoint is damaged: ${back}; then $(continue_command)}"
    fi
    if (($(count_attempts) > MAX_RESTARTS)); then
        give_up "MAX_RESTARTS=${MAX_RESTARTS} restarts were not enough; step ${attempt_mark:-0} is saved; to go on: $(continue_command)"
    fi
    local left
    left="$(seconds_left)"
    if [[ "${how}" != stopped ]] && { [[ -z "${left}" ]] || ((left > 2 * STOP_BEFORE_END_S)); }; then
        log "launch $(count_attempts) ${how} (${attempt_detail}); the next one begins at step ${attempt_mark:-0}"
        return 0
    fi
    submit_next "launch $(count_attempts) ${how} at step ${attempt_mark:-0}"
}

# give_up TEXT: the run ends without having come to its end.
give_up() {
    record "${results}/checks.tsv" restarts error "$(count_attempts)" "at most $((MAX_RESTARTS + 1))" launches "$1"
    judge_long_run
    conclude "run ${RUN_NAME} has not come to its end: $1"
}

# went_back TEXT: the run goes on from an older checkpoint than the framework had named.
went_back() {
    log "$1"
    record "${results}/checks.tsv" checkpoint warn "$(run_mark)" "" step "$1"
}

# continue_command: what a person types to go on with the run.
continue_command() {
    printf "sbatch --export='ALL,SET_RUN_NAME=%s,SET_RESUME=1' %s" "${RUN_NAME}" "${BATCH_FILE:-job.sbatch}"
}

# submit_next TEXT: the next job of the run, without the nodes that are bad; this one ends, and has proven nothing yet.
submit_next() {
    local next name words
    local -a options=() clean=()
    (($(count_attempts) <= MAX_RESTARTS)) || give_up "MAX_RESTARTS=${MAX_RESTARTS} restarts were not enough; to go on: $(continue_command)"
    mapfile -t options < <(options_of_this_job)
    if ((${#bad_nodes[@]})); then options+=("--exclude=$(IFS=,; echo "${bad_nodes[*]}")"); fi
    # Slurm's variables of this job are no settings of the next one.
    while read -r name; do clean+=("--unset=${name}"); done < <(compgen -e | grep -E '^SLURM_' | grep -vx SLURM_CONF)
    words="$(env "${clean[@]}" SET_RUN_NAME="${RUN_NAME}" SET_RESUME=1 \
        sbatch --parsable --dependency="afterany:${SLURM_JOB_ID}" "${options[@]}" "${BATCH_FILE:-job.sbatch}" 2>&1)" || words="sbatch: ${words}"
    # The last line: sbatch may warn before it.
    next="${words##*$'\n'}" next="${next%%;*}"
    if [[ ! "${next}" =~ ^[0-9]+$ ]]; then
        record "${results}/checks.tsv" next_job error "" "" "" "Slurm refused the next job: ${words}"
        judge_long_run
        conclude "${1}; Slurm refused the next job; continue with: $(continue_command)"
    fi
    record "${results}/checks.tsv" next_job no_baseline "${next}" "" "job" "the run goes on"
    if ((${#bad_nodes[@]})); then log "without ${bad_nodes[*]}"; fi
    conclude "run ${RUN_NAME}: ${1}; job ${next} goes on"
}

# options_of_this_job: what a person may have given on sbatch's command line, one option a line.
options_of_this_job() {
    printf '%s\n' "--nodes=${SLURM_JOB_NUM_NODES}"
    scontrol --oneliner show job "${SLURM_JOB_ID}" 2>/dev/null | tr ' ' '\n' | awk -F = '
        BEGIN {
            option["JobName"] = "job-name"; option["Partition"] = "partition"; option["TimeLimit"] = "time"; option["Account"] = "account"
            option["QOS"] = "qos"; option["Reservation"] = "reservation"; option["Features"] = "constraint"
        }
        $1 in option && $2 != "" && $2 !~ /^\(null\)$|^N\/A$/ { print "--" option[$1] "=" substr($0, length($1) + 2); delete option[$1] }'
}

# launch_and_wait: one launch, with its output in the log of the run and in that of this job; its exit status. It runs in
# the background, because Bash handles a signal only between two commands, or while it waits.
launch_and_wait() {
    local launched watcher status
    local -r from="$(size_of "${results}/train.log")"
    rm -f "${stop_file}" "${results}/stalled"
    # Room for the end of the job on a file system that the launch has filled.
    head -c 1048576 /dev/zero >"${results}/reserve" 2>/dev/null || true
    echo 137 >"${results}/launch.status"
    stop_requested=""
    set_stop_time
    (
        set +e
        launch 2>&1 | tee -a "${run_dir}/train.log" "${results}/train.log"
        # Over what is there, which needs no room.
        printf '%03d\n' "${PIPESTATUS[0]}" 1<>"${results}/launch.status"
    ) &
    launched=$!
    watch_launch >>"${results}/watch.log" 2>&1 </dev/null &
    watcher=$!
    # A signal ends `wait` before the launch has ended.
    while kill -0 "${launched}" 2>/dev/null; do wait "${launched}" || true; done
    kill "${watcher}" 2>/dev/null || true
    wait "${watcher}" 2>/dev/null || true
    tail -c "+$((from + 1))" "${results}/train.log" >"${launch_log}" || true
    status="$(<"${results}/launch.status")"
    [[ "${status}" =~ ^[0-9]{3}$ ]] || status=137
    return "$((10#${status}))"
}

# set_stop_time: STOP_AT of the launch that begins now.
set_stop_time() {
    local left now
    left="$(seconds_left)"
    printf -v now '%(%s)T' -1
    STOP_AT=""
    if [[ -n "${left}" ]]; then STOP_AT=$((now + left - STOP_BEFORE_END_S)); fi
    export STOP_AT
}

size_of() {
    stat -c %s "$1" 2>/dev/null || echo 0
}

# on_notice: Slurm's signal before the time limit, or a person's (scancel --signal=USR1 --batch JOB): a checkpoint, then
# the next job. The framework had its own time before; if that is over, it is told by a signal.
on_notice() {
    local now
    printf -v now '%(%s)T' -1
    stop_requested="${now}"
    log "asked to stop; ${RUN_NAME} goes on in another job"
    : >"${stop_file}" || true
    if [[ -n "${STOP_AT:-}" ]] && ((now >= STOP_AT)); then signal_steps TERM; fi
}

# on_termination: the time limit if there was a notice before, otherwise scancel, preemption or the loss of a node. Only
# after the first does this job submit the next one: a person wants the end, and Slurm requeues by itself.
on_termination() {
    trap '' TERM
    rm -f "${results}/reserve"
    if [[ -n "${stop_requested:-}" ]]; then
        close_attempt stopped "at the time limit"
        submit_next "launch $(count_attempts) had not ended at the time limit"
    fi
    close_attempt ended "scancel, preemption or the loss of a node"
    ended_by SIGTERM 143
}

# watch_launch: what nobody else notices: a launch that hangs, and one that does not react to the request to stop.
watch_launch() {
    local sleeper="" now changed asked
    trap 'if [[ -n "${sleeper}" ]]; then kill "${sleeper}"; fi; exit 0' TERM
    while :; do
        sleep "${WATCH_S:-20}" &
        sleeper=$!
        wait "${sleeper}"
        printf -v now '%(%s)T' -1
        if [[ -e "${stop_file}" ]]; then
            asked="$(stat -c %Y "${stop_file}")" || continue
            if ((now - asked > STOP_BEFORE_END_S / 2)); then signal_steps TERM; fi
        fi
        if ((${STALL_S:-0} > 0)) && changed="$(stat -c %Y "${results}/train.log")" && ((now - changed > STALL_S)); then
            : >"${results}/stalled"
            signal_steps KILL
        fi
    done
}

# signal_steps NAME: to the framework, not to this script; KILL ends the steps.
signal_steps() {
    local step
    while read -r step; do
        if [[ "$1" == KILL ]]; then scancel --quiet "${step}"; else scancel --quiet --signal="$1" "${step}"; fi || true
    done < <(squeue --steps --noheader --jobs="${SLURM_JOB_ID}" --format=%i 2>/dev/null | grep -E '^[0-9]+\.[0-9]+$')
}

# last_words: the end of the launch's log, for the record; what Slurm says of it only if nobody else says anything.
last_words() {
    tail -n 200 "${launch_log}" | awk '
        /To enable traceback/ { next }
        /[Ee]rror|ERROR|Exception|[Kk]illed|SIG[A-Z]+/ { if (/^(srun|slurmstepd)/) slurm = $0; else own = $0 }
        END { print substr(own != "" ? own : slurm, 1, 200) }'
}
