# shellcheck shell=bash
# Sourced by every recipe: logging, settings, results and verdicts.
# A verdict is pass, warn, fail, no_baseline or error; the exit status of a job is its verdict.
export LC_ALL=C

log() { TZ=UTC printf '%(%FT%TZ)T %s: %s\n' -1 "${0##*/}" "$*"; }

die() {
    log "ERROR: $*" >&2
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

# load_settings: the job's settings; a variable that the submitter exported as SET_<NAME> wins.
load_settings() {
    [[ -f settings.env ]] || die "settings.env is not in ${PWD}; submit from the job's folder"
    set -a
    # shellcheck source=/dev/null
    . ./settings.env
    set +a
    local name
    while IFS='=' read -r name _; do
        [[ "${name}" == SET_* ]] || continue
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
}

# requested_nodes: the nodes of the job, one a line; the verdict covers exactly these.
requested_nodes() {
    scontrol show hostnames "${SLURM_JOB_NODELIST:?}"
}

# is_number VALUE: a positive decimal number; zero, NaN, text and nothing are not.
is_number() {
    [[ "${1:-}" =~ ^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$ ]] || return 1
    awk -v value="$1" 'BEGIN { exit !(value + 0 > 0) }'
}

# at_least VALUE FLOOR: numeric comparison.
at_least() {
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

# record FILE CHECK VERDICT VALUE EXPECTED UNIT DETAIL: one line of results, tab separated.
record() {
    local -r file="$1"
    shift
    local field line=""
    for field in "$@"; do
        field="${field//$'\t'/ }"
        line+="${line:+$'\t'}${field//$'\n'/ }"
    done
    printf '%s\n' "${line}" >>"${file}"
}

# worst VERDICT...: the verdict that decides; nothing given or an unknown word is an error.
worst() {
    local verdict rank worst_rank=-1 result=error
    for verdict in "$@"; do
        case "${verdict}" in
            pass) rank=0 ;;
            warn) rank=1 ;;
            no_baseline) rank=2 ;;
            error) rank=3 ;;
            fail) rank=4 ;;
            *) rank=3 verdict=error ;;
        esac
        if ((rank > worst_rank)); then worst_rank=${rank} result=${verdict}; fi
    done
    echo "${result}"
}

# worst_in FILE: the worst verdict of recorded lines; a missing or empty file is an error.
worst_in() {
    local -a verdicts=()
    if [[ -s "$1" ]]; then mapfile -t verdicts < <(cut -f 2 "$1"); fi
    worst "${verdicts[@]}"
}

# results_json FILE: recorded lines as a JSON array.
results_json() {
    awk -F '\t' '
        function quoted(text) { gsub(/["\\]/, "\\\\&", text); gsub(/[\001-\037]/, " ", text); return "\"" text "\"" }
        BEGIN { split("check verdict value expected unit detail", names, " "); print "[" }
        {
            if (NR > 1) printf ",\n"
            printf "  {"
            for (i = 1; i <= 6; i++) printf "%s\"%s\": %s", (i > 1 ? ", " : ""), names[i], quoted($i)
            printf "}"
        }
        END { print (NR ? "\n]" : "]") }' "$1"
}

# exit_status VERDICT: 0 pass, 1 fail, 2 error, 3 warn (0 with ALLOW_WARN=1), 4 no baseline.
exit_status() {
    case "$1" in
        pass) echo 0 ;;
        fail) echo 1 ;;
        warn) if [[ "${ALLOW_WARN:-0}" == 1 ]]; then echo 0; else echo 3; fi ;;
        no_baseline) echo 4 ;;
        *) echo 2 ;;
    esac
}

# finish VERDICT TEXT: writes the verdict of the run and exits with it.
finish() {
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
