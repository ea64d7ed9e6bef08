#!/usr/bin/env bash
# Which nodes are of an older generation than wanted, and their replacement. Runs on the scheduler, as root.
#
# A node is drained under a reason of our own, and powered down once it is idle and still has that reason: its jobs end
# first, and a drain of an administrator is neither replaced nor lifted. Everything that is known is in Slurm and in
# the nodes' records, so a run that was killed is continued by the next one.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

# A link to the folder of this cluster on /sched.
readonly SLURM_LINK="${CF_ROOT}/etc/slurm/prolog.d"
readonly PREFIX="CycleForge replace:"
readonly POLL_S="${CYCLEFORGE_POLL_S:-30}"
# A command of Slurm waits for slurmctld no longer than this.
readonly SLURM_LIMIT_S=60
readonly SHARE_PERCENT=10
readonly NODE_NAME='[A-Za-z0-9][A-Za-z0-9._-]{0,62}' A_GENERATION='[A-Za-z0-9_-]{1,64}\.[0-9a-f]{12}'
readonly LEFT_OLD=3

USAGE="usage:
  nodes.sh list GENERATION...                what runs, and which nodes are older than these generations
  nodes.sh replace GENERATION... [options]   drain old nodes, power each down once it is idle
  nodes.sh release                           lift the drains of 'replace' from nodes that were not powered down yet

GENERATION is NODEARRAY.DIGEST, as the README of the deployment prints it; node arrays without one are left alone.

options of 'replace':
  --dry-run             say what the first pass would do; change nothing
  --at-once N           at most N nodes of a node array are out of service; default: ${SHARE_PERCENT} % of those that run
  --started-before TIME also nodes of these arrays that started before TIME, as 'date -d' reads it; for another
                        version of the same image
  --no-record           also nodes without a record of their generation, which started before records were kept
  --start               start each node again, for a static pool; otherwise the next job does
  --hours N             stop after N hours, with what is drained still drained; default 24
  --once                one pass, without waiting"

SUSPEND_TIME="" SUSPEND_PROGRAM="" RESUME_PROGRAM=""
VERB="" DRY_RUN=false AT_ONCE="" BEFORE="" NO_RECORD=false START=false HOURS=24 ONCE=false
declare -A WANTED=()
RECORDS="" LEAVING=""

usage() {
    printf '%s\n' "$1" "${USAGE}" >&2
    exit 2
}

