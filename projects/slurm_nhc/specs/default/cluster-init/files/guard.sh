#!/usr/bin/env bash
# On a node: whether a drain is held back because too many nodes fail the same check. Sourced by health.sh.
#
# A node says first that it fails, then counts: of nodes that fail in the same moment all but the first few see enough
# others. It holds a drain back only while the scheduler's watch lives, which then keeps jobs away (guard-watch.sh). In every
# doubt (no folder, no watch, an answer too late) it drains as if there were no guard.

# shellcheck source-path=SCRIPTDIR source=guard-rule.sh disable=SC1091
. "${HERE}/guard-rule.sh"
readonly GUARD_S=2
# No job waits for a deep run.
readonly COMPARE_S=30
readonly CLAIMS="${CF_STATE_DIR}/health/claims"
# What this node has claimed: CHECK to `claimed`, or to `open` when nobody knows whether that arrived.
declare -A CLAIMED=()

# read_claimed: CLAIMED of this boot; 1 at the first look after a boot, when the folder may still have what the node, or the
# VM that had its name, claimed before.
read_claimed() {
    local check state boot=""
    CLAIMED=()
    boot_id
    if [[ ! -r "${CLAIMS}" ]]; then return 1; fi
    {
        read -r boot || true
        while read -r check state; do
            if guard_covers "${check}"; then CLAIMED["${check}"]="${state}"; fi
        done
    } <"${CLAIMS}"
    if [[ "${boot}" != "${REPLY:-unknown}" ]]; then
        CLAIMED=()
        return 1
    fi
}

write_claimed() {
    local check text
    boot_id
    text="${REPLY:-unknown}"
    for check in "${!CLAIMED[@]}"; do text+=$'\n'"${check} ${CLAIMED[${check}]}"; done
    # A full disk must not keep a sick node in service.
    if ! cf_write "${CLAIMS}" 0644 2>/dev/null <<<"${text}"; then
        rm -f "${CLAIMS%/*}/.${CLAIMS##*/}.cycleforge."* 2>/dev/null || true
        cf_warn "${CLAIMS} cannot be written: what this node claims now is claimed again at the next run"
    fi
}

# passed_now: the claimed checks that pass again, in REPLY. What could not be measured has not passed. Until a second run
# passes the prolog refuses jobs, so the claim stays as long, and the partition down with it.
passed_now() {
    local check verdict passed=""
    local -r passes="${NOTES[passes]:-0}"
    REPLY=""
    if [[ -n "${FOUND["quick heal"]:-}" ]] && ((passes + 1 < PASSES_TO_RESUME)); then return; fi
    for check in "${!CLAIMED[@]}"; do
        verdict="${VERDICTS[${check}]:-}"
        if [[ "${verdict}" == @(pass|warn|no_baseline) || (-z "${verdict}" && "${COUNTS[not_measured]}" == 0) ]]; then
            passed+="${passed:+ }${check}"
        fi
    done
    REPLY="${passed}"
}

# guard_holds: 0 when this run failed, and only by checks that fail on so many nodes that draining this one too would help
# nobody. Keeps the node's claims as they are, so it is called after every run.
guard_holds() {
    local check passed failing="" new="" first=false only_shared=true answer
    if ! guard_folder || ! guard_figures "${HERE}/guard.tsv"; then return 1; fi
    read_claimed || first=true
    for check in "${!VERDICTS[@]}"; do
        case "${VERDICTS[${check}]}" in
            # A driver or daemon that needs a reboot is broken by an update as often as by its machine, then everywhere.
            heal | reboot)
                if guard_covers "${check}"; then
                    failing+="${failing:+ }${check}"
                    if [[ "${CLAIMED[${check}]:-open}" == open ]]; then
                        new+="${new:+ }${check}"
                        CLAIMED["${check}"]=open
                    fi
                else
                    only_shared=false
                fi
                ;;
            # These are of the machine: a GPU that needs a reset, a host that has to go.
            reset | service) only_shared=false ;;
        esac
    done
    passed_now
    passed="${REPLY}"
    if [[ "${first}" == false && -z "${passed}${failing}" ]]; then return 1; fi
    if [[ "${first}" == true && -n "${failing}" ]]; then write_claimed; fi
    cf_node_name
    if ! guard_ask "${GUARD_S}" guard_decide "${GUARD_FOLDER}" "${REPLY}" "${first}" "${passed}" "${new}" "${failing}"; then
        cf_log "${GUARD_FOLDER#"${CF_ROOT}"} did not answer in ${GUARD_S} s: nobody knows whether other nodes fail the same" >&2
        write_claimed
        return 1
    fi
    answer="${REPLY}"
    for check in ${passed}; do unset -v 'CLAIMED[$check]'; done
    if [[ "${answer}" != off* ]]; then
        for check in ${new}; do CLAIMED["${check}"]=claimed; done
    fi
    write_claimed
    case "${answer}" in
        shared) forgive_strike ;;
        "held "*)
            forgive_strike
            if [[ "${only_shared}" == true ]]; then
                cf_log "not drained, ${answer#held }: the cause is shared, and the scheduler keeps new jobs away" >&2
                return 0
            fi
            ;;
        "off "*) cf_log "no guard against a shared cause: ${answer#off }" >&2 ;;
    esac
    return 1
}

