#!/usr/bin/env bash
# What Slurm knows about partitions and nodes, and the hold of a partition. Sourced by guard-watch.sh.

readonly SLURM_S=15
readonly OUR_PREFIX="CycleForge health:"
readonly WORDS_IN_FRONT='^[A-Za-z ]+: '
# By partition: its availability in Slurm's words, and how many of its nodes report. By "PARTITION NODE": `open`, or `drained`
# by us. By node: its partitions where it counts.
# BELONGS by "PARTITION NODE": those with a VM. NODE_BOOTS by node: the partitions of one that has not joined or answered yet.
declare -A AVAILABLE=() TOTAL=() MEMBER=() NODE_PARTITIONS=() BELONGS=() NODE_BOOTS=()
# "PARTITION NODE SECONDS REASON" of our own drains.
declare -a REASONS=()

# this_one_acts: of two schedulers the one that Slurm runs on. Only these share a record.
IS_PAIR=false
this_one_acts() {
    local answer line acting=""
    local -a lines=()
    answer="$(timeout --kill-after=1 "${SLURM_S}" scontrol ping 2>/dev/null || true)"
    mapfile -t lines <<<"${answer}"
    if ((${#lines[@]} < 2)); then return 0; fi
    # shellcheck disable=SC2034
    IS_PAIR=true
    for line in "${lines[@]}"; do
        if [[ -z "${acting}" && "${line}" =~ ^Slurmctld\([a-z0-9]+\)\ at\ ([^\ ]+)\ is\ UP ]]; then acting="${BASH_REMATCH[1]}"; fi
    done
    [[ "${acting%%.*}" == "${HOSTNAME%%.*}" ]]
}

# read_slurm: 1 when Slurm does not answer. A node counts where it reports and may get jobs: it has a VM that answers, and
# nobody but us has drained it. Flags behind a state: ~ off, # and ^ booting, % and ! going, * silent.
read_slurm() {
    local answer partition available node state time reason
    AVAILABLE=() TOTAL=() MEMBER=() NODE_PARTITIONS=() BELONGS=() NODE_BOOTS=() REASONS=()
    if ! answer="$(TZ=UTC SLURM_TIME_FORMAT=%s timeout --kill-after=1 "${SLURM_S}" \
        sinfo --noheader --all --Node --format='%R|%a|%N|%t|%H|%E')"; then
        cf_warn "Slurm does not answer, nothing is changed"
        return 1
    fi
    while IFS='|' read -r partition available node state time reason; do
        if [[ ! "${partition} ${node}" =~ ^${GUARD_NAME}\ ${GUARD_NAME}$ ]]; then continue; fi
        AVAILABLE["${partition}"]="${available}" TOTAL["${partition}"]="${TOTAL[${partition}]:-0}"
        if [[ "${state}" == *[~%]* ]]; then continue; fi
        # shellcheck disable=SC2034
        BELONGS["${partition} ${node}"]=yes
        # Slurm calls a node silent from State=RESUME to its next answer. A deep run tells that it lives.
        if [[ "${state}" == *[#^\*]* ]]; then NODE_BOOTS["${node}"]+="${NODE_BOOTS[${node}]:+,}${partition}"; fi
        if [[ "${state}" == *[#^!\*]* ]]; then continue; fi
        # shellcheck disable=SC2034
        if [[ "${state}" == @(drain|drng|down|fail|failg|error|unk)* ]]; then
            if [[ "${reason}" != "${OUR_PREFIX}"* ]]; then continue; fi
            MEMBER["${partition} ${node}"]=drained
            REASONS+=("${partition} ${node} ${time} ${reason#"${OUR_PREFIX}"}")
        else
            MEMBER["${partition} ${node}"]=open
        fi
        NODE_PARTITIONS["${node}"]+="${NODE_PARTITIONS[${node}]:+,}${partition}"
        TOTAL["${partition}"]=$((${TOTAL[${partition}]} + 1))
    done <<<"${answer}"
}

# add_reasons: what our drains say has failed. The words of a cure stand in front of all that stands against a node (standing.sh):
# nobody can tell which part of it is the machine's own, so none counts. `deep_checks (CHECK ...; CHECK ...)` names what a deep
# run has found; other brackets hold words, and so do these where nothing was measured.
add_reasons() {
    local row partition node time reason part word depth deep opened closed
    for row in "${REASONS[@]}"; do
        read -r partition node time reason <<<"${row}"
        if [[ "${reason}" =~ ${WORDS_IN_FRONT} ]] || ! cf_number "${time}"; then continue; fi
        time="${REPLY}"
        depth=0 deep=0
        while [[ -n "${reason}" ]]; do
            part="${reason%%; *}"
            if [[ "${reason}" == *"; "* ]]; then reason="${reason#*; }"; else reason=""; fi
            if ((depth == 0)) && [[ "${part}" == "deep_checks ("* ]]; then
                depth=1 deep=1
                part="${part#"deep_checks ("}"
            fi
            word="${part%%[ ,)]*}"
            if ((depth == deep)) && [[ ! "${part}" =~ ${WORDS_IN_FRONT} && "${part}" != *", tested again" && "${word}" != *... ]]; then
                # A tool's words may close a bracket too many; a deep check is one all the same.
                if guard_is_deep "${word}"; then
                    add_named "${partition}" "${word}" "${node}"
                elif ((deep == 0)) && guard_covers "${word}"; then
                    add_failure "${partition}" "${word}" "${node}" "${time}"
                fi
            fi
            opened="${part//[!(]/}" closed="${part//[!)]/}"
            depth=$((depth + ${#opened} - ${#closed}))
            if ((depth < deep || depth == 0)); then depth=0 deep=0; fi
        done
    done
}

# drain_left NODE CHECK: a node that still fails when the others do not, and does not say so itself. Its prefix is not the
# nodes' own, so a person resumes it.
drain_left() {
    timeout --kill-after=1 "${SLURM_S}" scontrol update "NodeName=$1" State=DRAIN \
        "Reason=CycleForge guard: $2 failed here last, passes on other nodes again, and this one runs no checks"
}

# set_partition NAME UP|DOWN
set_partition() { timeout --kill-after=1 "${SLURM_S}" scontrol update "PartitionName=$1" "State=$2"; }

# configuration_mark: changes when slurmctld has started anew or its files changed, in REPLY. Both put a partition back to
# what azure.conf says, which is no word of an administrator.
configuration_mark() {
    local boot newest=""
    boot="$(timeout --kill-after=1 "${SLURM_S}" scontrol show config | grep -m 1 '^BOOT_TIME' || true)"
    newest="$(guard_ask "${FOLDER_S}" stat -L -c %Y "${CF_ROOT}/etc/slurm/"*.conf && sort -n <<<"${REPLY}" | tail -n 1 || true)"
    REPLY="${boot//[^A-Za-z0-9:]/}/${newest}"
}

# hold_and_lift: every partition with an alarm is down, and comes up when it has none, if it was the guard that set it down.
#
# HOLDS by partition: `asked MARK` before and `down MARK` after Slurm was told; `left` where somebody else decides.
hold_and_lift() {
    local pair partition state mark
    local -A wanted=()
    for pair in "${!ALARMS[@]}"; do wanted["${pair% *}"]=yes; done
    for partition in "${!wanted[@]}"; do
        state="${AVAILABLE[${partition}]:-gone}"
        case "${HOLDS[${partition}]:-} / ${state}" in
            " / up" | "asked "*" / up") hold "${partition}" ;;
            "asked "*" / down") HOLDS["${partition}"]="down ${HOLDS[${partition}]#asked }" ;;
            "down "*" / down" | "left / "* | *" / gone") ;;
            "down "*" / up")
                configuration_mark
                mark="${HOLDS[${partition}]#down }"
                if [[ "${REPLY}" != "${mark}" ]]; then
                    cf_warn "partition ${partition} is up, because Slurm has read its files again; held again"
                    hold "${partition}"
                else
                    leave "${partition}" "somebody has set it up"
                fi
                ;;
            *) leave "${partition}" "it is ${state}, which was not the guard" ;;
        esac
    done
    for partition in "${!HOLDS[@]}"; do
        if [[ -z "${wanted[${partition}]:-}" ]]; then lift "${partition}" "${AVAILABLE[${partition}]:-gone}"; fi
    done
}

# hold PARTITION: what the guard is about to do is on disk before it does it.
hold() {
    configuration_mark
    HOLDS["$1"]="asked ${REPLY}"
    write_record
    if set_partition "$1" DOWN; then
        HOLDS["$1"]="down ${HOLDS[$1]#asked }"
        cf_log "partition $1 is set down: jobs wait there, running ones go on"
    else
        cf_warn "partition $1 could not be set down; tried again in the next look"
    fi
}

leave() {
    HOLDS["$1"]=left
    cf_warn "partition $1 is left to the administrator until its alarms are over: $2"
}

# lift PARTITION STATE: up again, if the guard has set it down and nobody has decided otherwise since.
lift() {
    if [[ "${HOLDS[$1]}" != left && "$2" == down ]]; then
        if ! set_partition "$1" UP; then
            cf_warn "partition $1 could not be set up; tried again in the next look"
            return
        fi
        cf_log "partition $1 is set up again: jobs start"
    elif [[ "${HOLDS[$1]}" != left && "$2" != up ]]; then
        cf_warn "partition $1 is ${2}, which was not the guard; it stays so"
    fi
    unset -v 'HOLDS[$1]'
}