# number OPTION VALUE MAX: VALUE is a whole number from 1, in REPLY.
number() {
    if [[ ! "$2" =~ ^[0-9]{1,6}$ ]] || ((10#$2 < 1 || 10#$2 > $3)); then usage "$1 needs a whole number from 1 to $3, not '$2'"; fi
    REPLY=$((10#$2))
}

read_arguments() {
    VERB="${1:-}"
    case "${VERB}" in
        list | replace | release) shift ;;
        -h | --help)
            printf '%s\n' "${USAGE}"
            exit 0
            ;;
        *) usage "expected list, replace or release, not '${VERB}'" ;;
    esac
    while (($#)); do
        case "$1" in
            --dry-run) DRY_RUN=true ;;
            --no-record) NO_RECORD=true ;;
            --start) START=true ;;
            --once) ONCE=true ;;
            --at-once)
                number "$1" "${2:-}" 10000
                AT_ONCE="${REPLY}"
                shift
                ;;
            --hours)
                number "$1" "${2:-}" 720
                HOURS="${REPLY}"
                shift
                ;;
            --started-before)
                BEFORE="$(date -d "${2:-not given}" +%s 2>/dev/null)" || usage "--started-before '${2:-}' is not a time, for example '2026-11-22 21:00'"
                shift
                ;;
            *)
                if [[ ! "$1" =~ ^([A-Za-z0-9_-]+)\.([0-9a-f]{12})$ ]]; then usage "'$1' is not a generation such as hpc.3fa91c07be52"; fi
                WANTED["${BASH_REMATCH[1]}"]="$1"
                ;;
        esac
        shift
    done
    if [[ "${VERB}" != release ]] && ((${#WANTED[@]} == 0)); then usage "no generation is given"; fi
}

find_folders() {
    local folder
    folder="$(readlink -f "${SLURM_LINK}" || true)"
    if [[ -z "${folder}" || ! -d "${folder}" ]]; then
        cf_die "${SLURM_LINK} is missing" "this is not the scheduler of a cluster" "run it on the scheduler"
    fi
    RECORDS="${folder%/*}/cycleforge/nodes"
    LEAVING="${folder%/*}/cycleforge/leaving"
    # Every node can write there, and what is removed there must not be somewhere else.
    for folder in "${RECORDS%/*}" "${RECORDS}" "${LEAVING}"; do
        if [[ -L "${folder}" ]]; then cf_die "${folder} is a link" "CycleForge makes no links there" "find out who made it, then remove it"; fi
    done
}

# ---------------------------------------------------------------- what Slurm and the records say

declare -A STATE=() REASON=() GENERATION=() SINCE=() KEPT=()
declare -a NODES=()

ask_slurm() { timeout --kill-after=5 "${SLURM_LIMIT_S}" scontrol "$@"; }

read_nodes() {
    local output line name
    output="$(ask_slurm --oneliner show node)" || cf_die "scontrol show node failed" "slurmctld does not answer" "try again once 'scontrol ping' says UP"
    NODES=() STATE=() REASON=()
    while IFS= read -r line; do
        if [[ ! "${line}" =~ ^NodeName=(${NODE_NAME})[[:space:]] ]]; then continue; fi
        name="${BASH_REMATCH[1]}"
        if [[ ! "${line}" =~ [[:space:]]State=([^[:space:]]+) ]]; then continue; fi
        NODES+=("${name}")
        # "*" is the sign of a node that does not answer; newer versions say NOT_RESPONDING too.
        STATE["${name}"]="+${BASH_REMATCH[1]/\*/+NOT_RESPONDING}+"
        REASON["${name}"]=""
        if [[ "${line}" =~ [[:space:]]Reason=(.*) ]]; then
            # scontrol adds who set it and when: "text [user@time]".
            REASON["${name}"]="${BASH_REMATCH[1]%% \[*@*\]*}"
        fi
    done <<<"${output}"
}

read_records() {
    local name
    GENERATION=() SINCE=()
    for name in "${NODES[@]}"; do
        if cf_given "${RECORDS}/${name}" 4096 && [[ "${REPLY%$'\n'}" =~ ^(${A_GENERATION})\ ([0-9]+)$ ]] && cf_number "${BASH_REMATCH[2]}"; then
            GENERATION["${name}"]="${BASH_REMATCH[1]}" SINCE["${name}"]="${REPLY}"
        fi
    done
}

# How Slurm saves power, and the nodes that someone keeps: SuspendExcNodes, which azslurmd fills with the nodes that have KeepAlive in CycleCloud.
read_config() {
    local config list="" name line
    KEPT=()
    config="$(ask_slurm show config)" || cf_die "scontrol show config failed" "slurmctld does not answer" "try again once 'scontrol ping' says UP"
    SUSPEND_TIME="" SUSPEND_PROGRAM="" RESUME_PROGRAM=""
    while IFS= read -r line; do
        if [[ ! "${line}" =~ ^([A-Za-z]+)[[:space:]]*=[[:space:]]*(.*[^[:space:]])[[:space:]]*$ ]]; then continue; fi
        case "${BASH_REMATCH[1]}" in
            SuspendExcNodes) list="${BASH_REMATCH[2]}" ;;
            SuspendTime) SUSPEND_TIME="${BASH_REMATCH[2]}" ;;
            SuspendProgram) SUSPEND_PROGRAM="${BASH_REMATCH[2]}" ;;
            ResumeProgram) RESUME_PROGRAM="${BASH_REMATCH[2]}" ;;
        esac
    done <<<"${config}"
    # A number behind a colon says how many of them; we keep them all.
    list="$(sed -E 's/:[0-9]+//g' <<<"${list}")"
    if [[ -z "${list}" || "${list}" == "(null)" ]]; then return; fi
    while IFS= read -r name; do KEPT["${name}"]=1; done < <(ask_slurm show hostnames "${list}")
}

look() {
    read_nodes
    read_records
}

has() { [[ "${STATE[$1]}" == *"+$2+"* ]]; }

# Whether a VM runs under this name and slurmd has joined. A record of any other node is that of an earlier VM.
is_up() {
    local flag
    for flag in POWERED_DOWN POWERING_DOWN POWERING_UP POWER_UP FUTURE UNKNOWN; do
        if has "$1" "${flag}"; then return 1; fi
    done
}

