# shellcheck shell=bash
# What every job and prove.sh say in the same words: log lines, verdicts, and the exit status of a verdict.

log() { TZ=UTC printf '%(%FT%TZ)T %s: %s\n' -1 "${0##*/}" "$*"; }

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

# is_count TEXT: a whole number of at most 12 digits. What a file or a command says is asked for this before it stands in
# arithmetic: there Bash takes text for an expression and runs the commands in `x[$(...)]`.
is_count() {
    [[ -n "${1:-}" && "$1" != *[!0123456789]* && ("$1" == 0 || "$1" != 0*) ]] && ((${#1} <= 12))
}

# count_or NUMBER TEXT: TEXT where it is a count, else NUMBER.
count_or() {
    if is_count "${2:-}"; then echo "$2"; else echo "$1"; fi
}
