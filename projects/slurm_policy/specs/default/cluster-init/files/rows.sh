#!/usr/bin/env bash
# The rows that the definition wants, and the record of those that were applied. Sourced by policy.sh.
#
# A row: KIND NAME KEY=VALUE. The record: KIND NAME KEY|VALUE|SEEN, one a line. SEEN is what Slurm showed after VALUE was
# applied: as long as it shows the same, nobody else has changed it.
# shellcheck disable=SC2034 # the other files of policy.sh read what this one sets

# Rows become words of commands, so nothing that a shell or sacctmgr would take for something else gets through.
readonly ROW='^(qos|account|member|user|reservation|partition|overlay) [A-Za-z0-9][A-Za-z0-9._/-]* [A-Za-z]+=[A-Za-z0-9=,.:;_/+-]*$'
# The same holds for the record, which every node can write: KIND NAME KEY, VALUE (of `file` a digest) and SEEN.
readonly RECORDED_ROW='^(file|(qos|account|member|user|reservation) ([A-Za-z0-9][A-Za-z0-9._/-]*) ([A-Za-z]+))\|([A-Za-z0-9=,.:; /_+-]*)\|([^[:cntrl:]]*)$'
readonly FILE_BYTES=4194304
declare -gA WANTED=() APPLIED=() SEEN=()
declare -ga ORDER=() RECORDED=() OF_DATABASE=()
CLUSTER="" RECORD="" AZURE_CONF="" SAVED_QOS="" UNREAD=""
DONE=0 LEFT=0 DRY_MARK=""

# read_wanted FILE: `KIND NAME KEY` to its value in WANTED, in their order in ORDER.
read_wanted() {
    local line id number=0
    WANTED=() ORDER=() OF_DATABASE=()
    while IFS= read -r line || [[ -n "${line}" ]]; do
        number=$((number + 1))
        if [[ -z "${line}" ]]; then continue; fi
        if [[ ! "${line}" =~ ${ROW} ]]; then
            cf_die "line ${number} of $1 is no row of a policy: '${line:0:60}'" "" "build again and copy the file anew"
        fi
        id="${line%%=*}"
        WANTED["${id}"]="${line#*=}"
        ORDER+=("${id}")
        if [[ "${id}" =~ ^(qos|account|member|user)\  ]]; then OF_DATABASE+=("${id}"); fi
    done <"$1"
}

# azure.conf lies in /sched/<cluster>, whose name is also Slurm's name of the cluster.
find_cluster() {
    local folder target
    # The link of the slurm project is followed once: what lies there every node can replace by a further link.
    target="$(readlink "${CF_ROOT}/etc/slurm/azure.conf")" || true
    if [[ "${target}" != /* ]]; then target="${CF_ROOT}/etc/slurm/${target:-azure.conf}"; fi
    folder="$(readlink -f "${target%/*}" || true)"
    AZURE_CONF="${folder}/${target##*/}"
    if [[ ! -e "${AZURE_CONF}" ]]; then
        cf_die "/etc/slurm/azure.conf is missing on the scheduler" "the slurm project has not configured this node" \
            "check that cyclecloud/slurm:scheduler runs before this project (Order below 10000)"
    fi
    CLUSTER="${folder##*/}" RECORD="${folder}/cycleforge-policy.record"
    SAVED_QOS="${folder}/cycleforge-policy.qos" UNREAD="${folder}/cycleforge-policy.unread"
}

# ---------------------------------------------------------------- the record

read_record() {
    local line
    APPLIED=() SEEN=() RECORDED=()
    if [[ ! -e "${RECORD}" && ! -L "${RECORD}" ]]; then return; fi
    if ! cf_given "${RECORD}" "${FILE_BYTES}"; then
        cf_die "${RECORD} is no plain file of at most ${FILE_BYTES} bytes" "it says what was applied, so nothing is applied without it" \
            "find out who put it there and remove it; policy.sh load then applies everything"
    fi
    while IFS= read -r line; do
        if [[ -z "${line}" ]]; then continue; fi
        if [[ ! "${line}" =~ ${RECORDED_ROW} ]]; then
            cf_warn "${RECORD} has a line that is no row of a policy, which counts for nothing: '${line:0:60}'"
            continue
        fi
        if [[ -z "${APPLIED[${BASH_REMATCH[1]}]+there}" ]]; then RECORDED+=("${BASH_REMATCH[1]}"); fi
        APPLIED["${BASH_REMATCH[1]}"]="${BASH_REMATCH[5]}" SEEN["${BASH_REMATCH[1]}"]="${BASH_REMATCH[6]}"
    done <<<"${REPLY}"
}

write_record() {
    local id text=""
    if [[ "${DRY_RUN}" == true ]]; then return; fi
    for id in "${RECORDED[@]+"${RECORDED[@]}"}"; do
        if [[ -n "${APPLIED[${id}]+there}" ]]; then text+="${id}|${APPLIED[${id}]}|${SEEN[${id}]}"$'\n'; fi
    done
    cf_write "${RECORD}" 0644 <<<"${text%$'\n'}"
}

# recorded ID VALUE SEEN: the row is applied. Written at once, so a run that is cut off goes on behind it.
recorded() {
    if [[ -z "${APPLIED[$1]+there}" ]]; then RECORDED+=("$1"); fi
    APPLIED["$1"]="$2" SEEN["$1"]="$3"
    write_record
}

forget() {
    unset -v 'APPLIED[$1]' 'SEEN[$1]'
    write_record
}

forget_all() {
    APPLIED=() SEEN=() RECORDED=()
}

# is_recorded FILE: whether exactly this policy was loaded as a whole.
is_recorded() {
    [[ "${APPLIED[file]:-}" == "$(sha256sum <"$1")" ]]
}

record_file() { recorded file "$(sha256sum <"$1")" ""; }

# ---------------------------------------------------------------- commands

# did WORDS...: count and say what is done.
did() {
    DONE=$((DONE + 1))
    cf_log "$*${DRY_MARK}"
}

# left WORDS...: count and say what an administrator has changed, which stays.
left() {
    LEFT=$((LEFT + 1))
    cf_log "left as it is: $*"
}

# change COMMAND...: run it unless this is a dry run; its words are shown when it fails.
change() {
    local output
    if [[ "${DRY_RUN}" == true ]]; then return 0; fi
    if ! output="$(timeout 300 "$@" 2>&1)"; then
        # Slurm says it so when there is nothing to do, and returns 1; the last words are those of 24.11.
        if [[ "${output}" =~ Nothing\ (new\ added|modified)|Request\ didn.t\ affect\ anything ]]; then return 0; fi
        cf_die "Slurm refused: $*" "${output//$'\n'/; }" \
            "correct the definition or Slurm; the next run goes on with this row"
    fi
}
