#!/usr/bin/env bash
# Drain and resume this node in Slurm, in a namespace of our own. Sourced by health.sh.
#
# LBNL NHC resumes reasons that start with "NHC:", healthagent those with "Healthcheck failures"; neither matches ours.
# We lift a drain only if standing.sh has a note that we set it and Slurm still shows what we set; anybody else's stays.

readonly PREFIX="CycleForge health:"
readonly REPAIR="sudo bash /opt/cycleforge/slurm_nhc/health.sh repaired"
# What Slurm writes when a hook of a job failed, always as its own user (SchedMD/slurm, drain_nodes in
# src/slurmctld/{agent,job_mgr,node_mgr}.c, 22.05 to 25.11). A person may write the same words, and is somebody else.
readonly HOOK_FAILED='^(Prolog error|Epilog error|Prolog/Epilog failure)$'
readonly EPILOG_FAILED='^(Epilog error|Prolog/Epilog failure)$'
# So much later than the refusal of a hook of ours does Slurm's drain for it come at most.
readonly REFUSED_S=120
# So long after one of ours began the hooks of a job have ended.
readonly HOOK_S=12
# A second failed epilog of somebody within this time is a person's.
readonly RETEST_S=86400

# A prolog has less time than this.
SLURM_LIMIT_S=10
NODE_STATE="" NODE_REASON="" NODE_BY="" NODE_SINCE=""
# read_node: state, reason, whose it is, and its moment (seconds since 1970, empty where scontrol prints another form).
read_node() {
    local output
    local -r reason='(^|[[:space:]])Reason=(.*) \[([^][[:space:]]+)@([^][[:space:]]+)\]'
    NODE_STATE="" NODE_REASON="" NODE_BY="" NODE_SINCE=""
    cf_node_name
    local -rx SLURM_TIME_FORMAT=%s
    output="$(timeout --kill-after=1 "${SLURM_LIMIT_S}" scontrol --oneliner show node "${REPLY}" 2>/dev/null)" || return 1
    if [[ "${output}" =~ (^|[[:space:]])State=([^[:space:]]+) ]]; then NODE_STATE="${BASH_REMATCH[2]}"; fi
    # scontrol adds who set it and when: "text [user@time]". A reason may have brackets of its own.
    if [[ "${output}" =~ ${reason} ]]; then
        NODE_REASON="${BASH_REMATCH[2]}" NODE_BY="${BASH_REMATCH[3]}" NODE_SINCE="${BASH_REMATCH[4]}"
    elif [[ "${output}" =~ (^|[[:space:]])Reason=(.*) ]]; then
        NODE_REASON="${BASH_REMATCH[2]}"
    fi
    if [[ ! "${NODE_SINCE}" =~ ^[1-9][0-9]{0,11}$ ]]; then NODE_SINCE=""; fi
    [[ -n "${NODE_STATE}" ]]
}

update_node() {
    cf_node_name
    timeout --kill-after=1 "${SLURM_LIMIT_S}" scontrol update "NodeName=${REPLY}" "$@"
}