is_ours() { has "$1" DRAIN && [[ "${REASON[$1]}" == "${PREFIX}"* ]]; }

is_idle() { has "$1" IDLE && ! has "$1" COMPLETING; }

# age NODE: new, old, unknown (no record) or other (a node array that nobody asked about), in REPLY.
age() {
    local -r generation="${GENERATION[$1]:-}"
    local array
    if [[ -z "${generation}" ]]; then
        REPLY=unknown
        return
    fi
    array="${generation%.*}"
    if [[ -z "${WANTED[${array}]:-}" ]]; then
        REPLY=other
    elif [[ "${WANTED[${array}]}" != "${generation}" ]]; then
        REPLY=old
    elif [[ -n "${BEFORE}" ]] && ((${SINCE["$1"]} < BEFORE)); then
        REPLY=old
    else
        REPLY=new
    fi
}

# is_old NODE: whether it is to be replaced.
is_old() {
    age "$1"
    [[ "${REPLY}" == old ]] || { [[ "${REPLY}" == unknown ]] && "${NO_RECORD}"; }
}

# hindrance NODE: why an old node is left alone, in REPLY; empty if nothing is in the way.
hindrance() {
    local flag
    REPLY=""
    if is_ours "$1"; then return; fi
    for flag in DRAIN DOWN FAIL NOT_RESPONDING MAINT ERROR INVALID_REG REBOOT_REQUESTED REBOOT_ISSUED REBOOT; do
        if has "$1" "${flag}"; then
            REPLY="${flag} (${REASON[$1]:-no reason})"
            return
        fi
    done
    if has "$1" POWER_DOWN; then
        REPLY="is powered down once it is idle"
    elif [[ -n "${KEPT[$1]:-}" ]]; then
        REPLY="kept (SuspendExcNodes, KeepAlive in CycleCloud)"
    elif [[ -n "${REPLACED[$1]:-}" ]]; then
        REPLY="was replaced and came back old: import the new template, then run this again"
    fi
}

# ---------------------------------------------------------------- list

print_list() {
    local name age since
    local -A count=([new]=0 [old]=0 [unknown]=0)
    printf '%-32s %-8s %-28s %-20s %s\n' NODE IS GENERATION STARTED STATE
    for name in "${NODES[@]}"; do
        if ! is_up "${name}"; then continue; fi
        age "${name}"
        age="${REPLY}"
        if [[ "${age}" == other ]]; then continue; fi
        count["${age}"]=$((${count["${age}"]} + 1))
        since=-
        if [[ -n "${SINCE[${name}]:-}" ]]; then TZ=UTC printf -v since '%(%FT%TZ)T' "${SINCE[${name}]}"; fi
        REPLY="${STATE[${name}]#+}"
        printf '%-32s %-8s %-28s %-20s %s\n' "${name}" "${age}" "${GENERATION[${name}]:--}" "${since}" "${REPLY%+}${REASON[${name}]:+ (${REASON[${name}]})}"
    done
    printf '%s new, %s old, %s without a record\n' "${count[new]}" "${count[old]}" "${count[unknown]}"
}

# ---------------------------------------------------------------- replace

declare -A REPLACED=() LEFT=() RUNNING=() OUT=()
CHANGED=0 WAITING=0 FAILED=0 STARTING=0

# update NODE MESSAGE WORD...: tell Slurm, or only say so. A refusal is reported, and the other nodes go on.
update() {
    local -r name="$1" message="$2"
    shift 2
    if "${DRY_RUN}"; then
        cf_log "would: ${name}: ${message}"
        return
    fi
    if ! ask_slurm update "NodeName=${name}" "$@"; then
        cf_warn "${name}: Slurm refuses: $*"
        FAILED=$((FAILED + 1))
        return 1
    fi
    cf_log "${name}: ${message}"
    CHANGED=$((CHANGED + 1))
}

# array_of NODE: its node array in REPLY, from its record or, once it is powered down, from that of its departure.
array_of() {
    REPLY="${GENERATION[$1]:-}"
    if [[ -z "${REPLY}" ]] && cf_given "${LEAVING}/$1" 4096; then REPLY="${REPLY%$'\n'}"; fi
    if [[ "${REPLY}" =~ ^${A_GENERATION}$ ]]; then REPLY="${REPLY%.*}"; else REPLY=-; fi
}

