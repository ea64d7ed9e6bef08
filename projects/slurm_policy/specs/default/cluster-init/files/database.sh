#!/usr/bin/env bash
# Accounts, users and QoS in slurmdbd. Sourced by policy.sh.

# where_of KIND NAME: how sacctmgr finds the object, in WHERE; its kind for sacctmgr is the first word.
declare -ga WHERE=()
where_of() {
    case "$1" in
        qos) WHERE=(qos where "name=$2") ;;
        account) WHERE=(account where "name=$2" "cluster=${CLUSTER}") ;;
        member) WHERE=(user where "name=${2#*/}" "account=${2%%/*}" "cluster=${CLUSTER}") ;;
        user) WHERE=(user where "name=$2") ;;
        *) cf_die "slurmdbd has no '$1'" ;;
    esac
}

# shown KIND NAME KEY: what slurmdbd has, in REPLY; 1 when there is no such object. `exists` shows the name.
shown() {
    local -r kind="$1" name="$2"
    local key="$3" output
    local -a query=()
    if [[ "${key}" == parent ]]; then key=parentname; fi
    if [[ "${key}" == exists ]]; then key=name; fi
    case "${kind}" in
        qos) query=(qos where "name=${name}" "format=name,${key}") ;;
        user) query=(user where "name=${name}" "format=user,${key/name/user}") ;;
        account) query=(assoc where "account=${name}" "cluster=${CLUSTER}" "format=user,${key/#name/account}") ;;
        member) query=(assoc where "account=${name%%/*}" "user=${name#*/}" "cluster=${CLUSTER}" "format=user,${key/#name/user}") ;;
        *) cf_die "slurmdbd has no '${kind}'" ;;
    esac
    output="$(timeout 60 sacctmgr -nP show "${query[@]}")" || cf_die "slurmdbd does not answer: sacctmgr show ${query[*]}"
    # The row of an account itself is the one without a user.
    if [[ "${kind}" == account ]]; then output="$(grep -m 1 '^|' <<<"${output}" || true)"; fi
    if [[ -z "${output}" ]]; then return 1; fi
    output="${output%%$'\n'*}"
    REPLY="${output#*|}"
}

load_database() {
    local id kind name key
    for id in "${OF_DATABASE[@]+"${OF_DATABASE[@]}"}"; do
        read -r kind name key <<<"${id}"
        if [[ "${key}" == exists ]]; then make "${id}" "${kind}" "${name}"; else put "${id}" "${kind}" "${name}" "${key}"; fi
    done
}

# make ID KIND NAME: add the object unless it is there. One that we made and an administrator deleted stays deleted.
make() {
    local -r id="$1" kind="$2" name="$3"
    local -a words=()
    if shown "${kind}" "${name}" exists; then
        if [[ -z "${APPLIED[${id}]+there}" ]]; then recorded "${id}" found ""; fi
        return
    fi
    if [[ -n "${APPLIED[${id}]+there}" ]]; then
        left "${kind} ${name}, which the definition has, was deleted by an administrator"
        return
    fi
    case "${kind}" in
        qos) words=(qos "${name}") ;;
        account) words=(account "${name}" "cluster=${CLUSTER}" "parent=${WANTED[${id}]}") ;;
        *) words=(user "name=${name#*/}" "account=${name%%/*}" "cluster=${CLUSTER}") ;;
    esac
    change sacctmgr -i add "${words[@]}"
    did "${kind} ${name} added"
    recorded "${id}" made ""
}

# put ID KIND NAME KEY: the value of the definition, if it is another one than was applied last.
put() {
    local -r id="$1" kind="$2" name="$3" key="$4"
    local -r value="${WANTED[${id}]}"
    local before="${APPLIED[${id}]:-}"
    if [[ -n "${APPLIED[${id}]+there}" && "${before}" == "${value}" ]]; then return; fi
    if ! shown "${kind}" "${name}" "${key}" && [[ "${DRY_RUN}" == false ]]; then
        left "${key} of ${kind} ${name}, which is not there"
        return
    fi
    where_of "${kind}" "${name}"
    dropped_amounts "${key}" "${before}" "${value}"
    change sacctmgr -i modify "${WHERE[@]}" set "${key}=${REPLY}${value}"
    did "${kind} ${name}: ${key}=${value}"
    if [[ "${DRY_RUN}" == true ]]; then return; fi
    shown "${kind}" "${name}" "${key}" || cf_die "${kind} ${name} has gone while ${key} was set"
    recorded "${id}" "${value}" "${REPLY}"
}

# dropped_amounts KEY OLD NEW: sacctmgr keeps the amounts that a new list does not name, so `cpu=-1,` for those, in REPLY.
dropped_amounts() {
    local part result=""
    local -a parts=()
    REPLY=""
    if [[ "$1" != *tres* || -z "$2" ]]; then return; fi
    IFS=',' read -r -a parts <<<"$2"
    for part in "${parts[@]}"; do
        if [[ ",$3" != *",${part%%=*}="* ]]; then result+="${part%%=*}=-1,"; fi
    done
    REPLY="${result}"
}

# ---------------------------------------------------------------- what the definition no longer has

