# shellcheck shell=bash
# Jobs and nodes, as Slurm tells of them. Sourced by prove.sh.

# A request ends within this time, and that of a killed prove.sh has reached Slurm, or never will, when it has settled.
readonly REQUEST_S="${PROVE_REQUEST_S:-60}"
readonly SETTLE_S="${PROVE_SETTLE_S:-$((REQUEST_S + 5))}"
readonly POLL_S="${PROVE_POLL_S:-10}"
readonly ENDED='^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|BOOT_FAIL|DEADLINE|REVOKED|LAUNCH_FAILED)$'

# pause: one step of every loop that waits.
pause() {
    # Only a plan is printed without the lock.
    if [[ -n "${lock_token}" ]]; then
        holds_lock || die "someone else has taken the lock of this folder; this run stops here, its jobs go on"
    fi
    keep_spent
    sleep "${POLL_S}"
}

time_left() {
    spent
    ((REPLY < RUN[max_s]))
}

# ask COMMAND...: what Slurm answers, in REPLY; a controller that does not answer is asked again while there is time.
ask() {
    local told=false
    while ! REPLY="$(timeout --kill-after=5 "${REQUEST_S}" "$@" 2>"${scratch}/said")"; do
        if [[ "${told}" == false ]]; then log "Slurm does not answer (${1}: $(head -n 1 "${scratch}/said")); asked again every ${POLL_S} s"; fi
        told=true
        time_left || return 1
        pause
    done
}

# job_row NAME: `id|state|reason` of the job of that name while Slurm remembers it, in REPLY. Asked by name, because Slurm
# answers an id that it has forgotten with an error, and a name with nothing.
# Source: SchedMD/slurm, src/squeue/opts.c and print.c, 22.05 to 25.11; man squeue, --name and --states.
job_row() {
    ask squeue --noheader --states=all "--name=$1" '--format=%i|%T|%r' || return 1
    REPLY="$(sort -n <<<"${REPLY}" | grep -m 1 . || true)"
}

# find_job NAME BASE: the id of a job that was submitted by this name, in REPLY; empty: there was none. A job that has
# started left its output file, whatever Slurm remembers.
find_job() {
    local file
    job_row "$1" || return 1
    REPLY="${REPLY%%|*}"
    if [[ -n "${REPLY}" ]]; then return 0; fi
    for file in "$2".slurm-*.out; do
        if [[ -e "${file}" ]]; then
            file="${file##*.slurm-}"
            REPLY="${file%.out}"
            return 0
        fi
    done
    # Where accounting is off, sacct fails, and there is nothing more to ask.
    REPLY="$(timeout --kill-after=5 "${REQUEST_S}" sacct --noheader --allocations --parsable2 "--name=$1" \
        --starttime=now-14days --format=JobIDRaw 2>/dev/null | grep -m 1 -E '^[0-9]+$')" || REPLY=""
}

# submit BASE: the job of $base.intent, unless it was submitted before; its id is in $base.job. 1: not submitted, REPLY says why.
submit() {
    local -r base="$1"
    local name nodes said age settings job count step setting
    settings="$(of_intent "${base}" settings)"
    name="$(of_intent "${base}" name)"
    nodes="$(of_intent "${base}" nodes)"
    job="$(of_intent "${base}" job)"
    step="$(of_intent "${base}" step)"
    if [[ -e "${base}.asked" ]]; then
        # An earlier start was killed between its request and Slurm's answer, and the request may still be on its way.
        age=$(($(date +%s) - $(stat -c %Y "${base}.asked")))
        if ((age < SETTLE_S)); then sleep $((SETTLE_S - (age < 0 ? 0 : age))); fi
        find_job "${name}" "${base}" || return 1
        if [[ "${REPLY}" =~ ^[0-9]+$ ]]; then
            log "found again: job ${REPLY}"
            whole "${base}.job" "${REPLY}"
            return 0
        fi
    fi
    holds_lock || die "someone else has taken the lock of this folder; this run stops here"
    local -a options=(--parsable "--job-name=${name}" --no-requeue "--output=${PWD}/${base}.slurm-%j.out")
    if [[ -n "${step}" ]]; then
        # Its own file says where it runs; bad nodes may be among those.
        said="$(of_intent "${base}" out)"
        if [[ -n "${said}" ]]; then options+=("--exclude=${said}"); fi
    else
        count="$(count_of "${nodes}")"
        # The job may be one of another partition, so its own VM size is replaced, too; an empty constraint is none.
        options+=("--partition=${RUN[partition]}" "--constraint=${RUN[constraint]}" "--nodes=${count}" "--nodelist=${nodes}"
            "--time=$(of_intent "${base}" minutes)" --wait-all-nodes=1)
    fi
    whole "${base}.asked" asked
    said="$(
        cd -- "${job}"
        if [[ -z "${step}" ]]; then export "SET_NODES=${count}"; fi
        for setting in ${settings}; do export "SET_${setting?}"; done
        timeout --kill-after=5 "${REQUEST_S}" sbatch "${options[@]}" "${step:-job.sbatch}" 2>&1
    )" || said="refused: ${said}"
    # A federated cluster answers `id;cluster`.
    if [[ "${said}" =~ (^|$'\n')([0-9]+)(;[^$'\n']*)?$ && "${said}" != refused:* ]]; then
        whole "${base}.job" "${BASH_REMATCH[2]}"
        return 0
    fi
    # An answer that was lost is no refusal: the job may be there.
    find_job "${name}" "${base}" || return 1
    if [[ "${REPLY}" =~ ^[0-9]+$ ]]; then
        whole "${base}.job" "${REPLY}"
        return 0
    fi
    rm -f "${base}.asked"
    REPLY="sbatch ${said//$'\n'/ }"
    return 1
}

