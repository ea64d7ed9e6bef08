#!/usr/bin/env bash
# Slurm's topology, from what azslurm says of the nodes that run. Runs on the scheduler, as root.
#
# azslurm empties the file that it is told to write before it knows whether it has an answer, leaves out nodes that did
# not answer it, and may succeed with nothing to say. So it writes a file of its own; only an answer that holds what it must
# replaces the file in use, and where Slurm does not take it, everything is as before.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

# A link to the folder of this cluster on /sched.
readonly SLURM_LINK="${CF_ROOT}/etc/slurm/prolog.d"
# Every node can write that folder at any time, so nothing is written through a name there, and what a file says is read
# once, after azslurm. The answer lies where only root can write.
readonly NEW="${CF_ROOT}/run/cycleforge/topology.conf.new"
readonly FILE_BYTES=4194304
readonly SLURM_LIMIT_S=60 AZSLURM_LIMIT_S=1800 SETTLE_S=30
readonly FIRST="# CycleForge topology: begin" LAST="# CycleForge topology: end"

USAGE="usage:
  topology.sh update tree|block [options] [-- OPTION...]   ask azslurm, check its answer, then put it in the place of
                                                           topology.conf, and switch the topology on
  topology.sh check tree|block FILE [options]              check a file and change nothing

options:
  --partition NAMES  partitions, separated by commas; every node of them that runs must be in the answer
  --block-size N     nodes of a block; 18 for a rack of GB200 or GB300. Default 1
  --fewer            nodes may be missing that run, or that the present file has
  --dry-run          show the answer and what would be said to Slurm; change nothing

OPTION is handed to 'azslurm topology'. Without one, 'tree' is by scale set (-v) and 'block' by NVLink domain (-n)."

VERB="" PLUGIN="" FILE="" PARTITION="" BLOCK_SIZE=1 FEWER=false DRY_RUN=false
OPTIONS=()
FOLDER="" ANSWER=""
declare -A PRESENT=() OWNER=()

usage() {
    printf '%s\n' "$1" "${USAGE}" >&2
    exit 2
}

read_arguments() {
    VERB="${1:-}" PLUGIN="${2:-}"
    case "${VERB}" in
        update | check) ;;
        -h | --help)
            printf '%s\n' "${USAGE}"
            exit 0
            ;;
        *) usage "expected update or check, not '${VERB}'" ;;
    esac
    if [[ "${PLUGIN}" != tree && "${PLUGIN}" != block ]]; then usage "expected tree or block, not '${PLUGIN}'"; fi
    shift 2
    if [[ "${VERB}" == check ]]; then
        FILE="${1:-}"
        if [[ -z "${FILE}" ]]; then usage "no file is given"; fi
        FILE="$(realpath "${FILE}")"
        shift
    fi
    while (($#)); do
        case "$1" in
            --fewer) FEWER=true ;;
            --dry-run) DRY_RUN=true ;;
            --partition)
                if [[ ! "${2:-}" =~ ^[A-Za-z0-9_-]+(,[A-Za-z0-9_-]+)*$ ]]; then usage "--partition needs names separated by commas"; fi
                PARTITION+="${PARTITION:+,}$2"
                shift
                ;;
            --block-size)
                if [[ ! "${2:-}" =~ ^[1-9][0-9]{0,3}$ ]]; then usage "--block-size needs a whole number from 1"; fi
                BLOCK_SIZE="$2"
                shift
                ;;
            --)
                shift
                OPTIONS=("$@")
                break
                ;;
            *) usage "'$1' is no option" ;;
        esac
        shift
    done
    if [[ "${PLUGIN}" == block && -z "${PARTITION}" && "${VERB}" == update ]]; then
        usage "block needs --partition: azslurm asks the nodes of a partition for their NVLink domain"
    fi
}

ask_slurm() { timeout --kill-after=5 "${SLURM_LIMIT_S}" "$@"; }

# ---------------------------------------------------------------- the answer

