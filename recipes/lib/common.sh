# shellcheck shell=bash
# Sourced by every recipe: settings, results and verdicts.
# A verdict is pass, warn, fail, no_baseline or error; the exit status of a job is its verdict.
# shellcheck source=recipes/lib/environment.sh
. "${JOBS_LIB}/environment.sh"
# shellcheck source=recipes/lib/records.sh
. "${JOBS_LIB}/records.sh"
# shellcheck source=recipes/lib/verdicts.sh
. "${JOBS_LIB}/verdicts.sh"
# shellcheck source=recipes/lib/untagged.sh
. "${JOBS_LIB}/untagged.sh"

die() {
    log "ERROR: $*" >&2
    run_problem="$*"
    exit 2
}

# require NAME...: each named setting must have a value.
require() {
    local name
    for name in "$@"; do
        [[ -n "${!name:-}" ]] || die "setting ${name} is empty; set it in settings.env"
    done
}

# require_commands NAME...
require_commands() {
    local name
    for name in "$@"; do
        command -v "${name}" >/dev/null || die "command ${name} is missing on $(hostname -s)"
    done
}

# bounded SECONDS COMMAND...: ends the command after that time, and early enough before the end of the job for a verdict: a node
# that hangs is named then, and where the limit of the job ends it nobody is. srun itself waits for a task that cannot be killed.
# What was ended because the job ends says nothing of a node: was_cut_off.
readonly BEFORE_END_S=90 LEAST_STEP_S=30
bounded() {
    local -r limit="$1" began="${SECONDS}"
    local seconds="$1" status=0
    shift
    if ends_within $((limit + BEFORE_END_S)); then
        seconds=$((seconds_left > BEFORE_END_S ? seconds_left - BEFORE_END_S : 1))
    fi
    timeout --kill-after=15 "${seconds}" "$@" || status=$?
    # A task may end with these numbers by itself.
    if ((status == 124 || status == 137)) && ((SECONDS - began >= seconds - 1)); then
        if ((seconds < limit)); then
            cut_off "${seconds}" "${limit}"
            log "${1##*/} was ended after ${seconds} of ${limit} s, because the job ends" >&2
        else
            log "${1##*/} was ended after ${limit} s" >&2
        fi
    fi
    return "${status}"
}

# ends_within SECONDS: whether the job does; sets seconds_left where Slurm has said when it ends.
ends_within() {
    local now
    [[ "${SLURM_JOB_END_TIME:-}" =~ ^[1-9][0-9]{0,11}$ ]] || return 1
    printf -v now '%(%s)T' -1
    seconds_left=$((SLURM_JOB_END_TIME - now))
    ((seconds_left < $1))
}

# cut_off SECONDS WANTED: a file, because steps run in pipes and in the background. It stays: the job is nearly over.
cut_off() {
    printf '%s\t%s\n' "$1" "$2" >"${results:?}/cut-off"
}

# was_cut_off: a step was ended because the job ends. Who had not answered by then had no time to, and is not named.
was_cut_off() {
    [[ -e "${results:?}/cut-off" ]]
}

# need_time: before nodes are asked once more. Concludes by what was found so far where the job ends too soon: a node that had no
# time to answer is not a silent one.
need_time() {
    if ! ends_within $((BEFORE_END_S + LEAST_STEP_S)); then return 0; fi
    cut_off "${seconds_left}" $((BEFORE_END_S + LEAST_STEP_S))
    end_if_cut_off
}

# end_if_cut_off: after a step whose result is worth nothing without all nodes.
end_if_cut_off() {
    if was_cut_off; then conclude "the time was up before all was measured"; fi
}

