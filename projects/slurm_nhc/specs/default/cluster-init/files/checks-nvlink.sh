#!/usr/bin/env bash
# NVLinks, GPU by GPU: as many as the VM size has, and as many of them up. Sourced by checks.sh.

# read_nvlinks: what nvidia-smi nvlink prints, by GPU: links listed and links up, and lines without a link. A link counts
# once, so that what belongs to a GPU whose own line is missing does not fill up another one.
declare -a LINKED_GPUS=()
declare -A LINKS_LISTED=() LINKS_UP=() LINK_WORDS=()
read_nvlinks() {
    local line gpu="" seen=" "
    local -i listed=0 up=0
    LINKED_GPUS=() LINKS_LISTED=() LINKS_UP=() LINK_WORDS=()
    while IFS= read -r line; do
        if [[ "${line}" =~ ^GPU\ ([0-9]{1,3}): ]]; then
            gpu="${BASH_REMATCH[1]}" seen=" " listed=0 up=0
            LINKED_GPUS+=("${gpu}")
            LINKS_LISTED["${gpu}"]=0 LINKS_UP["${gpu}"]=0 LINK_WORDS["${gpu}"]=""
        elif [[ -z "${gpu}" ]]; then
            continue
        elif [[ "${line}" =~ ^[[:space:]]*Link\ ([0-9]{1,3}):[[:space:]]*(.*) ]]; then
            if [[ "${seen}" == *" ${BASH_REMATCH[1]} "* ]]; then continue; fi
            seen+="${BASH_REMATCH[1]} "
            listed+=1
            # A rate of nothing is no link that is up, whichever driver may print it: no public capture has one.
            if [[ "${BASH_REMATCH[2]}" =~ ^([0-9]+(\.[0-9]+)?)[[:space:]]+GB/s && "${BASH_REMATCH[1]}" == *[1-9]* ]]; then up+=1; fi
            LINKS_LISTED["${gpu}"]="${listed}" LINKS_UP["${gpu}"]="${up}"
        elif [[ -n "${line//[[:space:]]/}" ]]; then
            LINK_WORDS["${gpu}"]+="${LINK_WORDS[${gpu}]:+ }${line}"
        fi
    done <<<"${OUTPUT}"
}

# gpus=N links=N active=N: how many links each GPU lists, and how many of them are up on a healthy one; nothing is wired to
# the others. A GPU without any link gets them back with the next load of the driver. One that the driver does not list at
# all is a finding of gpu_count, not a second one here.
# Source: Azure/azhpc-images issues 443 and 448; the words: utkuozdemir/nvidia_gpu_exporter, internal/captures
check_gpu_nvlink() {
    local gpu words found="" divided="" absent="" severity=fail
    local -i number missing=0 lost listed up
    local -r gpus="${GIVEN[gpus]:-}" links="${GIVEN[links]:-}" active="${GIVEN[active]:-}"
    if [[ ! "${gpus} ${links} ${active}" =~ ^[1-9][0-9]?\ [1-9][0-9]?\ [1-9][0-9]?$ ]]; then
        no_baseline gpu_nvlink_inactive links
        return
    fi
    if ! ask_smi nvlink nvlink --status; then
        record_outcome gpu_nvlink
        return
    fi
    read_nvlinks
    if ((${#LINKED_GPUS[@]} == 0)); then
        not_measured gpu_nvlink "nvidia-smi nvlink printed no GPU"
        return
    fi
    query_gpus
    column index
    for ((number = 0; number < gpus; number++)); do
        if [[ -n "${LINKS_LISTED[${number}]:-}" ]]; then continue; fi
        if ((${#COLUMN[@]} > 0)) && [[ " ${COLUMN[*]} " != *" GPU ${number}:"* ]]; then
            absent+="${absent:+, }GPU ${number}"
            continue
        fi
        found+="${found:+, }GPU ${number}: not listed"
        missing+=active
    done
    for gpu in "${LINKED_GPUS[@]}"; do
        words="${LINK_WORDS[${gpu}]}"
        if [[ "${words}" == *"in MIG mode"* ]]; then
            divided+="${divided:+, }GPU ${gpu}"
            continue
        fi
        listed="${LINKS_LISTED[${gpu}]}" up="${LINKS_UP[${gpu}]}"
        lost=$((active - up > links - listed ? active - up : links - listed))
        if ((lost <= 0)); then continue; fi
        missing+=lost
        if ((up > 0)); then
            words=""
            if ((up < active)); then words="${up} of ${active} links active"; fi
            if ((listed < links)); then words+="${words:+, }$((links - listed)) of ${links} links not listed"; fi
            found+="${found:+, }GPU ${gpu}: ${words}"
            continue
        fi
        severity=reboot
        case "${words,,}" in
            "" | *"all links are inactive"*) found+="${found:+, }GPU ${gpu}: all links inactive" ;;
            *) found+="${found:+, }GPU ${gpu}: ${words:0:80}" ;;
        esac
    done
    if [[ -n "${divided}" ]] && ((missing == 0)); then
        not_measured gpu_nvlink "${divided}: links are not shown in MIG mode"
        return
    fi
    if [[ -n "${absent}" ]] && ((missing == 0)); then
        not_measured gpu_nvlink "${absent}: not listed"
        return
    fi
    judge gpu_nvlink_inactive "${missing}" le 0 "of $((gpus * active)) links" "${severity}" "${found}"
}
