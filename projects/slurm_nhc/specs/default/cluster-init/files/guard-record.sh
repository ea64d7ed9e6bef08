#!/usr/bin/env bash
# What guard-watch.sh remembers from look to look, and what it tells nodes and people. Sourced by guard-watch.sh.
#
# The record is on the scheduler's own disk, because the share may be what is gone, with a copy beside the results for the
# other scheduler of two: the newer one counts.

readonly GUARD_STATE="${CF_STATE_DIR}/guard"
# By "PARTITION CHECK": since when, by which source, and in how many looks it was over or `ends:` and
# since when that was enough. By partition: see hold_and_lift.
declare -A ALARMS=() HOLDS=()
SHARED_RECORD=""

read_record() {
    local text="" kind first rest written=0 shared=0
    ALARMS=() HOLDS=()
    if [[ -r "${GUARD_STATE}/record" ]]; then text="$(<"${GUARD_STATE}/record")"; fi
    if [[ "${text}" =~ ^written\ ([0-9]{1,12}) ]]; then written="${BASH_REMATCH[1]}"; fi
    if [[ "${SHARED_RECORD}" =~ ^written\ ([0-9]{1,12}) ]]; then shared="${BASH_REMATCH[1]}"; fi
    if ((shared > written)); then text="${SHARED_RECORD}"; fi
    while read -r kind first rest; do
        case "${kind}" in
            alarm) ALARMS["${first} ${rest%% *}"]="${rest#* }" ;;
            hold) HOLDS["${first}"]="${rest}" ;;
        esac
    done <<<"${text}"
}

record_text() {
    local key
    printf 'written %(%s)T\n' -1
    for key in "${!ALARMS[@]}"; do printf 'alarm %s %s\n' "${key}" "${ALARMS[${key}]}"; done | sort
    for key in "${!HOLDS[@]}"; do printf 'hold %s %s\n' "${key}" "${HOLDS[${key}]}"; done | sort
}

# write_record: only when there is something new to remember; the first line is the time.
write_record() {
    local text before=""
    text="$(record_text)"
    if [[ -r "${GUARD_STATE}/record" ]]; then before="$(<"${GUARD_STATE}/record")"; fi
    if [[ "${text#*$'\n'}" != "${before#*$'\n'}" ]]; then cf_write "${GUARD_STATE}/record" 0644 <<<"${text}"; fi
}

# state_text: for guard.sh on the nodes.
state_text() {
    local name pair
    for name in "${!TOTAL[@]}"; do
        printf 'partition %s %s' "${name}" "${TOTAL[${name}]}"
        for pair in "${!ALARMS[@]}"; do
            if [[ "${pair% *}" == "${name}" && "${ALARMS[${pair}]}" != *ends:* ]]; then printf ' %s' "${pair##* }"; fi
        done
        printf '\n'
    done | sort
    for name in "${!NODE_PARTITIONS[@]}"; do printf 'node %s %s\n' "${name}" "${NODE_PARTITIONS[${name}]}"; done | sort
}

# alarm_text: for people; empty without an alarm.
alarm_text() {
    local pair partition since source hold
    for pair in "${!ALARMS[@]}"; do
        read -r since source _ <<<"${ALARMS[${pair}]}"
        partition="${pair% *}" hold="new jobs wait, the guard has set the partition down"
        if [[ "${HOLDS[${partition}]:-}" == left ]]; then hold="an administrator decides about new jobs"; fi
        # shellcheck disable=SC2086 # words
        set -- ${FAILING[${pair}]:-}
        TZ=UTC printf 'partition %s: %s fails on %s of %s nodes, since %(%FT%TZ)T by %s; no node is drained for it, %s\n' \
            "${partition}" "${pair##* }" "$#" "${TOTAL[${partition}]:-0}" "${since}" "${source}" "${hold}"
    done | sort
}

# write_folder STATE ALARM: in a process of its own, because the share may hang. The heartbeat comes last.
write_folder() {
    # Missing, it is not mounted: another one on the mount point would be seen by nobody.
    if [[ ! -d "${GUARD_FOLDER}" ]]; then return 1; fi
    if [[ -r "${GUARD_STATE}/record" ]]; then cf_copy "${GUARD_STATE}/record" "${GUARD_FOLDER}/record" 0644 || return; fi
    if [[ -n "$2" ]]; then
        cf_write "${GUARD_FOLDER%.guard}/ALARM" 0644 <<<"$2" || return
    else
        rm -f "${GUARD_FOLDER%.guard}/ALARM" || return
    fi
    cf_write "${GUARD_FOLDER}/state" 0644 <<<"$1" || return
    touch "${GUARD_FOLDER}/state"
}

tell_nodes() {
    local state alarm
    if [[ -z "${GUARD_FOLDER}" ]]; then return; fi
    state="$(state_text)"
    alarm="$(alarm_text)"
    if ! guard_ask "${FOLDER_S}" write_folder "${state}" "${alarm}"; then
        cf_warn "${GUARD_FOLDER#"${CF_ROOT}"} cannot be written: nodes drain as if there were no guard"
    fi
}
