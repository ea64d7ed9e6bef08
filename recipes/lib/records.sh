# shellcheck shell=bash
# The record of a run: `run.json` in its results folder, and a copy in the folder of all runs. Sourced by common.sh.
# docs/records.md describes the form. The file exists from the start of the run on, as an error that has not ended, so
# that nothing that ends a job, be it SIGKILL or the loss of its node, leaves a run without a verdict.

readonly RECORD_FORM=1
# A name or a value that may hold a secret is left out of the record.
readonly SECRET_NAME='TOKEN|SECRET|PASSW|CREDENTIAL|(^|_)(KEY|SAS|PAT)(_|$)' SECRET_VALUE='[?&]sig=|://[^/@ ]*:[^/@ ]*@|AccountKey='
# Variables beside those of nccl.env that change what a run measures.
readonly RECORDED_PREFIX='^(NCCL|RCCL|UCX|SHARP|OMPI_MCA|PMIX_MCA|HSA|CUDA|HIP|ROCR)_|^(LD_LIBRARY_PATH|OMP_NUM_THREADS)$'

# record FILE CHECK VERDICT VALUE EXPECTED UNIT DETAIL [SOURCE [NODES]]: one line of results, tab separated. SOURCE says
# where EXPECTED is from, NODES (comma separated) whose figure it is.
record() {
    local -r file="$1"
    shift
    append_line "${file}" "$@"
}

# series NAME UNIT X_UNIT NODES X Y: one point of a curve of this run.
series() {
    append_line "${results:?}/series.tsv" "$@"
}

# version NAME VALUE: what the run used.
version() {
    append_line "${results:?}/versions.tsv" "$@"
}

# append_line FILE FIELD...: fields on one line, separated by tabs.
append_line() {
    local -r file="$1"
    shift
    local field line=""
    for field in "$@"; do
        field="${field//$'\t'/ }"
        line+="${field//$'\n'/ }"$'\t'
    done
    printf '%s\n' "${line%$'\t'}" >>"${file}"
}

