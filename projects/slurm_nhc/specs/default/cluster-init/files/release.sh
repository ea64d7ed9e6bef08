#!/usr/bin/env bash
# On the scheduler: what drained nodes cost, and which of them are handed back. A timer runs it; a person may.
#
#   release.sh run     hand back the VMs of nodes that our checks drained longer ago than the definition allows
#   release.sh list    every drained node: for how long, what that has cost, and when it is handed back
#
# With SuspendExcStates=DRAIN power saving leaves drained nodes alone, so each costs as much as one that works until somebody
# powers it down. Only drains of our own are touched: an administrator's has a purpose that we do not know. When the cure is a
# report to Azure the VM is the evidence, and after it is deleted the next one may be on the same host: a person decides.
# slurmctld ignores a second POWER_DOWN of a node that is on its way, so a second scheduler does no harm.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"
CF_PROJECT=slurm_nhc

readonly PREFIX="CycleForge health:" SERVICE="CycleForge health: report the host to Azure"
readonly RECORDS="${CF_STATE_DIR}/release" LOCK="${CF_ROOT}/run/cycleforge/release.lock"
readonly GPU_COUNT="^gpu:([^:(]+:)?([0-9]{1,6})"
readonly SLURM_LIMIT_S=60 HOUR_S=3600 SAY_AGAIN_S=86400
NOW=0 HOURS=0

ask_slurm() { SLURM_TIME_FORMAT=%s timeout --kill-after=5 "${SLURM_LIMIT_S}" scontrol "$@"; }

declare -a NODES=()
declare -A STATE=() REASON=() SINCE=() GPUS=() PARTITIONS=() KEPT_NODES=() KEPT_PARTITIONS=()

