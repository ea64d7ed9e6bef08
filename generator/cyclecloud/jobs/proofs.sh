# shellcheck shell=bash
# On the scheduler, behind common.sh: starts prove.sh of a copied jobs folder, and follows it, for `cycleforge prove`.
#
# The folder is ~/jobs/prove-<key>; the key stands for its files. prove.sh keeps in prove.state how far it is. .cycleforge/ has
#   who           who started it, and when
#   options       of the last start, one a line
#   pid           its process, and when that began
#   log           what it says
#   status        its exit status; missing: it runs, or was ended with its machine
#   seen          there once someone was told the status

# begun PID: when a process began, in ticks since the boot; nothing when there is none.
begun() {
    local text
    text="$(cat "/proc/$1/stat" 2>/dev/null)" || return 0
    # The name, in brackets, may have spaces of its own.
    text="${text##*) }"
    awk '{ print $20 }' <<<"${text}"
}

is_running() {
    local pid since
    [[ ! -e .cycleforge/status ]] || return 1
    read -r pid since 2>/dev/null <.cycleforge/pid || return 1
    [[ -n "${since}" && "$(begun "${pid}")" == "${since}" ]]
}

# look RUN: how the proof of these jobs is.
look() {
    command -v sbatch >/dev/null || die "sbatch is not on ${HOSTNAME}: this is no scheduler"
    if [[ ! -d "${HOME}/jobs/$1" ]]; then return 0; fi
    enter "$1"
    tell
}

tell() {
    local options status=""
    options="$(paste -sd ' ' .cycleforge/options 2>/dev/null)" || options=""
    if is_running; then
        status=running
    elif [[ -e .cycleforge/status ]]; then
        status="$(<.cycleforge/status)"
    elif [[ -e .cycleforge/options ]]; then
        status=lost
    fi
    say proof "${run}" "$(head -n 1 .cycleforge/who 2>/dev/null)" "${status}" "${options}"
    if [[ -e .cycleforge/seen ]]; then say seen; fi
}

# plan RUN PARTIAL OPTION...: what prove.sh would run, and what that may cost.
plan() {
    settle "$1" "$2"
    enter "$1"
    shift 2
    bash ./prove.sh "$@" --plan 2>&1 | sed 's/^/text\t/' || die "prove.sh could not plan: see above"
}

# start RUN WHO OPTION...: once; one that runs, or whose status nobody knows yet, is not started again.
start() {
    enter "$1"
    shift
    locked start_once "$@"
    tell
}

start_once() {
    local -r who="$1"
    shift
    if is_running; then return 0; fi
    if [[ -e .cycleforge/status && ! -e .cycleforge/seen && "$(printf '%s\n' "$@")" == "$(cat .cycleforge/options)" ]]; then return 0; fi
    rm -f .cycleforge/{status,seen,pid}
    : >.cycleforge/log || die "cannot write ${PWD}/.cycleforge/log on ${HOSTNAME}; is the disk full?"
    must_be_whole .cycleforge/who "${who}"
    must_be_whole .cycleforge/options "$(printf '%s\n' "$@")"
    # In a session of its own, so that it lives on when the connection is lost.
    # shellcheck disable=SC2016  # its own variables
    as_login setsid nohup bash -c '
        stat="$(</proc/$$/stat)"
        stat="${stat##*) }"
        read -r -a field <<<"${stat}"
        echo "$$ ${field[19]}" >.cycleforge/pid.partial && mv .cycleforge/pid.partial .cycleforge/pid
        bash ./prove.sh "$@" --yes
        echo "$?" >.cycleforge/status.partial && mv .cycleforge/status.partial .cycleforge/status
    ' prove "$@" >.cycleforge/log 2>&1 </dev/null 8>&- &
    local -i tries
    for ((tries = 0; tries < 100; tries++)); do
        if [[ -s .cycleforge/pid || -e .cycleforge/status ]]; then return 0; fi
        sleep 0.1
    done
    die "prove.sh did not start on ${HOSTNAME}"
}

# follow RUN [prove=OFFSET]: what prove.sh says, until it has ended.
follow() {
    local runs
    local -A offset=() inode=() state=() ending=()
    enter "$1"
    if [[ -n "${2:-}" ]]; then offset["${2%:*}"]="${2##*:}"; fi
    while :; do
        runs=yes
        if ! is_running; then runs=""; fi
        if [[ -n "${runs}" ]]; then new_lines prove "" .cycleforge/log ""; else new_lines prove "" .cycleforge/log over; fi
        if [[ -z "${runs}" ]]; then
            say over
            return 0
        fi
        # Whoever reads may have gone: then this ends by SIGPIPE.
        say tick
        sleep "${POLL_S}"
    done
}

# seen RUN: someone knows the status.
seen() {
    enter "$1"
    must_be_whole .cycleforge/seen seen
}

main() {
    local run
    case "$1" in
        look | plan | start | follow | seen) "$@" ;;
        *) die "proofs.sh does not know '$1'" ;;
    esac
}
main "$@"