# node_facts: what a node says of itself, as lines `NAME <tab> VALUE`. Runs on the node, and starts next to nothing.
# The physical host is in the pool that Hyper-V fills: records of 512 + 2048 bytes, padded with zeros.
node_facts() {
    local -r root="${CF_ROOT:-}"
    local -r pool="${root}/var/lib/hyperv/.kvp_pool_3"
    local value name file
    value=""
    if [[ -r "${pool}" ]]; then
        value="$(tr -s '\0' '\n' <"${pool}" | grep -a -x -A 1 PhysicalHostNameFullyQualified | tail -n 1)" || value=""
    fi
    if [[ "${value}" =~ ^[A-Za-z0-9._-]+$ ]]; then printf 'physical_host\t%s\n' "${value}"; fi
    for name in nvidia amdgpu mlx5_core; do
        file="${root}/sys/module/${name}/version"
        if [[ -r "${file}" ]] && read -r value <"${file}"; then printf '%s\t%s\n' "${name}" "${value}"; fi
    done
    if read -r value <"${root}/proc/sys/kernel/osrelease"; then printf 'kernel\t%s\n' "${value}"; fi
    if [[ -r "${root}/etc/os-release" ]]; then
        value="$(sed -nE 's/^PRETTY_NAME="?([^"]*)"?$/\1/p' "${root}/etc/os-release")"
        printf 'os\t%s\n' "${value}"
    fi
}

# keep_node_facts: the facts of this node, beside the run's results. For a task that runs once on every node.
keep_node_facts() {
    node_facts >"${results:?}/${SLURMD_NODENAME:?}.facts" 2>/dev/null || true
}

# describe_nodes: the facts of all nodes, for jobs that have no task of their own on every node. A node that does not
# answer is without facts; whether it is sick is for the checks to say.
describe_nodes() {
    # shellcheck disable=SC2016  # expanded on each node
    bounded 120 srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task=1 --cpu-bind=none --kill-on-bad-exit=0 \
        bash -c '. ./library.sh; keep_node_facts' || log "not every node described itself"
}

# remove_at_end PATH: what this run made for itself outside its results folder goes, whatever ends the script.
removed_at_end=()
remove_at_end() {
    removed_at_end+=("$1")
}

# begin_record: from now on the run has a record.
begin_record() {
    printf -v run_started '%(%s)T' -1
    run_verdict="" run_problem="" slurm_version=""
    run_summary="the run did not come to its end"
    write_record error "" || die "${results}/run.json cannot be written"
    trap end_record EXIT
    trap 'ended_by SIGTERM 143' TERM
    trap 'ended_by SIGINT 130' INT
    trap 'ended_by SIGHUP 129' HUP
}

# ended_by SIGNAL STATUS: the time limit, scancel, preemption or a person at a terminal.
ended_by() {
    run_summary="ended by ${1} before its verdict: the time limit, scancel or preemption"
    exit "$2"
}

# end_record: runs whatever ends the script. Only `finish` sets run_verdict.
end_record() {
    local -r status=$?
    trap - EXIT
    trap '' TERM INT HUP
    if ((${#removed_at_end[@]})); then rm -rf -- "${removed_at_end[@]}" || log "WARNING: not removed: ${removed_at_end[*]}"; fi
    if [[ -z "${run_verdict:-}" ]] && ((status != 143 && status != 130 && status != 129)); then
        run_summary="${run_problem:-the script ended with exit status ${status} before its verdict}"
    fi
    write_record "${run_verdict:-error}" ended || log "WARNING: ${results}/run.json could not be written; it says error, or what it said before"
    share_record || log "WARNING: the record could not be copied to ${RUNS_DIR}; it is in ${results}"
    exit "${status}"
}

# share_record: a copy where the runs of all jobs are, whole or not at all.
share_record() {
    if [[ -z "${RUNS_DIR:-}" ]]; then return 0; fi
    local -r folder="${RUNS_DIR}/${JOB:-${PWD##*/}}-${results##*/}"
    { [[ -d "${folder}" ]] || mkdir -p "${folder}" 2>/dev/null; } && cp "${results}/run.json" "${folder}/run.json.partial" 2>/dev/null && mv "${folder}/run.json.partial" "${folder}/run.json"
}

# write_record VERDICT ENDED: the whole record, or the one before it.
write_record() {
    local -r file="${results:?}/run.json"
    local now
    printf -v now '%(%s)T' -1
    if [[ -z "${slurm_version:-}" ]]; then
        slurm_version="$(scontrol --version 2>/dev/null)" || slurm_version=""
        slurm_version="${slurm_version%%$'\n'*}"
    fi
    {
        # One stream of tagged lines, so that one awk writes all of it.
        record_values "$1" "${2:+${now}}"
        record_nodes
        tagged check "${results}/checks.tsv"
        tagged version "${results}/versions.tsv"
        tagged series "${results}/series.tsv"
    } | as_ascii | as_record >"${file}.partial" && mv "${file}.partial" "${file}"
}

# as_ascii: a tool may print bytes that are not UTF-8, and JSON has nothing else.
as_ascii() {
    tr '\200-\377' '?'
}

# tagged KIND FILE: the file's lines, each with its kind in front.
tagged() {
    local -a lines
    if [[ ! -s "$2" ]]; then return 0; fi
    mapfile -t lines <"$2"
    printf "$1"'\t%s\n' "${lines[@]}"
}

# record_values VERDICT END: what the record says of the run itself.
record_values() {
    local name names=" "
    printf 'run\tformat\t%s\n' "${RECORD_FORM}"
    printf 'run\tjob\t%s\n' "${JOB:-${PWD##*/}}"
    printf 'run\trecipe\t%s\n' "${RECIPE:-}"
    printf 'run\trun\t%s\n' "${results##*/}"
    TZ=UTC printf 'run\tstarted\t%(%FT%TZ)T\n' "${run_started}"
    if [[ -n "$2" ]]; then TZ=UTC printf 'run\tended\t%(%FT%TZ)T\n' "$2"; fi
    printf 'run\tcluster\t%s\n' "${SLURM_CLUSTER_NAME:-}"
    printf 'run\tpartition\t%s\n' "${SLURM_JOB_PARTITION:-${PARTITION:-}}"
    printf 'run\tvm_size\t%s\n' "${VM_SIZE:-}"
    printf 'run\tverdict\t%s\n' "$1"
    printf 'run\tsummary\t%s\n' "${run_summary//[$'\t\n']/ }"
    while read -r name; do
        record_variable setting "${name}"
        names+="${name} "
    done < <(setting_names)
    # Settings are exported too, and some begin like a variable of NCCL.
    while read -r name; do
        if [[ "${name}" =~ ${RECORDED_PREFIX} && "${names}" != *" ${name} "* ]]; then record_variable environment "${name}"; fi
    done < <(compgen -e)
    if [[ -n "${slurm_version}" ]]; then printf 'version\tslurm\t%s\n' "${slurm_version##* }"; fi
}

# setting_names: the names in settings.env.
setting_names() {
    sed -nE 's/^([A-Za-z_][A-Za-z0-9_]*)=.*/\1/p' settings.env
}

# record_variable KIND NAME: its value, unless it may be a secret.
record_variable() {
    local value="${!2:-}"
    if [[ "${2^^}" =~ ${SECRET_NAME} || "${value}" =~ ${SECRET_VALUE} ]]; then value="(not recorded)"; fi
    printf '%s\t%s\t%s\n' "$1" "$2" "${value//[$'\t\n']/ }"
}

# record_nodes: the nodes of the job with their facts.
record_nodes() {
    local node
    while read -r node; do
        printf 'node\t%s\n' "${node}"
        tagged "fact\t${node}" "${results}/${node}.facts"
    done < <(requested_nodes)
}

# as_record: tagged lines as JSON. A number is one only where JSON has that form.
as_record() {
    awk -F '\t' '
        function quoted(text) {
            gsub(/["\\]/, "\\\\&", text)
            gsub(/[\001-\037\177]/, " ", text)
            return "\"" text "\""
        }
        function figure(text) {
            if (text == "") return "null"
            if (text ~ /^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9][0-9]?)?$/ && length(text) <= 24) return text
            return quoted(text)
        }
        function names(text,    part, count, i, list) {
            count = split(text, part, ",")
            for (i = 1; i <= count; i++) list = list (i > 1 ? ", " : "") quoted(part[i])
            return "[" list "]"
        }
        function member(all, name, value) { return all (all == "" ? "" : ", ") quoted(name) ": " value }
        $1 == "run" { run[$2] = $3 }
        $1 == "setting" { settings = member(settings, $2, quoted($3)) }
        $1 == "environment" { environment = member(environment, $2, quoted($3)) }
        $1 == "version" { version[$2] = $3; if (!($2 in versioned)) { versioned[$2] = 1; version_name[++versions] = $2 } }
        $1 == "node" { node_name[++nodes] = $2 }
        $1 == "fact" { if ($3 == "physical_host") host[$2] = $4; else facts[$2] = member(facts[$2], $3, quoted($4)) }
        $1 == "check" {
            checks = checks (checks == "" ? "" : ",") "\n    {\"check\": " quoted($2) ", \"verdict\": " quoted($3) ", \"value\": " figure($4) \
                ", \"expected\": " figure($5) ", \"unit\": " quoted($6) ", \"detail\": " quoted($7) ", \"source\": " quoted($8) ", \"nodes\": " names($9) "}"
        }
        $1 == "series" {
            key = $2 SUBSEP $3 SUBSEP $4 SUBSEP $5
            if (!(key in head)) { curve[++curves] = key; head[key] = "{\"name\": " quoted($2) ", \"unit\": " quoted($3) ", \"x_unit\": " quoted($4) ", \"nodes\": " names($5) }
            # A point that is not two numbers is no point; a check has to say that a figure is missing.
            if (figure($6) !~ /^[-0-9]/ || figure($7) !~ /^[-0-9]/) next
            points[key] = points[key] (points[key] == "" ? "" : ", ") "[" $6 ", " $7 "]"
        }
        END {
            printf "{\n  \"format\": %s, \"job\": %s, \"recipe\": %s, \"run\": %s,\n", run["format"], quoted(run["job"]), quoted(run["recipe"]), quoted(run["run"])
            printf "  \"started\": %s, \"ended\": %s,\n", quoted(run["started"]), ("ended" in run ? quoted(run["ended"]) : "null")
            printf "  \"cluster\": %s, \"partition\": %s, \"vm_size\": %s,\n", quoted(run["cluster"]), quoted(run["partition"]), quoted(run["vm_size"])
            printf "  \"verdict\": %s, \"summary\": %s,\n  \"nodes\": [", quoted(run["verdict"]), quoted(run["summary"])
            for (i = 1; i <= nodes; i++)
                printf "%s\n    {\"name\": %s, \"physical_host\": %s, \"facts\": {%s}}", (i > 1 ? "," : ""), quoted(node_name[i]), quoted(host[node_name[i]]), facts[node_name[i]]
            printf "\n  ],\n  \"versions\": {"
            for (i = 1; i <= versions; i++) printf "%s%s: %s", (i > 1 ? ", " : ""), quoted(version_name[i]), quoted(version[version_name[i]])
            printf "},\n  \"settings\": {%s},\n  \"environment\": {%s},\n", settings, environment
            printf "  \"checks\": [%s%s],\n  \"series\": [", checks, (checks == "" ? "" : "\n  ")
            for (i = 1; i <= curves; i++) printf "%s\n    %s, \"points\": [%s]}", (i > 1 ? "," : ""), head[curve[i]], points[curve[i]]
            printf "%s]\n}\n", (curves ? "\n  " : "")
        }'
}