# written_by_slurm REASON: whether the reason of the node has this form and Slurm itself has written it. Where Slurm runs as
# root, its name is an administrator's, too: then a hook of a job must have begun here right before. In doubt the drain is a person's.
SLURM_USER=""
written_by_slurm() {
    local config
    [[ "${NODE_REASON}" =~ $1 ]] || return 1
    if [[ -z "${SLURM_USER}" ]]; then
        config="$(timeout --kill-after=1 "${SLURM_LIMIT_S}" scontrol show config 2>/dev/null)" || return 1
        if [[ ! "${config}" =~ (^|$'\n')SlurmUser[[:space:]]*=[[:space:]]*([^[:space:]\(]+)\(([0-9]+)\) ]]; then return 1; fi
        SLURM_USER="${BASH_REMATCH[2]} ${BASH_REMATCH[3]}"
    fi
    [[ " ${SLURM_USER} " == *" ${NODE_BY:-nobody} "* ]] || return 1
    [[ "${SLURM_USER}" != *" 0" ]] || hook_just_ran
}

# hook_just_ran: whether the reason is of the moments after a hook of ours began.
hook_just_ran() {
    local began
    began="$(stat -c %Y "${LAST_HOOK}" 2>/dev/null)" && [[ -n "${NODE_SINCE}" ]] || return 1
    ((NODE_SINCE >= began - 1 && NODE_SINCE <= began + HOOK_S))
}

# our_hook_failed: whether Slurm's drain is the answer to a hook of ours that refused.
our_hook_failed() {
    local -r refused="${NOTES[refused]:-}"
    [[ -n "${refused}" ]] && written_by_slurm "${HOOK_FAILED}" || return 1
    [[ -z "${NODE_SINCE}" ]] || ((NODE_SINCE >= refused - 5 && NODE_SINCE <= refused + REFUSED_S))
}

# is_our_drain: whether Slurm still shows the drain that we set. A reason may arrive cut, a reboot by scontrol adds words to
# it, and a hook of ours that refused a job makes Slurm write words of its own.
is_our_drain() {
    local -r set="${NOTES[drain_reason]:-}" have="${NODE_REASON%" : reboot "*}"
    [[ "${NODE_STATE}" == *DRAIN* ]] || return 1
    if our_hook_failed; then return 0; fi
    [[ "${NOTES[drain]}" == ours && -n "${have}" ]] || return 1
    # A drain of Slurm's that we test, and a person meanwhile has set in the same words.
    if [[ "${NODE_REASON}" =~ ${HOOK_FAILED} ]] && ! written_by_slurm "${HOOK_FAILED}"; then return 1; fi
    [[ "${set}" == "${have}" || ("${have}" == "${PREFIX}"* && "${set}" == "${have}"*) ]]
}

# is_worse CURE CURE: whether the first needs more than the second.
is_worse() {
    local cure
    for cure in "${CURES[@]}"; do
        if [[ "${cure}" == "$2" ]]; then return 1; fi
        if [[ "${cure}" == "$1" ]]; then return 0; fi
    done
    return 1
}

# note_drain: what Slurm shows now, for the note; a drain that is gone or another one is none of ours.
note_drain() {
    local now
    if is_our_drain; then return 0; fi
    forget_drain
    if [[ "${NODE_STATE}" == *DRAIN* ]]; then NOTES[drain]=theirs; fi
    printf -v now '%(%s)T' -1
    if ((now - ${NOTES[refused]:-0} > REFUSED_S)); then NOTES[refused]=""; fi
}

# keep_out: drain the node for what stands against it; 1 when Slurm could not be told. Our own reason is replaced when
# something worse has joined.
keep_out() {
    local reason is_new=false
    describe_standing
    reason="${PREFIX} ${REPLY}"
    if ! command -v scontrol >/dev/null || ! read_node; then
        cf_log "cannot ask Slurm about this node; not drained: ${reason}" >&2
        return 1
    fi
    note_drain
    if is_our_drain; then
        if [[ -n "${NOTES[drain_cure]:-}" ]] && ! is_worse "${STANDING_CURE}" "${NOTES[drain_cure]:-}"; then
            cf_log "drained already: ${NODE_REASON}"
            return 0
        fi
    elif [[ "${NODE_STATE}" == *@(DRAIN|DOWN|FAIL)* ]]; then
        cf_log "the node is ${NODE_STATE} already (${NODE_REASON:-no reason}), the reason stays; when that is lifted," \
            "jobs are still refused: ${reason}"
        return 0
    else
        is_new=true
        if strike_out; then
            describe_standing
            reason="${PREFIX} ${REPLY}"
        fi
    fi
    update_node State=DRAIN "Reason=${reason}" || return 1
    note_own_drain "${reason}" "${STANDING_CURE}"
    if [[ "${is_new}" == true ]]; then count_strike; fi
    NOTES[refused]=""
    cf_log "drained: ${reason}"
}

# adopt_drain: two drains that nobody else lifts are tested and lifted like our own: one that we set on the VM that had this
# name before, and one that Slurm set because an epilog failed. The second at most once a day: an epilog that fails
# again has seen what our checks do not see.
adopt_drain() {
    local since now cause
    local -r retested="${NOTES[retested]}" deep_s="${CF_CONF[deep_s]}" idle_h="${CF_CONF[idle_deep_h]:-0}"
    if [[ "${NODE_STATE}" != *DRAIN* ]] || is_our_drain; then return 0; fi
    vm_since
    since="${REPLY}"
    if [[ "${NODE_REASON}" == "${PREFIX}"* && -n "${NODE_SINCE}" ]] && ((NODE_SINCE < since)); then
        cause="drained before this VM was made"
    elif written_by_slurm "${EPILOG_FAILED}"; then
        printf -v now '%(%s)T' -1
        if ((now - retested < RETEST_S)); then
            cf_log "${NODE_REASON}, and another within a day before it: not resumed; type scontrol update State=RESUME when it is clear why"
            return 0
        fi
        cause="a job's epilog failed" NOTES[retested]="${now}"
        if ((deep_s > 0 && idle_h > 0)); then stand_against deep heal "${cause}, not tested since"; fi
    else
        return 0
    fi
    stand_against quick heal "${cause}, tested again"
    note_own_drain "${NODE_REASON}" heal
    cf_log "${cause}: tested again, and resumed when the checks pass; the reason is: ${NODE_REASON}"
}

# healthagent_is_content: its own count of errors, where it is installed. A node that an epilog of healthagent drained is
# not resumed against its word; a daemon that is silent says nothing.
healthagent_is_content() {
    local output
    if ! command -v health >/dev/null; then return 0; fi
    output="$(timeout --kill-after=1 5 health -b 2>/dev/null)" || return 0
    ! grep -q -E '^(gpu|network),[1-9]' <<<"${output}"
}

# let_in: resume the node when nothing stands against it any more and the drain is ours.
let_in() {
    if ! is_our_drain; then return 0; fi
    if [[ "${CF_CONF[resume]}" != true ]]; then
        cf_log "healthy again; the definition leaves it to a person to resume it"
        return 0
    fi
    if ! healthagent_is_content; then
        cf_log "healthy again, but healthagent counts errors; not resumed"
        return 0
    fi
    if ! update_node State=RESUME; then
        cf_log "healthy again, but Slurm did not take that; the next run says it again"
        return 0
    fi
    cf_log "resumed; it was drained for: ${NODE_REASON}"
    forget_drain
    NOTES[refused]=""
}

# act_on_standing: tell Slurm after a run. 1 when the node ought to be drained and is not. A run that is incomplete changes
# nothing in Slurm, unless something stands that no quick run lifts; nor does one that the guard holds.
act_on_standing() {
    if [[ "${IS_HELD}" == true ]] && { ((${#FOUND[@]} == 0)) || stands_only_to_heal; }; then return 0; fi
    if ((${#FAILED[@]} > 0)) || [[ "${RUN_VERDICT}" == incomplete && -n "${RUN_CURE}" ]]; then
        keep_out
        return
    fi
    if ((${#FOUND[@]} > 0)) && ! stands_only_to_heal; then
        describe_standing
        cf_log "nothing new, but this stands until it is lifted: ${REPLY}; after repair type on this node: ${REPAIR}"
        keep_out
        return
    fi
    if [[ "${RUN_VERDICT}" == incomplete ]] || ! command -v scontrol >/dev/null; then return 0; fi
    if ! read_node; then
        if [[ "${NOTES[drain]}" == ours ]]; then
            cf_log "cannot ask Slurm about this node; its drain stays, and the next run asks again" >&2
        fi
        return 0
    fi
    note_drain
    adopt_drain
    if ((${#FOUND[@]} == 0)); then
        let_in
    elif is_our_drain; then
        cf_log "healthy again, ${NOTES[passes]} of ${PASSES_TO_RESUME} runs before it is resumed"
    fi
}

# resume_after_repair: a person says that the node is good again.
resume_after_repair() {
    if ! read_node && ! read_node; then
        cf_die "Slurm does not answer, so the node is not resumed" "nothing stands against it any more" \
            "type this again, or scontrol update NodeName=${REPLY} State=RESUME"
    fi
    if [[ "${NODE_STATE}" != *DRAIN* ]] || { [[ "${NODE_REASON}" != "${PREFIX}"* ]] && ! is_our_drain; }; then
        cf_log "the node is ${NODE_STATE} (${NODE_REASON:-no reason}), not drained by the health checks; left as it is"
        return 0
    fi
    local -r reason="${NODE_REASON}"
    if ! update_node State=RESUME && { ! read_node || [[ "${NODE_STATE}" == *DRAIN* ]]; }; then
        cf_die "Slurm refused to resume the node, or did not answer; it is ${NODE_STATE:-unknown}" "nothing stands against it any more" \
            "type this again, or scontrol update NodeName=${REPLY} State=RESUME"
    fi
    cf_log "resumed; it was drained for: ${reason}"
}