# load_settings: the job's settings; a variable that the submitter exported as SET_<NAME> wins.
load_settings() {
    [[ -f settings.env ]] || die "settings.env is not in ${PWD}; submit from the job's folder"
    set -a
    # shellcheck source=/dev/null
    . ./settings.env
    set +a
    local name
    while IFS='=' read -r name _; do
        # A value of several lines may look like another variable.
        [[ "${name}" =~ ^SET_[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
        export "${name#SET_}=${!name}"
    done < <(env)
}

# load_nccl_env: NCCL and UCX variables of the VM size and the kind of job, and those of SHARP where USE_SHARP=1 asks for
# them; their names are in $nccl_names. They are not visible in containers through /etc/nccl.conf.
load_nccl_env() {
    local name
    local -a files=(nccl.env)
    [[ -f nccl.env ]] || die "nccl.env is not in ${PWD}"
    if [[ "${USE_SHARP:-0}" == 1 ]]; then
        [[ -f sharp.env ]] || die "USE_SHARP=1, but no SHARP variables are known for ${VM_SIZE:-this VM size}"
        files+=(sharp.env)
    fi
    set -a
    for name in "${files[@]}"; do
        # shellcheck source=/dev/null
        . "./${name}"
    done
    set +a
    # shellcheck disable=SC2034  # for scripts that start containers
    mapfile -t nccl_names < <(sed -nE 's/^([A-Za-z_][A-Za-z0-9_]*)=.*/\1/p' "${files[@]}" | grep -vx LD_LIBRARY_PATH_PREPEND || true)
    if [[ -n "${LD_LIBRARY_PATH_PREPEND:-}" ]]; then
        export LD_LIBRARY_PATH="${LD_LIBRARY_PATH_PREPEND}${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}"
        unset LD_LIBRARY_PATH_PREPEND
    fi
}

# new_results_folder: a folder of this run alone, in $results; old results are never read.
new_results_folder() {
    require RESULTS_DIR SLURM_JOB_ID
    mkdir -p "${RESULTS_DIR}"
    results="$(cd "${RESULTS_DIR}" && pwd)/${SLURM_JOB_ID}"
    if [[ -n "${SLURM_RESTART_COUNT:-}" ]]; then results+="-restart${SLURM_RESTART_COUNT}"; fi
    mkdir "${results}" || die "${results} exists already"
    # Until the run has come to its end.
    printf 'error\n' >"${results}/verdict"
    export results
    begin_record
}

# requested_nodes: the nodes of the job, one a line; the verdict covers exactly these. A run without Slurm has them in
# NODES_OF_RUN.
requested_nodes() {
    if [[ -n "${NODES_OF_RUN:-}" ]]; then
        printf '%s\n' "${NODES_OF_RUN}"
        return
    fi
    scontrol show hostnames "${SLURM_JOB_NODELIST:?}"
}

# is_number VALUE: a positive decimal number; zero, NaN, text and nothing are not.
is_number() {
    [[ "${1:-}" =~ ^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$ ]] || return 1
    [[ "${1%%[eE]*}" == *[1-9]* ]]
}

# at_least VALUE FLOOR: numeric comparison; in Bash, which starts nothing, for what it can count in billionths.
at_least() {
    local -r decimal='^([0-9]{1,9})([.]([0-9]{1,9}))?$'
    local first second
    if [[ "$1" =~ ${decimal} ]]; then
        first="${BASH_REMATCH[3]}000000000" first="${BASH_REMATCH[1]}${first:0:9}"
        if [[ "$2" =~ ${decimal} ]]; then
            second="${BASH_REMATCH[3]}000000000" second="${BASH_REMATCH[1]}${second:0:9}"
            ((10#${first} >= 10#${second}))
            return
        fi
    fi
    awk -v value="$1" -v floor="$2" 'BEGIN { exit !(value + 0 >= floor + 0) }'
}

# judge VALUE WARN FAIL: prints the verdict; WARN and FAIL are floors, empty if none is published.
judge() {
    local -r value="${1:-}" warn="${2:-}" fail="${3:-}"
    if ! is_number "${value}"; then
        echo fail
    elif [[ -z "${warn}${fail}" ]]; then
        echo no_baseline
    elif [[ -n "${fail}" ]] && ! at_least "${value}" "${fail}"; then
        echo fail
    elif [[ -n "${warn}" ]] && ! at_least "${value}" "${warn}"; then
        echo warn
    else
        echo pass
    fi
}

# worst_in FILE: the worst verdict of recorded lines; a missing or empty file is an error.
worst_in() {
    local -a verdicts=()
    if [[ -s "$1" ]]; then mapfile -t verdicts < <(cut -f 2 "$1"); fi
    worst "${verdicts[@]}"
}

# not_tested WORDS...: for the end of a summary; nothing where nothing was left out.
not_tested() {
    local words list=""
    for words in "$@"; do list+="; ${words}"; done
    printf '%s' "${list:+; not tested: ${list#; }}"
}

# conclude TEXT: ends the job with the worst verdict of its checks.
conclude() {
    local verdict seconds wanted
    if was_cut_off && IFS=$'\t' read -r seconds wanted <"${results}/cut-off"; then
        record "${results}/checks.tsv" time error "${seconds}" "${wanted}" s "the job ends before all was measured; submit it with a longer --time" given
    fi
    verdict="$(worst_in "${results:?}/checks.tsv")"
    if [[ "${verdict}" != pass ]]; then tell_checks "${verdict}"; fi
    finish "${verdict}" "$1"
}

# tell_checks VERDICT: the checks that it is from, for who reads the job's output; all of them are in the record.
tell_checks() {
    local line
    while IFS= read -r line; do log "${line}"; done < <(awk -F '\t' -v verdict="$1" '
        $2 == verdict && ++count <= 10 { print verdict ": " $1 ($6 == "" ? "" : ": " $6) ($8 == "" ? "" : " (" $8 ")") }
        END { if (count > 10) print "and " count - 10 " more, see run.json" }' "${results}/checks.tsv" 2>/dev/null)
}

# finish VERDICT TEXT: writes the verdict of the run and exits with it; the record follows at the exit.
# shellcheck disable=SC2034  # records.sh reads them
finish() {
    run_verdict="$1" run_summary="$2"
    printf '%s\n' "$1" >"${results:?}/verdict.partial"
    mv "${results}/verdict.partial" "${results}/verdict"
    log "verdict ${1}: ${2} (results in ${results})"
    exit "$(exit_status "$1")"
}

# free_port: a port below the ephemeral range, derived from the job id and free on this node.
free_port() {
    local try port
    for try in {0..99}; do
        port=$((20000 + (${SLURM_JOB_ID:?} + try * 131) % 10000))
        if [[ -z "$(ss -Hltn "sport = :${port}" 2>/dev/null)" ]]; then
            echo "${port}"
            return
        fi
    done
    die "no free port between 20000 and 29999 on $(hostname -s)"
}
