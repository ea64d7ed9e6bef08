#!/usr/bin/env bash
# The file from which NCCL learns how GPUs and InfiniBand hang together: a virtual machine does not show it. Sourced by
# checks.sh; reads two small files.

# topology_of FILE: what its line NCCL_TOPO_FILE= names, in REPLY; 1 without one.
topology_of() {
    local line
    REPLY=""
    if [[ ! -r "$1" ]]; then return 1; fi
    while IFS= read -r line || [[ -n "${line}" ]]; do
        if [[ "${line}" =~ ^[[:space:]]*NCCL_TOPO_FILE=(.*[^[:space:]]) ]]; then REPLY="${BASH_REMATCH[1]}"; fi
    done <"$1"
    [[ -n "${REPLY}" ]]
}

# is_topology FILE: whether NCCL can read it: its root is <system>. Source: Azure/azhpc-images, topology/*.xml; NVIDIA/nccl,
# src/graph/xml.cc
is_topology() {
    local line i
    for ((i = 0; i < 10; i++)); do
        IFS= read -r line || return 1
        if [[ "${line}" == *"<system"* ]]; then return 0; fi
    done <"$1"
    return 1
}

# file=PATH link=PATH: the file of this VM size, and the name that images give it at boot. NCCL reads /etc/nccl.conf, jobs
# also get what misc_ndv4 has written.
#
# NCCL ignores a file that is not there, and works with less bandwidth: a warning. It takes a wrong one as it is, and every
# job dies with one that it cannot parse: both fail. Images without any file are slower, no more.
check_nccl_topology() {
    local -r check=nccl_topology file="${GIVEN[file]}" link="${GIVEN[link]:-}"
    local source named=""
    for source in /etc/nccl.conf /etc/cycleforge/nccl.env; do
        topology_of "${CF_ROOT}${source}" || continue
        named="${REPLY}"
        if [[ ! -r "${CF_ROOT}${named}" ]]; then
            record warn "${check}" "" "" "" "" "${named}, named by ${source}, is not there: NCCL guesses the topology"
            return
        fi
        if ! is_topology "${CF_ROOT}${named}"; then
            record fail "${check}" "" "" "" "" "${named}, named by ${source}, is no topology: NCCL ends every job"
            return
        fi
        if [[ "${named}" == "${file}" || "${named}" == "${link}" ]] || same_text "${named}" "${file}"; then continue; fi
        if [[ "${named}" == /opt/microsoft/* || -r "${CF_ROOT}${file}" ]]; then
            record fail "${check}" "" "" "" "" "${source} names ${named}, this VM size has ${file}"
        else
            record warn "${check}" "" "" "" "" "${source} names ${named}, and this image has no ${file} to compare it with"
        fi
        return
    done
    if [[ -n "${named}" ]]; then
        record pass "${check}" "" "" "" "" "${named}"
    elif [[ -r "${CF_ROOT}${file}" ]]; then
        record warn "${check}" "" "" "" "" "/etc/nccl.conf does not name ${file}: NCCL guesses the topology"
    else
        record warn "${check}" "" "" "" "" "this image has no ${file}: NCCL guesses the topology"
    fi
}

# same_text A B: whether B is readable and has the text of A, under whatever name a site keeps it.
same_text() { [[ -r "${CF_ROOT}$2" && "$(<"${CF_ROOT}$1")" == "$(<"${CF_ROOT}$2")" ]]; }
