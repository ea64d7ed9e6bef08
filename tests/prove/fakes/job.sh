# shellcheck shell=bash
# For the texts of jobs: what a job leaves. run.json has the keys of docs/records.md.

# run_json VERDICT SUMMARY [CHECKS]: a whole record over all nodes of the job. ENDED is the value of `ended`.
run_json() {
    local folder="results/${SLURM_JOB_ID}" node text=""
    mkdir -p "${folder}"
    for node in ${SLURM_JOB_NODELIST//,/ }; do text+="${text:+, }{\"name\": \"${node}\", \"physical_host\": \"host-of-${node}\", \"facts\": {}}"; done
    printf '{"format": 1, "job": "%s", "recipe": "r", "run": "%s", "started": "2026-11-23T06:00:00Z", "ended": %s,\n"nodes": [%s],\n"checks": [%s],\n"series": [],\n"verdict": "%s", "summary": "%s"}\n' \
        "${PWD##*/}" "${SLURM_JOB_ID}" "${ENDED:-\"2026-11-23T06:06:00Z\"}" "${NODES_JSON-${text}}" "${3-$(check something pass)}" "$1" "$2" >"${folder}/run.json"
}

# check NAME VERDICT [NODES...]: one entry of `checks`.
check() {
    local name="$1" verdict="$2" node text=""
    shift 2
    for node in "$@"; do text+="${text:+, }\"${node}\""; done
    printf '{"check": "%s", "verdict": "%s", "value": 7, "expected": 8, "unit": "GPUs", "detail": "", "source": "", "nodes": [%s]}' "${name}" "${verdict}" "${text}"
}

# has NODE: whether the job runs there.
has() { [[ ",${SLURM_JOB_NODELIST}," == *",$1,"* ]]; }

# passes, and blames NODE: the two ends that most jobs have. A job whose verdict is fail ends as FAILED.
passes() { run_json pass "all well"; }
blames() {
    if has "$1"; then
        run_json fail "1 node is bad" "$(check gpu_count fail "$1")"
        state=FAILED
    else
        passes
    fi
}
