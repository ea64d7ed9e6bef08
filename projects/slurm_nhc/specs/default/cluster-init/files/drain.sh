#!/usr/bin/env bash
# Drain and resume this node in Slurm, in a namespace of our own. Sourced by health.sh.
#
# LBNL NHC resumes reasons that start with "NHC:", healthagent those with "Healthcheck failures"; neither matches ours,
# and we touch no drain but our own.

readonly PREFIX="CycleForge health:"
# Passing again proves nothing for these: the event is over, the cause is not. A person looks and resumes.
readonly STICKY='gpu_xid|gpu_remap|deep_checks'
readonly PASSES_TO_RESUME=2

# A prolog has less time than this.
SLURM_LIMIT_S=10
NODE_STATE="" NODE_REASON=""
read_node() {
    local output
    NODE_STATE="" NODE_REASON=""
    cf_node_name
    output="$(timeout --kill-after=1 "${SLURM_LIMIT_S}" scontrol --oneliner show node "${REPLY}" 2>/dev/null)" || return 1
    if [[ "${output}" =~ (^|[[:space:]])State=([^[:space:]]+) ]]; then NODE_STATE="${BASH_REMATCH[2]}"; fi
    if [[ "${output}" =~ (^|[[:space:]])Reason=(.*) ]]; then
        NODE_REASON="${BASH_REMATCH[2]}"
        # scontrol adds who set it and when: "text [user@time]".
        NODE_REASON="${NODE_REASON%% \[*@*\]*}"
    fi
    [[ -n "${NODE_STATE}" ]]
}

update_node() {
    cf_node_name
    timeout --kill-after=1 "${SLURM_LIMIT_S}" scontrol update "NodeName=${REPLY}" "$@"
}

# drain_node TEXT: 1 when Slurm could not be told. A reason of our own is replaced when the new one must not be resumed and
# the old one could be.
drain_node() {
    local -r reason="${PREFIX} $1"
    if ! command -v scontrol >/dev/null || ! read_node; then
        cf_log "cannot ask Slurm about this node; not drained: ${reason}" >&2
        return 1
    fi
    if [[ "${NODE_REASON}" == "${PREFIX}"* && "${reason}" =~ ${STICKY} && ! "${NODE_REASON}" =~ ${STICKY} ]]; then
        update_node State=DRAIN "Reason=${reason}" || return 1
        cf_log "drained already, now for more: ${reason}"
        return 0
    fi
    if [[ "${NODE_STATE}" == *@(DRAIN|DOWN|FAIL)* ]]; then
        cf_log "the node is ${NODE_STATE} already (${NODE_REASON:-no reason}), the reason stays"
        return 0
    fi
    update_node State=DRAIN "Reason=${reason}" || return 1
    cf_log "drained: ${reason}"
}

resume_node() {
    local -r file="${CF_STATE_DIR}/health/passes"
    local passes
    if ! command -v scontrol >/dev/null || ! read_node; then return 0; fi
    if [[ "${NODE_STATE}" != *DRAIN* || "${NODE_REASON}" != "${PREFIX}"* ]]; then
        cf_write "${file}" 0644 <<<0
        return 0
    fi
    if [[ "${NODE_REASON}" =~ ${STICKY} ]]; then
        cf_log "healthy now, but drained for a fault that does not heal by itself; after repair type on this node:" \
            "sudo bash /opt/cycleforge/slurm_nhc/health.sh repaired"
        return 0
    fi
    passes="$(cat "${file}" 2>/dev/null || true)"
    if [[ ! "${passes}" =~ ^[0-9]+$ ]]; then passes=0; fi
    passes=$((passes + 1))
    cf_write "${file}" 0644 <<<"${passes}"
    if ((passes < PASSES_TO_RESUME)); then
        cf_log "healthy again, ${passes} of ${PASSES_TO_RESUME} runs before it is resumed"
        return 0
    fi
    update_node State=RESUME || return 0
    cf_log "resumed after ${passes} healthy runs; it was drained for: ${NODE_REASON}"
    cf_write "${file}" 0644 <<<0
}

# resume_after_repair: a person says that the node is good again.
resume_after_repair() {
    if ! read_node; then
        cf_die "Slurm does not answer" "scontrol show node failed" "try again, or type: scontrol update NodeName=${REPLY} State=RESUME"
    fi
    if [[ "${NODE_STATE}" != *DRAIN* || "${NODE_REASON}" != "${PREFIX}"* ]]; then
        cf_log "the node is ${NODE_STATE} (${NODE_REASON:-no reason}), not drained by the health checks; left as it is"
        return 0
    fi
    update_node State=RESUME || cf_die "scontrol update failed"
    cf_log "resumed; it was drained for: ${NODE_REASON}"
}

# act_on_results VERDICT REASON UNMEASURED: a result that is incomplete neither drains (unless the definition says so) nor
# resumes. 3 when the node ought to be drained and is not.
act_on_results() {
    local -r verdict="$1" reason="$2" unmeasured="$3"
    if guard_holds; then return 0; fi
    case "${verdict}" in
        fail) drain_node "${reason}" || return 3 ;;
        incomplete)
            if [[ "${CF_CONF[unmeasured]}" == drain ]] && ((unmeasured > 0)); then
                drain_node "${unmeasured} checks could not be measured" || return 3
            fi
            ;;
        *) if [[ "${CF_CONF[resume]}" == true ]]; then resume_node; fi ;;
    esac
}