# The last rows first: members before their account, an account before the one above it.
withdraw_all() {
    local place id kind name key
    local -a rows=("${RECORDED[@]+"${RECORDED[@]}"}")
    for ((place = ${#rows[@]} - 1; place >= 0; place--)); do
        id="${rows[place]}"
        read -r kind name key <<<"${id}"
        if [[ ! "${kind}" =~ ^(qos|account|member|user)$ || -n "${WANTED[${id}]+there}" ]]; then continue; fi
        if [[ "${key}" == exists ]]; then
            withdraw "${id}" "${kind}" "${name}"
        elif [[ -n "${WANTED["${kind} ${name} exists"]+there}" || "${APPLIED["${kind} ${name} exists"]:-}" == found ]]; then
            unset_value "${id}" "${kind}" "${name}" "${key}"
        elif [[ "${kind}" == user ]]; then
            # It goes with the last account of the user; a user who has another one keeps what is there.
            if [[ "${key}" == adminlevel ]]; then unset_value "${id}" "${kind}" "${name}" "${key}"; else forget "${id}"; fi
        fi
    done
}

# unset_value ID KIND NAME KEY: back to Slurm's default, if nobody changed it since.
unset_value() {
    local -r id="$1" kind="$2" name="$3" key="$4"
    if ! shown "${kind}" "${name}" "${key}"; then
        forget "${id}"
        return
    fi
    if [[ "${REPLY}" != "${SEEN[${id}]}" ]]; then
        left "${key} of ${kind} ${name} is '${REPLY}', which an administrator set"
    else
        default_of "${key}" "${APPLIED[${id}]}"
        where_of "${kind}" "${name}"
        change sacctmgr -i modify "${WHERE[@]}" set "${key}=${REPLY}"
        did "${kind} ${name}: ${key} back to Slurm's default"
    fi
    forget "${id}"
}

# default_of KEY VALUE: what takes a value away, in REPLY. Source: https://slurm.schedmd.com/sacctmgr.html
default_of() {
    local part
    local -a parts=()
    case "$1" in
        *tres*)
            IFS=',' read -r -a parts <<<"$2"
            REPLY=""
            for part in "${parts[@]}"; do REPLY+="${REPLY:+,}${part%%=*}=-1"; done
            ;;
        preempt | qos) REPLY="" ;;
        preemptmode) REPLY=cluster ;;
        parent) REPLY=root ;;
        fairshare) REPLY=1 ;;
        priority) REPLY=0 ;;
        adminlevel) REPLY=None ;;
        *) REPLY=-1 ;;
    esac
}

# withdraw ID KIND NAME: delete what we made, if nobody changed or used it.
withdraw() {
    local -r id="$1" kind="$2" name="$3"
    local why=""
    if [[ "${APPLIED[${id}]}" == made ]] && shown "${kind}" "${name}" exists; then
        if changed_by_others "${kind}" "${name}"; then
            why="an administrator changed ${REPLY}"
        elif below "${kind}" "${name}"; then
            why="it has ${REPLY} below it"
        elif used "${kind}" "${name}"; then
            why="jobs have used it"
        fi
        if [[ -n "${why}" ]]; then
            where_of "${kind}" "${name}"
            left "${kind} ${name}, which the definition no longer has: ${why}. To delete it: sacctmgr delete ${WHERE[*]}"
        else
            where_of "${kind}" "${name}"
            change sacctmgr -i delete "${WHERE[@]}"
            did "${kind} ${name} deleted"
        fi
    fi
    forget_object "${kind}" "${name}"
}

forget_object() {
    local id
    for id in "${!APPLIED[@]}"; do
        if [[ "${id}" == "$1 $2 "* ]]; then unset -v 'APPLIED[$id]' 'SEEN[$id]'; fi
    done
    write_record
}

# changed_by_others KIND NAME: whether a value that we applied is another one now; its key in REPLY.
changed_by_others() {
    local id key
    for id in "${!APPLIED[@]}"; do
        if [[ "${id}" != "$1 $2 "* || "${id}" == *" exists" ]]; then continue; fi
        key="${id##* }"
        if shown "$1" "$2" "${key}" && [[ "${REPLY}" != "${SEEN[${id}]}" ]]; then
            REPLY="${key}"
            return 0
        fi
    done
    return 1
}

# below KIND NAME: whether an account has users or accounts, which would be deleted with it; them in REPLY.
below() {
    local rows
    if [[ "$1" != account ]]; then return 1; fi
    rows="$(timeout 60 sacctmgr -nP show assoc where "cluster=${CLUSTER}" format=account,user,parentname)" ||
        cf_die "slurmdbd does not answer"
    rows="$(awk -F'|' -v name="$2" '($1 == name && $2 != "") { print $2 } ($3 == name) { print $1 }' <<<"${rows}")"
    REPLY="${rows//$'\n'/, }"
    [[ -n "${REPLY}" ]]
}

# used KIND NAME: whether a job of it waits, runs or is on record, which would lose what it refers to. sacct leaves out
# jobs that are held, squeue those that have ended.
used() {
    local jobs
    local -a which=() waiting=()
    case "$1" in
        qos) which=("--qos=$2") waiting=("${which[@]}") ;;
        account) which=("--accounts=$2") waiting=("--account=$2") ;;
        *) which=("--accounts=${2%%/*}" "--uid=${2#*/}") waiting=("--account=${2%%/*}" "--user=${2#*/}") ;;
    esac
    jobs="$(timeout 60 squeue --noheader --all --format=%A "${waiting[@]}" 2>/dev/null)" || return 0
    if [[ -n "${jobs}" ]]; then return 0; fi
    jobs="$(timeout 300 sacct --noheader --allocations --parsable2 --allusers --clusters="${CLUSTER}" --starttime=2000-01-01 \
        --format=JobIDRaw "${which[@]}" 2>/dev/null)" || {
        # A user whom the system does not know is refused; such a user has no jobs here, or we cannot tell: keep.
        return 0
    }
    [[ -n "${jobs}" ]]
}
