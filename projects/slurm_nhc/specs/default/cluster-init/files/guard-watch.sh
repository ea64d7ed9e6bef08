#!/usr/bin/env bash
# On the scheduler, each minute: one alarm when many nodes of a partition fail the same check at once, and no new jobs there
# until it is over. Nodes hold their drains back meanwhile (guard.sh).
#
#   guard-watch.sh look               look once
#   guard-watch.sh forget PARTITION   for a person: leave the partition as it is now; it is yours again
#
# Two sources: what nodes claim in the folder of results, and the reasons of our own drains in Slurm. The second works too
# when the share with that folder is what is gone. A partition of Slurm has no field for a reason (no version to 26.05), so
# the reason is in the file ALARM among the results and in the journal.
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib disable=SC1091
set -euo pipefail
readonly HERE="${BASH_SOURCE[0]%/*}"
# shellcheck source=cycleforge.sh
. "${HERE}/cycleforge.sh"
# shellcheck source=guard-rule.sh
. "${HERE}/guard-rule.sh"
# shellcheck source=guard-slurm.sh
. "${HERE}/guard-slurm.sh"
# shellcheck source=guard-record.sh
. "${HERE}/guard-record.sh"

CF_PROJECT=slurm_nhc
readonly FOLDER_S=10
# A node runs some dozens of checks.
readonly CLAIMS_OF_NODE=100
# By "PARTITION CHECK NODE": since when, in seconds. By "PARTITION CHECK": the nodes.
declare -A FAILS=() FAILING=() CLAIMING=()
# By "PARTITION CHECK": how many nodes say that they are below the floor of a deep check, and that they are not; and the nodes
# that are drained for it.
declare -A MISSED=() PASSED=() NAMED=()
FOLDER_ANSWERS=false

load() {
    cf_load_conf "${CF_CONF_DIR}/guard.conf"
    guard_figures "${HERE}/guard.tsv" || cf_die "${HERE}/guard.tsv is not whole" "it comes with the project" "converge again"
    mkdir -p "${GUARD_STATE}"
    guard_folder || GUARD_FOLDER=""
}

# add_failure PARTITION CHECK NODE SECONDS: a claim is added before a reason and stays, because it knows when it began.
add_failure() {
    if [[ -n "${FAILS["$1 $2 $3"]:-}" ]]; then return; fi
    FAILS["$1 $2 $3"]="$4"
    FAILING["$1 $2"]+="${FAILING["$1 $2"]:+ }$3"
}

# add_named PARTITION CHECK NODE
add_named() {
    if [[ " ${NAMED["$1 $2"]:-} " != *" $3 "* ]]; then NAMED["$1 $2"]+="${NAMED["$1 $2"]:+ }$3"; fi
}

# count_floor "PARTITION CHECK": whether so many miss a floor that it, or the image, is at fault; `MISSED OF SOURCE` in REPLY. By
# claims of those that measured it; a reason does not tell who else has, so of these there are as many as nodes.
count_floor() {
    local -r missed="${MISSED["$1"]:-0}" measured="$((${MISSED["$1"]:-0} + ${PASSED["$1"]:-0}))" total="${TOTAL[${1% *}]:-0}"
    local -a named=()
    read -r -a named <<<"${NAMED["$1"]:-}"
    REPLY="${missed} ${measured} claims"
    if guard_spreads "${missed}" "${measured}"; then return; fi
    if ((measured == 0)) || guard_spreads "${#named[@]}" "${total}"; then REPLY="${#named[@]} ${total} reasons"; fi
    guard_spreads "${#named[@]}" "${total}"
}

# floor_words "PARTITION CHECK": what count_floor has left in REPLY, for people.
floor_words() {
    local missed of source nodes="nodes that measured it"
    read -r missed of source <<<"${REPLY}"
    if [[ "${source}" == reasons ]]; then nodes="nodes of the partition, by the reasons of their drains"; fi
    REPLY="partition ${1% *}: ${1##* } is missed by ${missed} of ${of} ${nodes}"
}

# judge_floors: a floor that a few nodes miss is a fault of these nodes; one that most miss is a fault of the floor or of the
# image, and draining every node for it would leave none.
judge_floors() {
    local pair now
    for pair in "${!FLOORS[@]}"; do
        if count_floor "${pair}" || [[ -n "${GUARD_FOLDER}" && "${FOLDER_ANSWERS}" == false ]]; then continue; fi
        unset -v 'FLOORS[$pair]'
        floor_words "${pair}"
        announce "${REPLY}, so these drain again"
    done
    for pair in "${!MISSED[@]}" "${!NAMED[@]}"; do
        if [[ -n "${FLOORS[${pair}]:-}" ]] || ! count_floor "${pair}"; then continue; fi
        printf -v now '%(%s)T' -1
        FLOORS["${pair}"]="${now}"
        floor_words "${pair}"
        announce "${REPLY}, so its floor or the image is at fault; further nodes that miss it only warn, and jobs start"
    done
}

