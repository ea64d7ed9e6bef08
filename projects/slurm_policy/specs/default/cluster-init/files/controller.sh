#!/usr/bin/env bash
# What slurmctld knows: the QoS that a partition may name, and whether it has read azure.conf. Sourced by policy.sh.
#
# slurmctld ends when the line of a partition names a QoS that it does not know. slurmdbd tells it at its start, and whenever
# sacctmgr changes one while it runs. Without slurmdbd it starts with those of its saved state.
# Source: https://github.com/SchedMD/slurm/blob/slurm-25.11/src/slurmctld/read_config.c (_build_single_partitionline_info)
# shellcheck disable=SC2034 # the other files of policy.sh read what this one sets

# A slurmctld that finds its clustername ends when one of these is missing.
# Source: https://github.com/SchedMD/slurm/tree/slurm-25.11/src (uses of clustername_existed)
readonly STATE_FILES=(assoc_usage fed_mgr_state job_state node_state resv_state trigger_state)
declare -gA KNOWN=()
declare -ga NEEDED=()
CONTROLLER=""

# controller_answers: a start asks once, because a second scheduler that is gone costs the whole time, and systemd waits 90 s.
controller_answers() {
    if [[ "${STARTS}" == false || -z "${CONTROLLER}" ]]; then
        CONTROLLER=no
        if timeout 20 scontrol ping >/dev/null 2>&1; then CONTROLLER=yes; fi
    fi
    [[ "${CONTROLLER}" == yes ]]
}

# needed_qos: the QoS that partitions name, in NEEDED.
needed_qos() {
    local id name
    local -a names=()
    NEEDED=()
    for id in "${ORDER[@]+"${ORDER[@]}"}"; do
        if [[ ! "${id}" =~ ^(partition|overlay)\ .*\ (QOS|AllowQos)$ ]]; then continue; fi
        IFS=',' read -r -a names <<<"${WANTED[${id}]}"
        for name in "${names[@]}"; do
            if [[ " ${NEEDED[*]-} " != *" ${name} "* ]]; then NEEDED+=("${name}"); fi
        done
    done
}

# known_qos: those of them with which slurmctld starts and reads azure.conf anew, in KNOWN.
known_qos() {
    local name output="" wanted
    KNOWN=()
    needed_qos
    if ((${#NEEDED[@]} == 0)); then return; fi
    printf -v wanted '%s,' "${NEEDED[@]}"
    if controller_answers && output="$(timeout 20 scontrol show assoc_mgr flags=qos "qos=${wanted%,}" 2>/dev/null)"; then
        output="$(sed -n 's/^QOS=\([^(]*\)(.*/\1/p' <<<"${output}")"
        # So that a start without slurmdbd keeps the limits of partitions.
        if [[ "${DRY_RUN}" == false ]]; then cf_write "${SAVED_QOS}" 0644 <<<"${output}"; fi
    elif ! output="$(qos_of_database)" && cf_given "${SAVED_QOS}"; then
        output="${REPLY}"
    fi
    for name in "${NEEDED[@]}"; do
        if [[ $'\n'"${output}"$'\n' == *$'\n'"${name}"$'\n'* ]] || will_be_made "${name}"; then KNOWN["${name}"]=yes; fi
    done
}

qos_of_database() { timeout 15 sacctmgr -nP show qos format=name 2>/dev/null; }

# will_be_made NAME: whether this QoS would exist if this were not a dry run.
will_be_made() {
    [[ "${DRY_RUN}" == true && -n "${WANTED["qos $1 exists"]+there}" && -z "${APPLIED["qos $1 exists"]+there}" ]]
}

# make_needed_qos: create the QoS that partitions name, without their limits: slurmdbd knows resources such as gres/gpu
# only after slurmctld has registered them.
make_needed_qos() {
    local name
    needed_qos
    if ((${#NEEDED[@]} == 0)); then return; fi
    if ! qos_of_database >/dev/null; then
        cf_log "slurmdbd does not answer yet, partitions get their QoS when it does"
        return "${NOT_YET}"
    fi
    for name in "${NEEDED[@]}"; do
        if [[ -n "${WANTED["qos ${name} exists"]+there}" ]]; then make "qos ${name} exists" qos "${name}"; fi
    done
}

# reconfigure: let slurmctld read azure.conf if it has not yet. A refusal is remembered, and the next run tries again.
reconfigure() {
    local output
    if [[ ! -e "${UNREAD}" ]]; then return; fi
    if [[ "${DRY_RUN}" == false ]]; then
        if ! controller_answers; then return; fi
        if ! output="$(timeout 120 scontrol reconfigure 2>&1)"; then
            cf_die "slurmctld did not read its partitions anew" "${output//$'\n'/; }" \
                "look at /var/log/slurmctld/slurmctld.log; the next run tries again"
        fi
        rm -f "${UNREAD}"
    fi
    did "slurmctld has read its partitions anew"
}

# forget_failed_start: a slurmctld whose very first start failed leaves a clustername and no state. Every later start would
# end with "No Assoc usage file ... to recover", whatever was corrected.
forget_failed_start() {
    local -r state="${AZURE_CONF%/*}/spool/slurmctld"
    local file
    if [[ ! -e "${state}/clustername" ]]; then return; fi
    for file in "${STATE_FILES[@]}"; do
        if [[ -e "${state}/${file}" || -e "${state}/${file}.old" ]]; then return; fi
    done
    rm -f "${state}/clustername"
    cf_log "slurmctld has never saved its state: ${state}/clustername removed, so that it starts as a new one"
}