# ask_azslurm FILE: its answer in the file. It goes by its exit code and by what it wrote, never by one of them alone.
ask_azslurm() {
    local -a words=()
    if [[ -n "${PARTITION}" ]]; then words+=(-p "${PARTITION}"); fi
    if ((${#OPTIONS[@]})); then
        words+=("${OPTIONS[@]}")
    elif [[ "${PLUGIN}" == block ]]; then
        words+=(-n --block --block_size "${BLOCK_SIZE}")
    else
        words+=(-v)
    fi
    if ! timeout --kill-after=10 "${AZSLURM_LIMIT_S}" azslurm topology "${words[@]}" -o "$1"; then
        cf_die "azslurm topology ${words[*]} failed" "its own lines are above" "correct the cause; topology.conf is as before"
    fi
}

declare -A IN_ANSWER=()
UNITS=0

# read_topology TEXT: nodes in IN_ANSWER, switches with nodes or blocks in UNITS; 1 with a reason in REPLY for a file that
# Slurm would not take as such.
read_topology() {
    local line word names name nodes seen_names=" " kind=SwitchName
    if [[ "${PLUGIN}" == block ]]; then kind=BlockName; fi
    IN_ANSWER=() UNITS=0
    while IFS= read -r line; do
        line="${line%%#*}"
        line="${line%"${line##*[![:space:]]}"}"
        if [[ -z "${line}" || "${line}" == BlockSizes=* && "${PLUGIN}" == block ]]; then continue; fi
        if [[ ! "${line}" =~ ^${kind}=([^[:space:]]+)[[:space:]]+((Nodes|Switches)=[^[:space:]]+)$ ]]; then
            REPLY="the line '${line:0:80}' is not one of a topology of the kind ${PLUGIN}"
            return 1
        fi
        name="${BASH_REMATCH[1]}" word="${BASH_REMATCH[2]}"
        if [[ "${seen_names}" == *" ${name} "* ]]; then
            REPLY="${kind} ${name} occurs twice"
            return 1
        fi
        seen_names+="${name} "
        # nvidia-smi says N/A, or a UUID of zeros, where a node has not joined its NVLink domain: no block of such nodes is real.
        if [[ "${kind}" == BlockName && "${name}" =~ ^block_(unknown|N/A|[0-]+_[0-9]+)$ ]]; then
            REPLY="block ${name} holds nodes that have not joined an NVLink domain: ${word#Nodes=}"
            return 1
        fi
        if [[ "${word}" == Switches=* ]]; then continue; fi
        UNITS=$((UNITS + 1))
        REPLY="scontrol cannot read its list of nodes ${word#Nodes=}"
        nodes="$(ask_slurm scontrol show hostnames "${word#Nodes=}")" || return 1
        while IFS= read -r names; do
            if [[ -n "${IN_ANSWER[${names}]:-}" ]]; then
                REPLY="node ${names} is in ${IN_ANSWER[${names}]} and in ${name}"
                return 1
            fi
            IN_ANSWER["${names}"]="${name}"
        done <<<"${nodes}"
    done <<<"$1"
    if ((UNITS == 0)); then
        REPLY="it holds no ${kind} with nodes"
        return 1
    fi
}

# missing_of: first the nodes that it lacks, in REPLY; 1 if none.
missing_of() {
    local name
    REPLY=""
    for name in "$@"; do
        if [[ -z "${IN_ANSWER[${name}]:-}" ]]; then REPLY+="${REPLY:+,}${name}"; fi
    done
    [[ -n "${REPLY}" ]]
}

# check_answer FILE: its text in ANSWER; stop unless it may replace the file in use.
check_answer() {
    local -A known=()
    local -a running=() present=()
    local name state text
    read_topology "${PRESENT[topology.conf]}" && present=("${!IN_ANSWER[@]}")
    cf_given "$1" "${FILE_BYTES}" || cf_die "$1 is no plain file of at most ${FILE_BYTES} bytes" "topology.conf is as before" "look at it"
    ANSWER="${REPLY}"
    read_topology "${ANSWER}" || cf_die "the answer is not used: ${REPLY}" "topology.conf is as before" "look at $1"
    text="$(ask_slurm sinfo --noheader --Node --format='%N %t')" || cf_die "sinfo failed" "slurmctld does not answer" "try again"
    while read -r name state; do known["${name}"]=1; done <<<"${text}"
    for name in "${!IN_ANSWER[@]}"; do
        if [[ -z "${known[${name}]:-}" ]]; then
            cf_die "the answer is not used: it has the node ${name}, which Slurm does not" "topology.conf is as before" \
                "run 'azslurm scale', then this again"
        fi
    done
    if "${FEWER}"; then return; fi
    local -a words=()
    if [[ -n "${PARTITION}" ]]; then words=(--partition="${PARTITION}"); fi
    text="$(ask_slurm sinfo --noheader --Node "${words[@]}" --format='%N %t')" || cf_die "sinfo failed" "slurmctld does not answer" "try again"
    while read -r name state; do
        # ~ is powered down, # powering up, % powering down, ! about to; * does not answer.
        if [[ "${state}" =~ ^(idle|alloc|mix|comp|drain|drng|plnd|resv|maint)[-@$]*$ ]]; then running+=("${name}"); fi
    done <<<"${text}"
    if ((${#running[@]})) && missing_of "${running[@]}"; then
        cf_die "the answer is not used: nodes that run are missing in it: ${REPLY}" "azslurm leaves out nodes that did not answer it" \
            "see why; or drain them and add --fewer"
    fi
    local -a kept=()
    for name in "${present[@]}"; do
        if [[ -n "${known[${name}]:-}" ]]; then kept+=("${name}"); fi
    done
    if ((${#kept[@]})) && missing_of "${kept[@]}"; then
        cf_die "the answer is not used: nodes of the present topology.conf are missing in it: ${REPLY}" \
            "azslurm knows only nodes that run" "start them first, or add --fewer"
    fi
}

# ---------------------------------------------------------------- switching over

# settings: what site_specific.conf must say, in REPLY.
settings() {
    local version
    REPLY="TopologyPlugin=topology/${PLUGIN}"
    version="$(ask_slurm scontrol --version)" || return 1
    # A step's ranks follow the blocks; Slurm before 25.11 does not know the word and would not start.
    if [[ "${PLUGIN}" == block && "$(printf '%s\n' 25.11 "${version#slurm* }" | sort -V | head -n 1)" == 25.11 ]]; then
        REPLY+=$'\n'"TopologyParam=BlockAsNodeRank"
    fi
}

# site_conf SETTINGS: site_specific.conf with our block in the place of an earlier one, in REPLY.
site_conf() {
    local line inside=false text=""
    while IFS= read -r line; do
        if [[ "${line}" == "${FIRST}" ]]; then inside=true; fi
        if ! "${inside}"; then
            if [[ "${line,,}" =~ ^[[:space:]]*(topologyplugin|topologyparam)[[:space:]]*= ]]; then
                cf_die "site_specific.conf already says ${line}" "two lines would contradict each other" "remove it there, then run this again"
            fi
            text+="${line}"$'\n'
        fi
        if [[ "${line}" == "${LAST}" ]]; then inside=false; fi
    done <<<"${PRESENT[site_specific.conf]}"
    REPLY="${text}${FIRST}"$'\n'"$1"$'\n'"${LAST}"
}

# slurm_has_it: whether slurmctld answers, with this plugin, and shows a node of the answer.
slurm_has_it() {
    local name word config shown
    if ! ask_slurm scontrol ping 2>/dev/null | grep -q UP; then return 1; fi
    config="$(ask_slurm scontrol show config)" || return 1
    if [[ ! "${config}" =~ TopologyPlugin[[:space:]]*=[[:space:]]*topology/${PLUGIN} ]]; then return 1; fi
    for name in "${!IN_ANSWER[@]}"; do break; done
    # Up to 24.11 a node is named as it is; newer ones, with several topologies, take a bare word for the name of one.
    for word in "${name}" "node=${name}"; do
        shown="$(ask_slurm scontrol show topology "${word}" 2>/dev/null)" || continue
        if [[ "${shown}" == *"${IN_ANSWER[${name}]}"* ]]; then return 0; fi
    done
    return 1
}

# put NAME TEXT [SUFFIX]: whole, with the owner of the file of that name.
put() { cf_write "${FOLDER}/$1${3:-}" 0644 "${OWNER[$1]}" <<<"$2"; }

switch_over() {
    local wanted stamp name
    settings || cf_die "scontrol --version failed"
    wanted="${REPLY}"
    site_conf "${wanted}"
    local -r new_site="${REPLY}"
    if [[ "${ANSWER}" == "${PRESENT[topology.conf]}" && "${new_site}" == "${PRESENT[site_specific.conf]}" ]] && slurm_has_it; then
        cf_log "topology.conf is up to date: ${#IN_ANSWER[@]} nodes in ${UNITS}"
        return
    fi
    if "${DRY_RUN}"; then
        printf '%s\n' "${ANSWER}"
        cf_log "would write this as topology.conf, and into site_specific.conf: ${wanted//$'\n'/, }"
        return
    fi
    TZ=UTC printf -v stamp '%(%Y%m%dT%H%M%SZ)T' -1
    for name in "${!PRESENT[@]}"; do put "${name}" "${PRESENT[${name}]}" ".${stamp}"; done
    put topology.conf "${ANSWER}"
    put site_specific.conf "${new_site}"
    if ask_slurm scontrol reconfigure && cf_wait_for "${SETTLE_S}" slurm_has_it; then
        cf_log "topology/${PLUGIN} with ${#IN_ANSWER[@]} nodes in ${UNITS}; the files before are topology.conf.${stamp} and site_specific.conf.${stamp}"
        return
    fi
    for name in "${!PRESENT[@]}"; do put "${name}" "${PRESENT[${name}]}"; done
    ask_slurm scontrol reconfigure || true
    cf_die "Slurm does not take it; both files are as before" "slurmctld's log says why; the answer is ${NEW}" \
        "if 'scontrol ping' says DOWN, start slurmctld again; Slurm before 23.11 changes its TopologyPlugin only so"
}

# read_present: the files in use, in PRESENT, and their owners.
read_present() {
    local name
    for name in topology.conf site_specific.conf; do
        if ! cf_given "${FOLDER}/${name}" "${FILE_BYTES}" || ! OWNER["${name}"]="$(stat -c %u:%g "${FOLDER}/${name}")"; then
            cf_die "${FOLDER}/${name} is no plain file of at most ${FILE_BYTES} bytes" "the slurm project writes a plain one" \
                "find out who put it there, then remove it"
        fi
        PRESENT["${name}"]="${REPLY}"
    done
}

main() {
    read_arguments "$@"
    FOLDER="$(readlink -f "${SLURM_LINK}" || true)"
    if [[ ! -d "${FOLDER}" ]]; then
        cf_die "${SLURM_LINK} is missing" "this is not the scheduler of a cluster" "run it on the scheduler"
    fi
    FOLDER="${FOLDER%/*}"
    # Also before azslurm, which takes minutes.
    read_present
    if [[ "${VERB}" == check ]]; then
        check_answer "${FILE}"
        cf_log "${FILE} may be used: ${#IN_ANSWER[@]} nodes in ${UNITS}"
        return
    fi
    exec 9>"${CF_ROOT}/run/cycleforge-topology.lock"
    flock --nonblock 9 || cf_die "another run is going on" "two would overwrite each other's files" "wait for it, or end it"
    mkdir -p "${NEW%/*}"
    rm -f "${NEW}"
    ask_azslurm "${NEW}"
    if [[ ! -e "${NEW}" ]]; then cf_die "azslurm wrote nothing" "topology.conf is as before" "run 'azslurm topology' by hand"; fi
    read_present
    check_answer "${NEW}"
    switch_over
    rm -f "${NEW}"
}

cf_main main "$@"