# How many nodes of each array run, and how many are out of service because of us.
count_nodes() {
    local name
    RUNNING=() OUT=() STARTING=0
    for name in "${NODES[@]}"; do
        array_of "${name}"
        if is_up "${name}"; then RUNNING["${REPLY}"]=$((${RUNNING[${REPLY}]:-0} + 1)); fi
        if has "${name}" POWERING_UP; then STARTING=$((STARTING + 1)); fi
        if is_ours "${name}" || [[ -e "${LEAVING}/${name}" ]]; then OUT["${REPLY}"]=$((${OUT[${REPLY}]:-0} + 1)); fi
    done
}

# limit ARRAY: how many of its nodes may be out of service, in REPLY.
limit() {
    REPLY="${AT_ONCE}"
    if [[ -z "${REPLY}" ]]; then REPLY=$((${RUNNING[$1]:-0} * SHARE_PERCENT / 100)); fi
    if ((REPLY < 1)); then REPLY=1; fi
}

# drain_some true|false: drain old nodes up to the limit, those that are idle or those that have jobs.
drain_some() {
    local name array idle
    for name in "${NODES[@]}"; do
        if ! is_up "${name}" || ! is_old "${name}" || is_ours "${name}"; then continue; fi
        hindrance "${name}"
        if [[ -n "${REPLY}" ]]; then
            LEFT["${name}"]="${REPLY}"
            continue
        fi
        idle=false
        if is_idle "${name}"; then idle=true; fi
        if [[ "${idle}" != "$1" ]]; then continue; fi
        array_of "${name}"
        array="${REPLY}"
        limit "${array}"
        if ((${OUT[${array}]:-0} < REPLY)) && update "${name}" "drained, it started as ${GENERATION[${name}]:-an unknown generation}" \
            State=DRAIN "Reason=${PREFIX} ${GENERATION[${name}]:-unknown}"; then
            OUT["${array}"]=$((${OUT[${array}]:-0} + 1))
        fi
    done
}

# With SuspendTime=-1 Slurm saves no power, and the programs of azslurm are called as an administrator calls them.
saves_power() { [[ "${SUSPEND_TIME}" =~ ^[0-9]+ ]]; }