# print_folder: the record there, line by line, then what the claims come to.
print_folder() {
    if [[ -L "${GUARD_FOLDER}" || ! -d "${GUARD_FOLDER}" ]]; then return 1; fi
    if [[ "${IS_PAIR}" == true ]] && cf_given "${GUARD_FOLDER}/record" "${GUARD_BYTES}"; then
        printf 'record %s\n' "${REPLY//$'\n'/$'\n'record }"
    fi
    guard_rows "${GUARD_FOLDER}" | sum_claims
}

# sum_claims: `dead PATH` for claims of nodes without a VM, `missed` and `passed` with COUNT CHECK PARTITION for deep checks, and
# `claim SECONDS CHECK PARTITION NODE` for others of nodes in the partition. Files that one node has made in its own name or in
# that of nobody keep no claim of another from being read.
sum_claims() {
    awk -F '[ @/]' -v deep=" ${GUARD_DEEP[*]} " -v of_node="${CLAIMS_OF_NODE}" -v all="${GUARD_ROWS}" '
        members { belongs[$1, $2] = 1; has_vm[$2] = 1; next }
        !($4 in has_vm) { if (dead++ < 1000) print "dead", $2 "@" $3 "/" $4; next }
        !(($3, $4) in belongs) { next }
        $2 ~ /^deep_/ {
            check = substr($2, 13)
            if ($2 ~ /^deep_(checks|passed)\./ && index(deep, " " check " ")) count[($2 ~ /^deep_p/ ? "passed" : "missed"), check, $3]++
            next
        }
        ++claims[$3, $4] <= of_node && ++rows <= all { print "claim", $1, $2, $3, $4 }
        END { for (key in count) { split(key, word, SUBSEP); print word[1], count[key], word[2], word[3] } }
    ' members=1 <(printf '%s\n' "${!BELONGS[@]}") members=0 -
}