# guard_decide FOLDER NODE FIRST PASSED NEW FAILING: in a process of its own, because each step may hang. Prints `held` and
# why, `free`, `shared` when what passes again has an alarm, or `off` and why.
guard_decide() {
    local -r folder="$1" node="$2" first="$3"
    local -a passed=() new=() failing=()
    # shellcheck disable=SC2034 # read_guard_state fills them
    local -A total=() member=() boots=() alarms=() floors=()
    local check partition text=""
    local -a mine=()
    shopt -s nullglob
    read -r -a passed <<<"$4"
    read -r -a new <<<"$5"
    read -r -a failing <<<"$6"
    withdraw_claims "${folder}" "${node}" "${first}" "${passed[*]}" || return
    if ((${#failing[@]} + ${#passed[@]} == 0)); then
        printf 'free'
        return
    fi
    read_guard_state "${folder}" || return 0
    IFS=, read -r -a mine <<<"${member[${node}]:-}"
    if ((${#failing[@]} == 0)); then
        for check in "${passed[@]}"; do
            for partition in "${mine[@]}"; do
                if [[ " ${alarms[${partition}]:-} " == *" ${check} "* ]]; then text=shared; fi
            done
        done
        printf '%s' "${text:-free}"
        return
    fi
    if ((${#mine[@]} == 0)); then
        printf 'off %s is in no partition that the watch of the scheduler counts' "${node}"
        return
    fi
    for check in "${new[@]}"; do
        for partition in "${mine[@]}"; do
            if ! claim "${folder}" "${check}@${partition}" "${node}"; then
                printf 'off %s takes no claims' "${folder#"${CF_ROOT}"}"
                return
            fi
        done
    done
    # Jobs reach a node through each of its partitions.
    for check in "${failing[@]}"; do
        for partition in "${mine[@]}"; do
            if [[ " ${alarms[${partition}]:-} " == *" ${check} "* ]]; then
                text+="${text:+; }${check} has an alarm in partition ${partition}"
                continue
            fi
            count_claims "${folder}" "${check}@${partition}" "${node}" "${partition}"
            if ! guard_trips "${REPLY}" "${total[${partition}]:-0}"; then
                printf 'free'
                return
            fi
            text+="${text:+; }${check} fails on ${REPLY} of ${total[${partition}]} nodes of partition ${partition}"
        done
    done
    printf 'held %s' "${text}"
}

# guard_waives: after a deep run, which of its misses only warn, in REPLY: those that most nodes that measured the same miss, too.
# Says in the folder what this node has missed and what not.
guard_waives() {
    local check misses="" passes=""
    REPLY=""
    if ! guard_folder || ! guard_figures "${HERE}/guard.tsv"; then return 0; fi
    for check in "${!VERDICTS[@]}"; do
        if ! guard_covers "${check}"; then continue; fi
        case "${VERDICTS[${check}]}" in
            heal) misses+="${misses:+ }${check}" ;;
            pass | warn) passes+="${passes:+ }${check}" ;;
        esac
    done
    cf_node_name
    if ! guard_ask "${COMPARE_S}" guard_compare "${GUARD_FOLDER}" "${REPLY}" "${misses}" "${passes}"; then
        cf_log "${GUARD_FOLDER#"${CF_ROOT}"} did not answer: nobody knows whether other nodes miss the same" >&2
        REPLY=""
    elif [[ "${REPLY}" == "off "* ]]; then
        cf_log "nobody compares this deep run: ${REPLY#off }" >&2
        REPLY=""
    fi
}

# guard_compare FOLDER NODE MISSED PASSED: in a process of its own, because each step may hang. A node says first what it has
# missed, then counts, as for claims.
guard_compare() {
    local -r folder="$1" node="$2"
    # shellcheck disable=SC2034 # read_guard_state fills them
    local -A total=() member=() boots=() alarms=() floors=()
    local check partition waived text=""
    local -a mine=() old=()
    read_guard_state "${folder}" || return 0
    IFS=, read -r -a mine <<<"${member[${node}]:-${boots[${node}]:-}}"
    for check in $3; do old+=("deep_passed.${check}@*/${node}"); done
    for check in $4; do old+=("deep_checks.${check}@*/${node}"); done
    guard_remove "${folder}" "${old[@]}" || return
    for partition in "${mine[@]}"; do
        for check in $3; do claim "${folder}" "deep_checks.${check}@${partition}" "${node}" || return; done
        for check in $4; do claim "${folder}" "deep_passed.${check}@${partition}" "${node}" || return; done
    done
    # Jobs reach a node through each of its partitions.
    for check in $3; do
        waived=false
        for partition in "${mine[@]}"; do
            waived=true
            if [[ -n "${floors["${partition} ${check}"]:-}" ]]; then continue; fi
            count_deep "${folder}" "${check}@${partition}"
            if ! guard_spreads "${REPLY% *}" "${REPLY#* }"; then
                waived=false
                break
            fi
        done
        if [[ "${waived}" == true ]]; then text+="${text:+ }${check}"; fi
    done
    printf '%s' "${text}"
}

# count_deep FOLDER CHECK@PARTITION: how many nodes of the partition have missed it, and how many have measured it, in REPLY.
count_deep() {
    local path node missed=0 measured=0
    while read -r _ path; do
        node="${path##*/}"
        if [[ ",${member[${node}]:-${boots[${node}]:-}}," != *",${2#*@},"* ]]; then continue; fi
        measured=$((measured + 1))
        if [[ "${path}" == deep_checks.* ]]; then missed=$((missed + 1)); fi
    done < <(guard_rows "$1" '(' -path "$1/claims/deep_checks.$2/*" -o -path "$1/claims/deep_passed.$2/*" ')' | sed -n "1,${GUARD_ROWS}p")
    REPLY="${missed} ${measured}"
}

# withdraw_claims FOLDER NODE FIRST PASSED: FIRST is true when all claims of this name are of an earlier boot.
withdraw_claims() {
    local check
    local -a old=()
    for check in $4; do old+=("${check}@*/$2"); done
    if [[ "$3" == true ]]; then old+=("*@*/$2"); fi
    guard_remove "$1" "${old[@]}"
}

# claim FOLDER CHECK@PARTITION NODE: a link there is neither followed nor taken for a claim. To stand in a folder whose path has
# no link is to stay there, whatever takes its place meanwhile.
claim() {
    local -r place="$1/claims/$2"
    local real
    if [[ -L "$1" || -L "$1/claims" ]]; then return 1; fi
    real="$(cd "$1" && pwd -P)" || return
    mkdir -p "${place}" || return
    (
        cd -P "${place}" && [[ "$(pwd -P)" == "${real}/claims/$2" ]] || exit 1
        if [[ -e "$3" || -L "$3" ]]; then
            [[ -f "$3" && ! -L "$3" ]] || exit 1
        else
            # noclobber opens only what does not exist.
            (set -o noclobber && : >"$3") 2>/dev/null || exit 1
        fi
        exec timeout --kill-after=1 "${GUARD_FIND_S}" touch --no-create --no-dereference -- "$3"
    )
}

# read_guard_state FOLDER: total, member, boots, alarms and floors of the caller; prints why not and is 1 when nobody watches.
read_guard_state() {
    local line now beat
    local -r file="$1/state"
    local -r of_partition="^partition (${GUARD_NAME}) (0|[1-9][0-9]{0,5})(( ${GUARD_CHECK})*)$"
    local -r of_floor="^floor (${GUARD_NAME} ${GUARD_CHECK})$" of_boot="^boots (${GUARD_NAME}) (${GUARD_NAME}(,${GUARD_NAME})*)$"
    local -r of_node="^node (${GUARD_NAME}) (${GUARD_NAME}(,${GUARD_NAME})*)$"
    if [[ -L "$1" ]] || ! beat="$(stat -c %Y "${file}")" || ! cf_number "${beat}"; then
        printf 'off the scheduler does not watch'
        return 1
    fi
    beat="${REPLY}"
    printf -v now '%(%s)T' -1
    if ((now - beat > GUARD[window_s] || beat - now > GUARD[window_s])); then
        printf 'off the watch of the scheduler is silent since %s s' "$((now - beat))"
        return 1
    fi
    if ! cf_given "${file}" "${GUARD_BYTES}"; then
        printf 'off %s cannot be read' "${file#"${CF_ROOT}"}"
        return 1
    fi
    while IFS= read -r line; do
        if [[ "${line}" =~ ${of_partition} ]]; then
            total["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}" alarms["${BASH_REMATCH[1]}"]="${BASH_REMATCH[3]}"
        elif [[ "${line}" =~ ${of_node} ]]; then
            member["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"
        elif [[ "${line}" =~ ${of_floor} ]]; then
            floors["${BASH_REMATCH[1]}"]=yes
        elif [[ "${line}" =~ ${of_boot} ]]; then
            boots["${BASH_REMATCH[1]}"]="${BASH_REMATCH[2]}"
        elif [[ -n "${line}" ]]; then
            printf 'off %s is not what a scheduler writes' "${file#"${CF_ROOT}"}"
            return 1
        fi
    done <<<"${REPLY}"
}

# count_claims FOLDER CHECK@PARTITION NODE PARTITION: how many members had begun to fail within the window before this node, and
# with it.
count_claims() {
    local time path own=0 count=0
    local -A began=()
    while read -r time path; do
        cf_number "${time}"
        began["${path##*/}"]="${REPLY}"
    done < <(guard_rows "$1" -path "$1/claims/$2/*" | sed -n "1,${GUARD_ROWS}p")
    own="${began[$3]:-0}"
    for path in "${!began[@]}"; do
        time="${began[${path}]}"
        if [[ ",${member[${path}]:-}," != *",$4,"* ]]; then continue; fi
        if ((time <= own && own - time <= GUARD[window_s])); then count=$((count + 1)); fi
    done
    REPLY="${count}"
}
