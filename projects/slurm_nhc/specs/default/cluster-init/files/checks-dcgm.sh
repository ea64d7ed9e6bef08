#!/usr/bin/env bash
# NVIDIA's diagnostics. Sourced by checks.sh; never beside a job.
#
# The answer is JSON in both forms: DCGM 4 names entities, DCGM 3 GPUs. It is read key by key, without another program.
# Source: NVIDIA/DCGM, dcgmi/Diag.cpp, and `dcgmi diag` in the manual of DCGM

# Least seconds that a level takes on eight GPUs. Source: the manual, "about 2 minutes", "about 15 minutes", hours.
readonly DIAGNOSTIC_NEEDS_S=(0 5 150 1200 5400)

# What read_diagnosis found: names of tests by what became of them, what was said of failures and warnings, the heaviest
# cure, the first error of the launch.
declare -a DCGM_PASSED=() DCGM_SKIPPED=() DCGM_FAILED=()
DCGM_WORDS="" DCGM_WARNED="" DCGM_CURE="" DCGM_ERROR=""

# cure_of SEVERITY: what a finding of DCGM needs, in REPLY: 1 monitor, 2 isolate, 4 triage, 5 configuration, 6 reset; DCGM 3
# names none. Source: NVIDIA/DCGM, dcgmlib/dcgm_errors.h
cure_of() {
    case "$1" in
        1) REPLY=warn ;;
        2) REPLY=service ;;
        5) REPLY=fail ;;
        6) REPLY=reset ;;
        *) REPLY=reboot ;;
    esac
}

# heavier A B: the worse of two cures, in REPLY.
heavier() {
    local word
    for word in service reboot reset fail warn; do
        if [[ "$1" == "${word}" || "$2" == "${word}" ]]; then
            REPLY="${word}"
            return
        fi
    done
    REPLY="$1"
}

# end_of_test NAME STATUSES SUMMARY: sort a test in. The summary of DCGM 4 decides; DCGM 3 has only its results. A test that
# was skipped has not passed.
end_of_test() {
    local -r name="$1" all=" ${2,,} ${3,,} " decisive=" ${3:-$2} "
    if [[ -z "${name}" || -z "$2$3" ]]; then return; fi
    if [[ "${all}" == *" fail "* ]]; then
        DCGM_FAILED+=("${name}")
    elif [[ "${decisive,,}" == *" pass "* || "${decisive,,}" == *" warn "* ]]; then
        DCGM_PASSED+=("${name}")
    else
        DCGM_SKIPPED+=("${name}")
    fi
}

# read_diagnosis: of the JSON in OUTPUT. Within a test name, results and summary follow each other, because its writer sorts
# the keys; in a result the entity and the status come before its warnings.
read_diagnosis() {
    local token key value name="" statuses="" summary="" in_summary=no status="" entity=""
    local -r word='"([a-zA-Z_]+)"[[:space:]]*:[[:space:]]*("(([^"\\]|\\.)*)"|-?[0-9]+|\{|\[)'
    DCGM_PASSED=() DCGM_SKIPPED=() DCGM_FAILED=() DCGM_WORDS="" DCGM_WARNED="" DCGM_CURE="" DCGM_ERROR=""
    while IFS= read -r token; do
        [[ "${token}" =~ ${word} ]] || continue
        key="${BASH_REMATCH[1]}" value="${BASH_REMATCH[3]:-${BASH_REMATCH[2]//\"/}}"
        case "${key}" in
            runtime_error) DCGM_ERROR="${value}" ;;
            name)
                end_of_test "${name}" "${statuses}" "${summary}"
                name="${value}" statuses="" summary="" in_summary=no status="" entity=""
                ;;
            test_summary) in_summary=yes ;;
            entity_id | gpu_id | gpu_ids) entity="GPU ${value}" ;;
            status)
                status="${value,,}"
                if [[ "${in_summary}" == yes ]]; then summary="${value}"; else statuses+=" ${value}"; fi
                ;;
            error_severity)
                if [[ "${status}" == fail && "${in_summary}" == no ]]; then
                    cure_of "${value}"
                    heavier "${DCGM_CURE}" "${REPLY}"
                    DCGM_CURE="${REPLY}"
                fi
                ;;
            warning | warnings)
                if [[ "${value}" == [\[\{] || "${in_summary}" == yes ]]; then continue; fi
                value="${name}: ${entity:+${entity}: }${value}"
                if [[ "${status}" == fail ]]; then DCGM_WORDS="${DCGM_WORDS:-${value}}"; else DCGM_WARNED="${DCGM_WARNED:-${value}}"; fi
                ;;
        esac
    done < <(grep -o -E "${word}" <<<"${OUTPUT}" || true)
    end_of_test "${name}" "${statuses}" "${summary}"
    DCGM_WORDS="${DCGM_WORDS:-${DCGM_FAILED[*]}}"
}

# diagnose CHECK WHAT SECONDS: run `dcgmi diag -r WHAT` and record it.
diagnose() {
    local -r check="$1" what="$2" limit_s="$3"
    # A failed test is no failure of the tool, so a result of any kind ends the repetition.
    run_for_result dcgmi "${limit_s}" '"status"' dcgmi diag -r "${what}" -j || true
    local -r words="${REPLY}"
    read_diagnosis
    if ((${#DCGM_FAILED[@]} > 0)); then
        # All that DCGM only wants watched is a warning.
        record "${DCGM_CURE:-reboot}" "${check}" "" "" "" "" "dcgmi: ${DCGM_WORDS}"
    elif [[ -n "${DCGM_ERROR}" && "${OUTCOME}" != failed ]]; then
        not_measured "${check}" "dcgmi: ${DCGM_ERROR}"
    elif [[ "${OUTCOME}" != ran ]]; then
        REPLY="${words}"
        record_outcome "${check}"
    elif ((${#DCGM_SKIPPED[@]} > 0 || ${#DCGM_PASSED[@]} == 0)); then
        not_measured "${check}" "dcgmi skipped: ${DCGM_SKIPPED[*]:-everything}; passed: ${DCGM_PASSED[*]:-nothing}"
    elif [[ -n "${DCGM_WARNED}" ]]; then
        record warn "${check}" "" "" "" "" "dcgmi: ${DCGM_WARNED}"
    else
        record pass "${check}" "" "" "" "" "${what}: ${#DCGM_PASSED[@]} tests"
    fi
}

# level=N: only a level for which the run has the time: a diagnosis that is cut off says nothing.
check_gpu_diagnostic() {
    local -r level="${GIVEN[level]:-1}"
    local needs_s="${DIAGNOSTIC_NEEDS_S[level]:-0}" limit_s=36000
    # Three minutes are the limit of the images' own wrapper. Source: Azure/azhpc-images
    if ((level == 1)); then limit_s=180; fi
    if ! seconds_left 36000 || ((REPLY < needs_s)); then
        not_measured gpu_diagnostic "level ${level} takes ${needs_s} s, the run has ${CYCLEFORGE_BUDGET_S} s: a larger cycleforge.health.deep_s"
        return
    fi
    diagnose gpu_diagnostic "${level}" "${limit_s}"
}
