#!/usr/bin/env bash
# What the definition says of partitions, in azure.conf. Sourced by policy.sh.
#
# azslurm writes the file: `PartitionName=P Nodes=... MaxTime=INFINITE ...`. A second line for P stops slurmctld, and so does
# a partition with a node that azslurm did not write, for example because the quota allows fewer. So the line of P itself
# is edited, and a further partition over P takes the nodes of that line as they stand there. A comment keeps the line of
# azslurm; a file that azslurm writes anew has no such comment and is edited anew.
# shellcheck disable=SC2034 # the other files of policy.sh read what this one sets

readonly ORIGINAL="# azslurm wrote, CycleForge changed: "
readonly ADDED="# CycleForge added: "
declare -gA NODES_OF=()

edit_partitions() {
    local text given mode owner
    known_qos
    if ! cf_given "${AZURE_CONF}" "${FILE_BYTES}"; then
        cf_die "${AZURE_CONF} is no plain file of at most ${FILE_BYTES} bytes" "azslurm writes a plain one" \
            "find out who put it there and remove it; 'azslurm partitions' shows what azslurm writes"
    fi
    given="${REPLY}"
    text="$(edited "${given}")"
    if [[ "${text}" == "${given}" ]]; then return; fi
    if [[ "${DRY_RUN}" == true ]]; then
        did "partitions in azure.conf would change"
        return
    fi
    note_unread
    # slurmctld runs as another user, who must read what root writes here.
    read -r owner mode < <(stat -c '%u:%g %a' "${AZURE_CONF}")
    cf_write "${AZURE_CONF}" "${mode}" "${owner}" <<<"${text}"
    did "partitions in azure.conf written: $(named_partitions)"
}

# note_unread: remember that slurmctld has to read azure.conf anew. The one that starts now reads it anyway, but the one of
# a second scheduler may be running.
note_unread() {
    if [[ "${STARTS}" == false ]] || controller_answers; then
        cf_write "${UNREAD}" 0644 <<<"azure.conf was changed"
    else
        rm -f "${UNREAD}"
    fi
}

named_partitions() {
    local id names=" "
    for id in "${ORDER[@]+"${ORDER[@]}"}"; do
        if [[ "${id}" =~ ^(partition|overlay)\ ([^ ]+) && "${names}" != *" ${BASH_REMATCH[2]} "* ]]; then
            names+="${BASH_REMATCH[2]} "
        fi
    done
    printf '%s\n' "${names# }"
}

# edited TEXT: its lines with the policy in them, on standard output.
edited() {
    local line name
    local -a lines=()
    original_lines "$1" lines
    for line in "${lines[@]+"${lines[@]}"}"; do
        if [[ "${line}" =~ ^PartitionName=([^[:space:]]+)[[:space:]]+Nodes=([^[:space:]]+) ]]; then
            name="${BASH_REMATCH[1]}"
            NODES_OF["${name}"]="${BASH_REMATCH[2]}"
            with_settings "partition ${name}" "${line}"
            if [[ "${REPLY}" != "${line}" ]]; then printf '%s%s\n' "${ORIGINAL}" "${line}"; fi
            printf '%s\n' "${REPLY}"
        else
            printf '%s\n' "${line}"
        fi
    done
    further_partitions
}

# original_lines TEXT NAME: the lines as azslurm wrote them, into the array NAME.
original_lines() {
    local line skip=false
    local -n into="$2"
    while IFS= read -r line; do
        if [[ "${skip}" == true ]]; then
            skip=false
        elif [[ "${line}" == "${ORIGINAL}"* ]]; then
            into+=("${line#"${ORIGINAL}"}")
            skip=true
        elif [[ "${line}" == "${ADDED}"* ]]; then
            skip=true
        else
            into+=("${line}")
        fi
    done <<<"$1"
}

# with_settings "KIND NAME" LINE: the line with the keys of these rows, each once, in REPLY.
with_settings() {
    local id key value line="$2"
    local word
    local -a words=()
    for id in "${ORDER[@]+"${ORDER[@]}"}"; do
        if [[ "${id}" != "$1 "* ]]; then continue; fi
        key="${id##* }"
        if [[ "${key}" == over ]]; then continue; fi
        value_of_key "$1" "${key}" "${WANTED[${id}]}"
        value="${REPLY}"
        if [[ -z "${value}" ]]; then continue; fi
        read -r -a words <<<"${line}"
        line=""
        for word in "${words[@]}"; do
            if [[ "${word,,}" != "${key,,}="* ]]; then line+="${word} "; fi
        done
        line+="${key}=${value}"
    done
    REPLY="${line}"
}

# value_of_key "KIND NAME" KEY VALUE: the value without QoS that slurmctld does not know, in REPLY; empty when none is left.
value_of_key() {
    local name result=""
    local -a names=()
    REPLY="$3"
    if [[ "$2" != QOS && "$2" != AllowQos ]]; then return; fi
    IFS=',' read -r -a names <<<"$3"
    for name in "${names[@]}"; do
        if [[ -n "${KNOWN[${name}]:-}" ]]; then
            result+="${result:+,}${name}"
        else
            cf_warn "$1 is without $2=${name} for now: slurmctld does not know this QoS"
        fi
    done
    REPLY="${result}"
}

# A further partition whose partitions azslurm left out, for want of quota, is left out too.
further_partitions() {
    local id name base nodes
    local -a bases=()
    for id in "${ORDER[@]+"${ORDER[@]}"}"; do
        if [[ ! "${id}" =~ ^overlay\ ([^ ]+)\ over$ ]]; then continue; fi
        name="${BASH_REMATCH[1]}" nodes=""
        IFS=',' read -r -a bases <<<"${WANTED[${id}]}"
        for base in "${bases[@]}"; do
            if [[ -n "${NODES_OF[${base}]:-}" ]]; then nodes+="${nodes:+,}${NODES_OF[${base}]}"; fi
        done
        if [[ -z "${nodes}" ]]; then
            cf_warn "partition ${name} is left out: azslurm wrote none of ${WANTED[${id}]}"
            continue
        fi
        with_settings "overlay ${name}" "PartitionName=${name} Nodes=${nodes} Default=NO State=UP"
        printf '%s%s\n%s\n' "${ADDED}" "${name} over ${WANTED[${id}]}" "${REPLY}"
    done
}