# wait_for BASE: until the job has ended. REPLY: Slurm's last word for it (empty: it has forgotten the job), `lost` when a node
# of a waiting job went down or was drained, `late` when the time of this run was over; both are cancelled.
wait_for() {
    local -r base="$1"
    local id name row job_state reason shown="" waits=0
    job_of "${base}"
    id="${REPLY}"
    name="$(of_intent "${base}" name)"
    if [[ -e "${base}.cancelled" ]]; then
        REPLY="$(<"${base}.cancelled")"
        return
    fi
    while :; do
        row=""
        if job_row "${name}"; then row="${REPLY}"; elif ! time_left; then cancel "${base}" late; return; fi
        IFS='|' read -r _ job_state reason <<<"${row}"
        if [[ -z "${row}" || "${job_state}" =~ ${ENDED} ]]; then
            REPLY="${job_state}"
            return
        fi
        if [[ "${job_state} ${reason}" != "${shown}" && "${reason}" != None && "${job_state}" != COMPLETING ]]; then log "job ${id} ${job_state}: ${reason}"; fi
        shown="${job_state} ${reason}"
        time_left || { cancel "${base}" late; return; }
        # A set-up step waits for no node by its name.
        if [[ "${job_state}" == PENDING && -z "$(of_intent "${base}" step)" ]]; then
            lost_nodes "$(of_intent "${base}" nodes)" || REPLY=""
            # Twice, because a node that has just been started may be down for a moment.
            if [[ -n "${REPLY}" ]]; then waits=$((waits + 1)); else waits=0; fi
            if ((waits > 1)); then
                whole "${base}.lost" "${REPLY}"
                cancel "${base}" lost
                return
            fi
        fi
        pause
    done
}

# cancel BASE WORD
cancel() {
    local id
    job_of "$1"
    id="${REPLY}"
    whole "$1.cancelled" "$2"
    timeout --kill-after=5 "${REQUEST_S}" scancel "${id}" || log "job ${id} could not be cancelled; type: scancel ${id}"
    REPLY="$2"
}

# node_rows [NODES]: `node|state|features|reason` of the nodes, or of the whole partition, in REPLY.
node_rows() {
    local -a which=("--partition=${RUN[partition]}")
    if [[ -n "${1:-}" ]]; then which+=("--nodes=$1"); fi
    ask sinfo --noheader --Node "${which[@]}" '--format=%N|%T|%f|%E' || return 1
    REPLY="$(sort -u -t '|' -k 1,1V <<<"${REPLY}" | grep . || true)"
}

# is_lost STATE: no job starts on such a node. The star: it does not respond; other signs are those of power saving.
# Source: man sinfo, NODE STATE CODES.
is_lost() {
    [[ "$1" == *'*'* || "$1" =~ ^(down|drain|fail|error|unknown|maint|future|inval|blocked|reboot) ]]
}

# lost_nodes NODES: `node<tab>state: reason` of those on which no job starts, in REPLY.
lost_nodes() {
    local node node_state reason text=""
    node_rows "$1" || return 1
    while IFS='|' read -r node node_state _ reason; do
        if [[ -n "${node}" ]] && is_lost "${node_state}"; then text+="${text:+$'\n'}${node}"$'\t'"${node_state}: ${reason}"; fi
    done <<<"${REPLY}"
    REPLY="${text}"
}

# drain NODE REASON: takes a node out for other jobs, too. REPLY: drained, drained by others, or why it may not be drained.
# A person in the group of Slurm's operators may; root may, which sudo without a password makes of administrators.
drain() {
    local -r node="$1" reason="$2"
    local said word
    node_rows "${node}" || { REPLY="Slurm did not answer"; return 1; }
    IFS='|' read -r _ said _ word <<<"${REPLY}"
    if [[ "${said}" == drain* || "${said}" == down* ]]; then
        if [[ "${word}" == "${PREFIX}"* ]]; then REPLY=drained; else REPLY="${said} already: ${word}"; fi
        return 0
    fi
    if [[ "${RUN[drain]}" == no ]]; then
        REPLY="left in Slurm as it is (--no-drain)"
        return 1
    fi
    for word in "" "sudo -n"; do
        # shellcheck disable=SC2086  # two words
        if said="$(timeout --kill-after=5 "${REQUEST_S}" ${word} scontrol update "NodeName=${node}" State=DRAIN "Reason=${reason}" 2>&1)"; then
            REPLY=drained
            return 0
        fi
    done
    REPLY="not drained, this account may not (${said//$'\n'/ }); only this run leaves it out. An administrator types: scontrol update NodeName=${node} State=DRAIN Reason=\"${reason}\""
    return 1
}
