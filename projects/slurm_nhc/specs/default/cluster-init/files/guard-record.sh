#!/usr/bin/env bash
# What guard-watch.sh remembers from look to look, and what it tells nodes and people. Sourced by guard-watch.sh.
#
# The record is on the scheduler's own disk, because the share may be what is gone, with a copy beside the results for the
# other scheduler of two: the newer one counts.

readonly GUARD_STATE="${CF_STATE_DIR}/guard"
# By "PARTITION CHECK": since when, by which source, and in how many looks it was over or `ends:` and
# since when that was enough. By partition: see hold_and_lift.
# FLOORS by "PARTITION CHECK": since when a deep check is missed by so many that its floor or the image is at fault.
declare -A ALARMS=() HOLDS=() FLOORS=()
SHARED_RECORD=""

read_record() {
    local text="" now written=0
    printf -v now '%(%s)T' -1
    if cf_given "${GUARD_STATE}/record" "${GUARD_BYTES}"; then text="${REPLY}"; fi
    if record_written "${text}"; then written="${REPLY}"; fi
    # shellcheck disable=SC2154 # of guard-rule.sh
    if [[ -n "${SHARED_RECORD}" ]] && record_written "${SHARED_RECORD}" && ((REPLY > written && REPLY <= now + GUARD[window_s])); then
        if take_record "${SHARED_RECORD}"; then return; fi
        cf_warn "${GUARD_FOLDER#"${CF_ROOT}"}/record is not what a scheduler writes: not used"
    fi
    take_record "${text}" || cf_warn "${GUARD_STATE}/record is damaged: what can be read of it counts"
}

# record_written TEXT: when it was written, in REPLY; 1 when it does not say so.
record_written() { [[ "${1%%$'\n'*}" =~ ^written\ ([0-9]+)$ ]] && cf_number "${BASH_REMATCH[1]}"; }

# take_record TEXT: ALARMS and HOLDS; 1 when some line has another form, which counts for nothing.
take_record() {
    local line whole=0
    local -r alarm="^alarm (${GUARD_NAME} ${GUARD_CHECK}) ([1-9][0-9]{0,11} (claims|reasons) (0|[1-9][0-9]{0,5}|ends:[1-9][0-9]{0,11}))$"
    local -r floor="^floor (${GUARD_NAME} ${GUARD_CHECK}) ([1-9][0-9]{0,11})$"
    local -r hold="^hold (${GUARD_NAME}) (left|(asked|down) [A-Za-z0-9:]{0,60}/[0-9]{0,12})$"
    ALARMS=() HOLDS=() FLOORS=()
    while IFS= read -r line; do
        if [[ "${line}" =~ ${alarm} ]]; then
            ALARMS["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"
        elif [[ "${line}" =~ ${floor} ]]; then
            FLOORS["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"
        elif [[ "${line}" =~ ${hold} ]]; then
            HOLDS["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"
        elif [[ "${line}" != "written "* && -n "${line}" ]]; then
            whole=1
        fi
    done <<<"$1"
    return "${whole}"
}

record_text() {
    local key
    printf 'written %(%s)T\n' -1
    for key in "${!ALARMS[@]}"; do printf 'alarm %s %s\n' "${key}" "${ALARMS[${key}]}"; done | sort
    for key in "${!FLOORS[@]}"; do printf 'floor %s %s\n' "${key}" "${FLOORS[${key}]}"; done | sort
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
    for pair in "${!FLOORS[@]}"; do printf 'floor %s\n' "${pair}"; done | sort
    for name in "${!NODE_PARTITIONS[@]}"; do printf 'node %s %s\n' "${name}" "${NODE_PARTITIONS[${name}]}"; done | sort
    for name in "${!NODE_BOOTS[@]}"; do printf 'boots %s %s\n' "${name}" "${NODE_BOOTS[${name}]}"; done | sort
}

# alarm_text: for people; empty without an alarm.
alarm_text() {
    local pair partition since source hold missed of
    for pair in "${!ALARMS[@]}"; do
        read -r since source _ <<<"${ALARMS[${pair}]}"
        partition="${pair% *}" hold="new jobs wait, the guard has set the partition down"
        if [[ "${HOLDS[${partition}]:-}" == left ]]; then hold="an administrator decides about new jobs"; fi
        # shellcheck disable=SC2086 # words
        set -- ${FAILING[${pair}]:-}
        TZ=UTC printf 'partition %s: %s fails on %s of %s nodes, since %(%FT%TZ)T by %s; no node is drained for it, %s\n' \
            "${partition}" "${pair##* }" "$#" "${TOTAL[${partition}]:-0}" "${since}" "${source}" "${hold}"
    done | sort
    for pair in "${!FLOORS[@]}"; do
        count_floor "${pair}" || true
        read -r missed of source <<<"${REPLY}"
        TZ=UTC printf 'partition %s: %s fails on %s of %s nodes, since %(%FT%TZ)T by %s; %s\n' "${pair% *}" "deep_checks.${pair##* }" \
            "${missed}" "${of}" "${FLOORS[${pair}]}" "${source}" "its floor or the image is at fault: further nodes that miss it only warn, and jobs start"
    done | sort
}

# write_folder STATE ALARM: in a process of its own, because the share may hang. The heartbeat comes last.
write_folder() {
    # Missing, it is not mounted: another one on the mount point would be seen by nobody.
    if [[ -L "${GUARD_FOLDER}" || ! -d "${GUARD_FOLDER}" ]]; then return 1; fi
    if [[ "${IS_PAIR}" == true && -r "${GUARD_STATE}/record" ]]; then put_shared "${GUARD_FOLDER}/record" <"${GUARD_STATE}/record" || return; fi
    if [[ -n "$2" ]]; then
        put_shared "${GUARD_FOLDER%.guard}/ALARM" <<<"$2" || return
    elif [[ ! -L "${GUARD_FOLDER%.guard}" && -f "${GUARD_FOLDER%.guard}/ALARM" ]]; then
        rm -f "${GUARD_FOLDER%.guard}/ALARM" || return
    fi
    put_shared "${GUARD_FOLDER}/state" <<<"$1"
}

# put_shared FILE: a new file from standard input takes its place, so that no link there is followed and its time is now.
put_shared() {
    local -r path="$1" new="${1%/*}/.${1##*/}.cycleforge.${BASHPID}"
    if [[ -L "${path%/*}" ]]; then return 1; fi
    rm -f "${path%/*}/.${path##*/}.cycleforge."* || return
    # noclobber opens only what does not exist.
    (umask 022 && set -o noclobber && exec cat >"${new}") && mv -fT "${new}" "${path}"
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