# read_folder: the claims of nodes that count; those of nodes without a VM are removed.
read_folder() {
    local kind value check partition node
    local -a dead=()
    SHARED_RECORD="" FOLDER_ANSWERS=false
    if [[ -z "${GUARD_FOLDER}" ]]; then return; fi
    if ! guard_ask "${FOLDER_S}" print_folder; then
        cf_warn "${GUARD_FOLDER#"${CF_ROOT}"} does not answer: only Slurm's reasons are counted"
        return
    fi
    FOLDER_ANSWERS=true
    while read -r kind value check partition node; do
        case "${kind}" in
            record) SHARED_RECORD+="${value}${check:+ ${check}}${partition:+ ${partition}}${node:+ ${node}}"$'\n' ;;
            dead) dead+=("${value}") ;;
            missed) MISSED["${partition} ${check}"]="${value}" ;;
            passed) PASSED["${partition} ${check}"]="${value}" ;;
            claim)
                if [[ -z "${MEMBER["${partition} ${node}"]:-}" ]] || ! guard_covers "${check}"; then continue; fi
                cf_number "${value}"
                add_failure "${partition}" "${check}" "${node}" "${REPLY}"
                CLAIMING["${partition} ${check} ${node}"]=yes
                ;;
        esac
    done <<<"${REPLY}"
    if ((${#dead[@]} > 0)); then guard_ask "${FOLDER_S}" guard_remove "${GUARD_FOLDER}" "${dead[@]}" || true; fi
}

# new_alarms: what fails on too many nodes since too short a time, and has no alarm yet.
new_alarms() {
    local pair partition check node now source
    local -a times=()
    printf -v now '%(%s)T' -1
    for pair in "${!FAILING[@]}"; do
        if [[ -n "${ALARMS[${pair}]:-}" ]]; then continue; fi
        partition="${pair% *}" check="${pair##* }" times=() source=reasons
        for node in ${FAILING[${pair}]}; do
            # Claims lie in one window of each other, whenever this looks; older ones had their chance.
            if ((now - ${FAILS["${pair} ${node}"]} <= 2 * GUARD[window_s])); then times+=("${FAILS["${pair} ${node}"]}"); fi
            if [[ -n "${CLAIMING["${pair} ${node}"]:-}" ]]; then source=claims; fi
        done
        guard_densest "${times[@]}"
        if ! guard_trips "${REPLY}" "${TOTAL[${partition}]:-0}"; then continue; fi
        ALARMS["${pair}"]="${now} ${source} 0"
        announce "partition ${partition}: ${check} fails on ${REPLY} of ${TOTAL[${partition}]} nodes within $((GUARD[window_s] / 60)) minutes, so they share the cause; no node is drained for it and no new job starts there until it passes again"
    done
}

# old_alarms: an alarm ends when few enough nodes fail in some looks in a row. Nodes that fail then have a fault of their own:
# jobs come back when these have drained themselves, which they do once the alarm is not in the state any more.
old_alarms() {
    local pair partition since source looks
    for pair in "${!ALARMS[@]}"; do
        partition="${pair% *}"
        read -r since source looks <<<"${ALARMS[${pair}]}"
        # Without the folder nobody knows about nodes that hold their drains back.
        if [[ "${source}" == claims && "${FOLDER_ANSWERS}" == false ]]; then
            if [[ "${looks}" != ends:* ]]; then ALARMS["${pair}"]="${since} ${source} 0"; fi
            continue
        fi
        # shellcheck disable=SC2086 # words
        set -- ${FAILING[${pair}]:-}
        if [[ "${looks}" == ends:* ]]; then
            if guard_trips "$#" "${TOTAL[${partition}]:-0}"; then ALARMS["${pair}"]="${since} ${source} 0"; fi
        elif guard_clears "$#" "${TOTAL[${partition}]:-0}"; then
            looks=$((looks + 1))
            if ((looks >= GUARD[looks])); then printf -v looks 'ends:%(%s)T' -1; fi
            ALARMS["${pair}"]="${since} ${source} ${looks}"
        else
            ALARMS["${pair}"]="${since} ${source} 0"
        fi
        if [[ "${ALARMS[${pair}]}" == *ends:* ]]; then end_alarm "${pair}" "${looks#ends:}" "$@"; fi
    done
}

# end_alarm "PARTITION CHECK" SINCE NODE...: over when no failing node is open to jobs. One that has not drained itself in a
# whole window runs no checks any more; then we do it, and a person resumes it.
end_alarm() {
    local -r pair="$1" since="$2"
    local now node
    local -a open=()
    shift 2
    printf -v now '%(%s)T' -1
    for node in "$@"; do
        if [[ "${MEMBER["${pair% *} ${node}"]}" == open ]]; then open+=("${node}"); fi
    done
    if ((${#open[@]} > 0 && now - since <= GUARD[window_s])); then return; fi
    for node in "${open[@]}"; do drain_left "${node}" "${pair##* }" || return 0; done
    unset -v 'ALARMS[$pair]'
    announce "partition ${pair% *}: ${pair##* } passes again, the alarm is over; $# nodes still fail it and are drained"
}

# announce TEXT: once, for whoever reads the system log.
announce() {
    cf_warn "$*"
    if command -v logger >/dev/null; then timeout --kill-after=1 5 logger --tag cycleforge-guard --priority daemon.alert -- "$*" || true; fi
}

look() {
    load
    if ! exec 9>"${GUARD_STATE}/lock" || ! flock --nonblock 9; then
        cf_log "another look is going on"
        return
    fi
    if ! this_one_acts || ! read_slurm; then return; fi
    read_folder
    add_reasons
    read_record
    old_alarms
    new_alarms
    judge_floors
    hold_and_lift
    write_record
    tell_nodes
}

forget() {
    load
    exec 9>"${GUARD_STATE}/lock"
    flock --wait 60 9
    this_one_acts || cf_die "Slurm runs on another scheduler" "" "run this there"
    read_slurm || cf_die "Slurm does not answer" "" "try again"
    read_folder
    read_record
    if [[ -z "${HOLDS[$1]:-}" ]]; then cf_die "the guard does not hold partition $1" "held now: ${!HOLDS[*]}"; fi
    HOLDS["$1"]=left
    write_record
    cf_log "partition $1 is left as it is until its alarms are over; State=UP opens it: scontrol update PartitionName=$1 State=UP"
}

main() {
    case "$#:${1:-}" in
        1:look) look ;;
        2:forget) forget "$2" ;;
        *) cf_die "usage: guard-watch.sh look | forget PARTITION" ;;
    esac
}

cf_main main "$@"