# run_program PROGRAM NODE MESSAGE: one of azslurm's.
run_program() {
    if [[ "$1" != /* ]] || ! "$1" "$2"; then
        cf_warn "$2: $1 failed"
        FAILED=$((FAILED + 1))
        return 1
    fi
    cf_log "$2: $3"
    CHANGED=$((CHANGED + 1))
}

power_down() {
    mkdir -p "${LEAVING}"
    cf_write "${LEAVING}/$1" 0644 <<<"${GENERATION[$1]:--}"
    if saves_power; then
        update "$1" "idle, powered down" State=POWER_DOWN || return 0
    else
        run_program "${SUSPEND_PROGRAM}" "$1" "idle, ended" || return 0
    fi
    REPLACED["$1"]=1
    # Otherwise a VM that cannot write its own would pass for its predecessor.
    rm -f "${RECORDS}/$1"
}

power_up() {
    if saves_power; then
        update "$1" "starts again" State=POWER_UP || return 0
    else
        run_program "${RESUME_PROGRAM}" "$1" "starts again" || return 0
    fi
}

# What was drained by us: powered down when idle, resumed when it came back new.
go_on() {
    local name
    for name in "${NODES[@]}"; do
        if ! is_ours "${name}"; then continue; fi
        if has "${name}" POWERED_DOWN; then
            lift "${name}"
        elif is_up "${name}" && ! has "${name}" POWER_DOWN; then
            age "${name}"
            case "${REPLY}" in
                new) lift "${name}" ;;
                old | unknown)
                    if [[ -z "${REPLACED[${name}]:-}" ]]; then
                        if is_idle "${name}"; then power_down "${name}"; fi
                    elif [[ "${REPLY}" == old ]]; then
                        lift "${name}" # another VM has left this record, and it is old again
                    fi
                    ;;
            esac
        fi
    done
}

# Whether Slurm itself clears the drain of a node that it powers down differs from version to version.
lift() {
    if ! ask_slurm update "NodeName=$1" State=UNDRAIN 2>/dev/null; then update "$1" "our drain is lifted" State=RESUME || return 0; fi
}

# Nodes that have left: started again if that is wanted, forgotten once they are back or down.
follow_up() {
    local file name
    for file in "${LEAVING}"/*; do
        name="${file##*/}"
        if [[ ! -f "${file}" || -L "${file}" || ! "${name}" =~ ^${NODE_NAME}$ ]]; then continue; fi
        # It is lifted first: a node would start with its drain.
        if [[ -n "${STATE[${name}]:-}" ]] && is_ours "${name}"; then continue; fi
        # Without power saving a node that azslurm has ended is FUTURE, which scontrol does not show.
        if [[ -z "${STATE[${name}]:-}" ]] || has "${name}" POWERED_DOWN; then
            if ! "${START}"; then
                rm -f "${file}"
            elif [[ -z "${STATE[${name}]:-}" ]] || ! has "${name}" POWER_UP; then
                power_up "${name}"
            fi
        elif is_up "${name}" && ! has "${name}" POWER_DOWN; then
            rm -f "${file}"
        fi
    done
}

count_waiting() {
    local name
    local -A seen=()
    for name in "${NODES[@]}"; do
        if is_up "${name}" && is_old "${name}" && [[ -z "${LEFT[${name}]:-}" ]]; then seen["${name}"]=1; fi
        if is_ours "${name}"; then
            age "${name}"
            if [[ "${REPLY}" != other ]]; then seen["${name}"]=1; fi
        fi
    done
    for name in "${LEAVING}"/*; do
        if [[ -f "${name}" && ! -L "${name}" && "${name##*/}" =~ ^${NODE_NAME}$ ]]; then seen["${name##*/}"]=1; fi
    done
    WAITING="${#seen[@]}"
}

pass() {
    CHANGED=0 WAITING=0 LEFT=()
    read_config
    look
    count_nodes
    drain_some true
    drain_some false
    if "${DRY_RUN}"; then return; fi
    # What was drained just now may have got a job in the meantime.
    look
    go_on
    look
    follow_up
    count_waiting
}

report_left() {
    local name
    for name in "${!LEFT[@]}"; do cf_log "${name}: old, left as it is: ${LEFT[${name}]}"; done | sort
}

replace() {
    local -r deadline=$((SECONDS + HOURS * 3600))
    trap 'cf_log "interrupted: drained nodes stay drained; run the same command to go on, or: nodes.sh release" >&2; exit 130' INT TERM
    pass
    until "${DRY_RUN}" || "${ONCE}" || ((WAITING == 0)); do
        if ((CHANGED)); then cf_log "${WAITING} nodes wait for the end of their jobs, for their turn or for their start"; fi
        if ((SECONDS >= deadline)); then
            cf_warn "stopped after ${HOURS} hours; drained nodes stay drained: run the same command to go on, or: nodes.sh release"
            break
        fi
        sleep "${POLL_S}"
        pass
    done
    report_left
    if "${DRY_RUN}"; then return; fi
    if ((FAILED)); then cf_die "${FAILED} changes were refused" "Slurm or azslurm says why above" "correct it and run the same command again"; fi
    if ((WAITING + ${#LEFT[@]})); then
        cf_log "${WAITING} nodes wait, ${#LEFT[@]} are left as they are"
        exit "${LEFT_OLD}"
    fi
    cf_log "no old node is left$( ((STARTING == 0)) || printf "; %s nodes are starting: run it again once they are up" "${STARTING}")"
}

release() {
    local name
    look
    for name in "${NODES[@]}"; do
        if is_ours "${name}" && is_up "${name}" && ! has "${name}" POWER_DOWN; then
            update "${name}" resumed State=RESUME || true
        fi
    done
    if ((FAILED)); then cf_die "${FAILED} changes were refused" "Slurm says why above" "correct it and run the same command again"; fi
    cf_log "${CHANGED} nodes are in service again"
}

main() {
    read_arguments "$@"
    find_folders
    if [[ "${VERB}" == list ]]; then
        look
        print_list
        return
    fi
    exec 9>"${CF_ROOT}/run/cycleforge-nodes.lock"
    flock --nonblock 9 || cf_die "another run is going on" "two would count past the limit" "wait for it, or end it"
    "${VERB}"
}

cf_main main "$@"
