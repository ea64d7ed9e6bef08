#!/usr/bin/env bash
# What the cluster template tells a node about its VM size: the attributes cycleforge.vm_size.*, which the generator writes
# out of its catalogue. Sourced beside cycleforge.sh by projects that read them; the build places a copy in those.
#
# An attribute is one line: the number of the format, the VM size, then records between ' | '. `from SOURCE` names where
# the records after it come from; %XX is a byte that this format, a template or a shell would take for something else.
# shellcheck disable=SC2034 # the CF_ variables are results for the script that sources this

readonly CF_SIZE_FORMAT=1

# cf_vm_size: full name in lower case, or unknown, in REPLY. The agent knows it; instance metadata is the second source.
cf_vm_size() {
    cf_attribute azure.metadata.compute.vmSize ""
    if [[ -z "${REPLY}" ]] && command -v curl >/dev/null; then
        REPLY="$(curl --silent --fail --noproxy '*' --max-time 5 --header Metadata:true \
            'http://169.254.169.254/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text' || true)"
    fi
    REPLY="${REPLY,,}"
    if [[ ! "${REPLY}" =~ ^[a-z0-9_-]+$ ]]; then REPLY=unknown; fi
}

# cf_size_records KEY VM_SIZE: the records of an attribute in CF_RECORDS, their sources in CF_SOURCES. CF_SIZE_KNOWN is
# false, and there are none, where the attribute is missing, cannot be read or describes another size than this node has:
# an operator can change the VM size of a node array in the portal, and figures of another size prove nothing here.
# A node array of several sizes has the attributes of each, with the size in their names: cycleforge.vm_size.SIZE.base.
declare -ga CF_RECORDS=() CF_SOURCES=()
CF_SIZE_KNOWN=false
cf_size_records() {
    local -r key="$1" wanted="$2"
    local -a parts=()
    local part source=null
    CF_RECORDS=() CF_SOURCES=() CF_SIZE_KNOWN=false
    cf_attribute "${key}" ""
    if [[ -z "${REPLY}" ]]; then cf_attribute "${key%.*}.${wanted}.${key##*.}" ""; fi
    if [[ -z "${REPLY}" ]]; then return; fi
    IFS='|' read -r -a parts <<<"${REPLY}"
    if ! cf_describes "${key}" "${parts[0]% }" "${wanted}"; then return; fi
    CF_SIZE_KNOWN=true
    for part in "${parts[@]:1}"; do
        part="${part# }"
        part="${part% }"
        printf -v part '%b' "${part//%/\\x}"
        if [[ "${part}" == "from "* ]]; then
            source="${part#from }"
        else
            CF_RECORDS+=("${part}") CF_SOURCES+=("${source}")
        fi
    done
}

# cf_describes KEY START VM_SIZE: whether the first words of an attribute name our format and this size.
cf_describes() {
    local -r key="$1" start="$2" wanted="$3"
    if [[ ! "${start}" =~ ^([0-9]+)\ ([a-z0-9_-]+)$ ]]; then
        cf_warn "attribute ${key} cannot be read, it begins with '${start:0:40}': its figures are not used"
        return 1
    fi
    if ((10#${BASH_REMATCH[1]} != CF_SIZE_FORMAT)); then
        cf_warn "attribute ${key} has format ${BASH_REMATCH[1]}, this project reads ${CF_SIZE_FORMAT}: its figures are not" \
            "used; build the definition and import the cluster again"
        return 1
    fi
    if [[ "${BASH_REMATCH[2]}" != "${wanted}" ]]; then
        cf_warn "the VM size of this node is ${wanted}, the cluster describes ${BASH_REMATCH[2]} (${key}): its figures are not" \
            "used; give the partition this size in the definition, build it and import the cluster again"
        return 1
    fi
}

# cf_size_figures KEY VM_SIZE: the KEY=VALUE records of an attribute in CF_FIGURES. A figure that nobody published is null
# and stays out, so that a missing and an unknown figure look the same to a script.
declare -gA CF_FIGURES=()
cf_size_figures() {
    local record
    CF_FIGURES=()
    cf_size_records "$1" "$2"
    for record in "${CF_RECORDS[@]}"; do
        if [[ "${record}" == *=* && "${record#*=}" != null ]]; then CF_FIGURES["${record%%=*}"]="${record#*=}"; fi
    done
}