# parse_node LINE: one node as `scontrol --oneliner` prints it; 1 when it is none.
parse_node() {
    local -r line="$1"
    local name gpus=0 word
    if [[ ! "${line}" =~ ^NodeName=([A-Za-z0-9._-]+)[[:space:]] ]]; then return 1; fi
    name="${BASH_REMATCH[1]}"
    if [[ ! "${line}" =~ [[:space:]]State=([^[:space:]]+) ]]; then return 1; fi
    # "*" is the sign of a node that does not answer; newer versions say NOT_RESPONDING too.
    STATE["${name}"]="+${BASH_REMATCH[1]//\*/+NOT_RESPONDING}+"
    REASON["${name}"]="" SINCE["${name}"]="" PARTITIONS["${name}"]=""
    # scontrol adds who set it and when: "text [user@time]".
    if [[ "${line}" =~ [[:space:]]Reason=(.*)[[:space:]]\[[^][@[:space:]]+@([0-9]{1,12})\] ]]; then
        REASON["${name}"]="${BASH_REMATCH[1]}" SINCE["${name}"]=$((10#${BASH_REMATCH[2]}))
    fi
    if [[ "${line}" =~ [[:space:]]Partitions=([^[:space:]]+) ]]; then PARTITIONS["${name}"]="${BASH_REMATCH[1]}"; fi
    if [[ "${line}" =~ [[:space:]]Gres=([^[:space:]]+) ]]; then
        for word in ${BASH_REMATCH[1]//,/ }; do
            if [[ "${word}" =~ ${GPU_COUNT} ]]; then gpus=$((gpus + 10#${BASH_REMATCH[2]})); fi
        done
    fi
    GPUS["${name}"]="${gpus}"
    REPLY="${name}"
}

read_nodes() {
    local output line
    output="$(ask_slurm --oneliner show node)" ||
        cf_die "scontrol show node failed" "slurmctld does not answer; no node was handed back" "see 'scontrol ping'; the next look is in ten minutes"
    while IFS= read -r line; do
        if parse_node "${line}"; then NODES+=("${REPLY}"); fi
    done <<<"${output}"
}

# What somebody keeps: SuspendExcNodes, which azslurmd fills with the nodes that have KeepAlive in CycleCloud, and
# SuspendExcParts. A number behind a colon says how many of them; we keep them all.
read_kept() {
    local config line list name
    config="$(ask_slurm show config)" ||
        cf_die "scontrol show config failed" "slurmctld does not answer; no node was handed back" "see 'scontrol ping'; the next look is in ten minutes"
    while IFS= read -r line; do
        if [[ ! "${line}" =~ ^(SuspendExcNodes|SuspendExcParts)[[:space:]]*=[[:space:]]*([^[:space:]]+) ]]; then continue; fi
        list="${BASH_REMATCH[2]}"
        if [[ "${list}" == "(null)" ]]; then continue; fi
        if [[ "${BASH_REMATCH[1]}" == SuspendExcParts ]]; then
            for name in ${list//,/ }; do KEPT_PARTITIONS["${name%%:*}"]=1; done
        else
            list="$(sed -E 's/:[0-9]+//g' <<<"${list}")"
            line="$(ask_slurm show hostnames "${list}")" || cf_die "SuspendExcNodes ${list} cannot be read" "scontrol show hostnames failed"
            while IFS= read -r name; do KEPT_NODES["${name}"]=1; done <<<"${line}"
        fi
    done <<<"${config}"
}

has() { [[ "${STATE[$1]}" == *"+$2+"* ]]; }

# has_vm NODE: whether a VM runs under this name and is not on its way down.
has_vm() {
    local flag
    for flag in POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN POWER_UP FUTURE UNKNOWN; do
        if has "$1" "${flag}"; then return 1; fi
    done
}

is_ours() { has "$1" DRAIN && [[ "${REASON[$1]}" == "${PREFIX}"* ]]; }

is_kept() {
    local name
    if [[ -n "${KEPT_NODES[$1]:-}" ]]; then return 0; fi
    for name in ${PARTITIONS[$1]//,/ }; do
        if [[ -n "${KEPT_PARTITIONS[${name}]:-}" ]]; then return 0; fi
    done
    return 1
}

# begun NODE: since when it is drained, in REPLY, and when we last spoke of it, in SAID. A reason that is replaced has a
# new time, so the first one is written down for as long as the node stays drained by us.
SAID=0
begun() {
    local first="" said="" file="${RECORDS}/$1"
    REPLY="${SINCE[$1]:-${NOW}}" SAID=0
    if [[ -r "${file}" ]]; then read -r first said <"${file}" || true; fi
    if [[ "${first}" =~ ^[0-9]{1,12}$ ]] && ((10#${first} < REPLY)); then REPLY=$((10#${first})); fi
    if [[ "${said}" =~ ^[0-9]{1,12}$ ]]; then SAID=$((10#${said})); fi
    if ((REPLY > NOW)); then REPLY="${NOW}"; fi
}

note() { cf_write "${RECORDS}/$1" 0644 <<<"$2 $3"; }

# Records of nodes that are not drained by us any more.
forget() {
    local file name
    for file in "${RECORDS}"/*; do
        name="${file##*/}"
        if [[ ! -f "${file}" ]]; then continue; fi
        if [[ -z "${STATE[${name}]:-}" ]] || ! is_ours "${name}" || ! has_vm "${name}"; then rm -f "${file}"; fi
    done
}

# tenths SECONDS: hours with one decimal, in REPLY.
tenths() { REPLY="$(($1 / HOUR_S)).$(($1 % HOUR_S * 10 / HOUR_S))"; }

# cost NODE SECONDS: what the wait has cost so far, in words, in REPLY.
cost() {
    local -r gpus="${GPUS[$1]}"
    tenths "$2"
    local -r hours="${REPLY}"
    REPLY="${hours} h"
    if ((gpus > 0)); then
        tenths "$(($2 * gpus))"
        REPLY="${hours} h, ${REPLY} GPU hours"
    fi
}

# obstacle NODE: why it is not handed back although the limit has passed, in REPLY; empty if nothing is in the way. It says
# what a person does.
obstacle() {
    local flag
    REPLY=""
    if ((HOURS == 0)); then
        REPLY="nobody hands it back but a person (hand_back_after_h is 0, or the pool is static)"
    elif [[ "${REASON[$1]}" == "${SERVICE}"* ]]; then
        REPLY="the VM is the evidence: report it to Azure first"
    elif is_kept "$1"; then
        REPLY="it is kept (SuspendExcNodes or SuspendExcParts; KeepAlive in CycleCloud)"
    elif ! has "$1" IDLE && ! has "$1" DOWN; then
        REPLY="it has jobs"
    else
        for flag in COMPLETING MAINTENANCE MAINT RESERVED REBOOT_REQUESTED REBOOT_ISSUED; do
            if has "$1" "${flag}"; then REPLY="it is ${flag}"; fi
        done
    fi
}

# still_due NODE: whether that holds in this moment, too; meanwhile somebody may have resumed or drained it.
still_due() {
    local line
    line="$(ask_slurm --oneliner show node "$1")" || return 1
    parse_node "${line}" || return 1
    if ! is_ours "$1" || ! has_vm "$1"; then return 1; fi
    obstacle "$1"
    [[ -z "${REPLY}" ]]
}

by_hand() { REPLY="sudo scontrol update NodeName=$1 State=POWER_DOWN"; }

# look_at NODE: hand it back, or say once a day what it costs and what it waits for.
look_at() {
    local -r name="$1"
    local since said spent why hand
    begun "${name}"
    since="${REPLY}" said="${SAID}"
    cost "${name}" "$((NOW - since))"
    spent="${REPLY}"
    by_hand "${name}"
    hand="${REPLY}"
    obstacle "${name}"
    why="${REPLY}"
    if [[ -z "${why}" ]] && ((NOW - since >= HOURS * HOUR_S)); then
        if ! still_due "${name}"; then
            cf_log "${name}: changed meanwhile, left as it is"
        elif ask_slurm update "NodeName=${name}" State=POWER_DOWN; then
            cf_log "${name}: handed back after ${spent} drained: ${REASON[${name}]}"
            rm -f "${RECORDS}/${name}"
            return
        else
            cf_warn "${name}: Slurm refuses State=POWER_DOWN; it is tried again in ten minutes"
        fi
    elif ((said == 0 || NOW - said >= SAY_AGAIN_S)); then
        if [[ -z "${why}" ]]; then
            tenths "$((since + HOURS * HOUR_S - NOW))"
            why="handed back in ${REPLY} h unless it heals"
        fi
        cf_log "${name}: drained for ${spent}; ${why}; at once: ${hand}: ${REASON[${name}]}"
        said="${NOW}"
    fi
    note "${name}" "${since}" "${said}"
}

release_due() {
    local name
    mkdir -p "${LOCK%/*}" "${RECORDS}"
    exec 9>"${LOCK}"
    if ! flock --nonblock 9; then
        cf_log "another run is going, this one is left out"
        return
    fi
    read_nodes
    read_kept
    forget
    for name in "${NODES[@]}"; do
        if is_ours "${name}" && has_vm "${name}"; then look_at "${name}"; fi
    done
}

print_list() {
    local name since when total=0 gpu_seconds=0
    read_nodes
    read_kept
    for name in "${NODES[@]}"; do
        if ! has "${name}" DRAIN || ! has_vm "${name}"; then continue; fi
        if is_ours "${name}"; then begun "${name}"; else REPLY="${SINCE[${name}]:-${NOW}}"; fi
        since="${REPLY}"
        total=$((total + 1)) gpu_seconds=$((gpu_seconds + (NOW - since) * ${GPUS["${name}"]}))
        if is_ours "${name}"; then
            obstacle "${name}"
            when="${REPLY}"
            if [[ -z "${when}" ]]; then
                tenths "$((since + HOURS * HOUR_S > NOW ? since + HOURS * HOUR_S - NOW : 0))"
                when="handed back in ${REPLY} h"
            fi
        else
            when="not ours: who drained it resumes it"
        fi
        cost "${name}" "$((NOW - since))"
        printf '%s: drained for %s; %s: %s\n' "${name}" "${REPLY}" "${when}" "${REASON[${name}]:-no reason}"
    done
    tenths "${gpu_seconds}"
    printf '%s drained nodes have a VM; %s GPU hours so far\n' "${total}" "${REPLY}"
}

main() {
    cf_load_conf "${CF_CONF_DIR}/release.conf"
    HOURS="${CF_CONF[hours]:-0}"
    if [[ ! "${HOURS}" =~ ^[0-9]{1,4}$ ]]; then cf_die "${CF_CONF_DIR}/release.conf has hours=${HOURS}, expected a whole number" "" "run the converge again"; fi
    printf -v NOW '%(%s)T' -1
    case "$*" in
        run) release_due ;;
        list) print_list ;;
        *) cf_die "usage: release.sh run | list" ;;
    esac
}

cf_main main "$@"
