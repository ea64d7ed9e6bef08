#!/usr/bin/env bash
# Proves a partition of this cluster: runs the jobs of this folder as gates, finds the nodes that fail, goes on without them.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
# shellcheck source=recipes/lib/environment.sh
. ./prove.d/environment.sh
# shellcheck source=recipes/lib/verdicts.sh
. ./prove.d/verdicts.sh

die() {
    log "ERROR: $*" >&2
    exit 2
}

# shellcheck source=recipes/prove/prove.d/state.sh
. ./prove.d/state.sh
# shellcheck source=recipes/prove/prove.d/slurm.sh
. ./prove.d/slurm.sh
# shellcheck source=recipes/prove/prove.d/judge.sh
. ./prove.d/judge.sh
# shellcheck source=recipes/prove/prove.d/gates.sh
. ./prove.d/gates.sh
# shellcheck source=recipes/prove/prove.d/summary.sh
. ./prove.d/summary.sh

# The node's own health checks lift only drains whose reason begins with their own prefix, so they never lift one of these.
readonly PREFIX="CycleForge prove:"
# Without the options, a run may take so many times what each gate once may take.
readonly ROOM=2

usage() {
    cat <<'TEXT'
usage: ./prove.sh [quick|standard|burn] [options]

  quick       nodes start and pass their checks, one collective, a container (the default)
  standard    quick, then every pair of nodes, collectives over all sizes, storage, a short training run
  burn        standard, then load on every GPU and link for --burn-minutes

  --partition NAME     default: the first with GPUs
  --size VM_SIZE       of a partition with several VM sizes
  --nodes N|LIST       so many nodes, or these (gpu-[1-4]); default: all of the partition
  --max-hours H        ends by itself after so long; default: twice what each gate once may take
  --max-gpu-hours H    starts no job that could go beyond; default: likewise
  --burn-minutes M     of each gate of the level burn; default: 60
  --skip GATE,GATE     leaves gates out; they do not count; may be repeated
  --no-drain           leaves bad nodes out of this run, and leaves Slurm alone
  --plan               prints what would run and what it may cost, and ends
  --yes                starts without asking
  --new                gives up a run that is not over: its job is cancelled

A run that was ended somehow goes on where it was when the same is typed again.
Exit status: 0 pass, 1 fail, 2 error, 3 warnings, 4 not proven; the worst gate decides.
TEXT
}

wrong_usage() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    usage >&2
    exit 2
}

# is_bound TEXT: a number of hours in which something can be done.
is_bound() {
    [[ "$1" =~ ^[0-9]+([.][0-9]+)?$ ]] && (($(seconds_of "$1") > 0))
}

seconds_of() {
    awk -v hours="$1" 'BEGIN { printf "%d\n", hours * 3600 }'
}

# add_option NAME VALUE: lists, with commas or blanks, add up; of anything else there is one value.
add_option() {
    local -r before="${ASKED[$1]}"
    local value="$2"
    local -a words
    if [[ "$1" == skip || "$1" == nodes ]]; then
        read -r -d '' -a words <<<"${value//,/ }" || true
        value="$(IFS=,; echo "${words[*]}")"
        if [[ "${value}" =~ ^0*([0-9]{1,9})$ ]]; then value=$((10#${BASH_REMATCH[1]})); fi
    fi
    [[ -n "${value}" ]] || wrong_usage "--$1 needs a value"
    if [[ -z "${before}" || "${before}" == "${value}" ]]; then
        ASKED["$1"]="${value}"
    elif [[ "$1" == skip || ("$1" == nodes && ! "${before}" =~ ^[0-9]+$ && ! "${value}" =~ ^[0-9]+$) ]]; then
        ASKED["$1"]="${before},${value}"
    else
        wrong_usage "--$1 is given twice, as ${before} and as ${value}"
    fi
}

declare -A ASKED=([level]="" [partition]="" [size]="" [nodes]="" [max-hours]="" [max-gpu-hours]="" [burn-minutes]="" [skip]="")
only_plan=no yes=no new=no may_drain=yes scratch=""
read_options() {
    local name value
    while (($#)); do
        case "$1" in
            quick | standard | burn)
                [[ -z "${ASKED[level]}" ]] || wrong_usage "one level at a time: ${ASKED[level]} or $1"
                ASKED[level]="$1"
                ;;
            --help | -h) usage; exit 0 ;;
            --plan | --dry-run) only_plan=yes ;;
            --yes) yes=yes ;;
            --new) new=yes ;;
            --no-drain) may_drain=no ;;
            --*)
                name="${1#--}"
                name="${name%%=*}"
                [[ "${name}" =~ ^[a-z-]+$ && -n "${ASKED[${name}]+there}" && "${name}" != level ]] || wrong_usage "there is no option --${name}"
                if [[ "$1" == *=* ]]; then
                    value="${1#*=}"
                else
                    (($# > 1)) || wrong_usage "--${name} needs a value"
                    value="$2"
                    shift
                fi
                add_option "${name}" "${value}"
                ;;
            *) wrong_usage "'$1' is neither a level nor an option" ;;
        esac
        shift
    done
    for name in max-hours max-gpu-hours; do
        [[ -z "${ASKED[${name}]}" ]] || is_bound "${ASKED[${name}]}" || wrong_usage "--${name} is '${ASKED[${name}]}'; give hours above 0, for example 2.5"
    done
    [[ -z "${ASKED[burn-minutes]}" || "${ASKED[burn-minutes]}" =~ ^[1-9][0-9]*$ ]] || wrong_usage "--burn-minutes is '${ASKED[burn-minutes]}'; give whole minutes"
}

# choose_gates: the rows of the partition, VM size and level that are asked for, in gates_text.
choose_gates() {
    local levels row
    [[ -s prove.tsv ]] || die "prove.tsv is not in ${PWD}; build the deployment folder again and copy all of jobs/"
    case "${ASKED[level]:=quick}" in
        quick) levels=quick,finder ;;
        standard) levels=quick,standard,finder ;;
        burn) levels=quick,standard,burn,finder ;;
    esac
    row="$(awk -F '\t' -v partition="${ASKED[partition]}" -v size="${ASKED[size]}" \
        '!/^#/ && (partition == "" || $3 == partition) && (size == "" || tolower($5) == tolower(size)) { print $3 "\t" $4 "\t" $5; exit }' prove.tsv)"
    if [[ -z "${row}" ]]; then
        die "no partition ${ASKED[partition]:-of any name}${ASKED[size]:+ with ${ASKED[size]}} in prove.tsv; there are: $(awk -F '\t' '!/^#/ { print $3 " (" $5 ")" }' prove.tsv | sort -u | paste -sd , -)"
    fi
    IFS=$'\t' read -r RUN["partition"] RUN["constraint"] RUN["vm_size"] <<<"${row}"
    gates_text="$(awk -F '\t' -v place="${row}" -v levels=",${levels}," '!/^#/ && $3 "\t" $4 "\t" $5 == place && index(levels, "," $2 ",")' prove.tsv)"
    if [[ "${RUN[constraint]}" == - ]]; then RUN[constraint]=""; fi
    RUN[level]="${ASKED[level]}"
}

# choose_nodes: the nodes that are asked for and on which a job can start, in RUN[nodes]; the others in left_out. Those that are
# running come first, so that a number of nodes starts no VM without need.
choose_nodes() {
    local node node_state features reason listed="" wanted="${ASKED[nodes]}"
    local -a running=() stopped=() busy=() all
    left_out=""
    if [[ -n "${wanted}" && ! "${wanted}" =~ ^[0-9]+$ ]]; then
        listed=",$(scontrol show hostnames "${wanted}" 2>/dev/null | sort -u | paste -sd , -),"
        [[ "${listed}" != ",," ]] || die "--nodes ${wanted} is no list of nodes; write for example gpu-[1-4] or gpu-1,gpu-3, or how many"
    fi
    node_rows
    while IFS='|' read -r node node_state features reason; do
        if [[ -z "${node}" || (-n "${listed}" && "${listed}" != *",${node},"*) ]]; then continue; fi
        listed="${listed/,"${node}",/,}"
        if [[ -n "${RUN[constraint]}" && ",${features}," != *",${RUN[constraint]},"* ]]; then continue; fi
        if is_lost "${node_state}"; then
            left_out+="${left_out:+$'\n'}${node} (${node_state}: ${reason})"
        elif [[ "${node_state}" == idle ]]; then
            running+=("${node}")
        elif [[ "${node_state}" == idle* ]]; then
            stopped+=("${node}")
        else
            busy+=("${node}")
        fi
    done <<<"${REPLY}"
    listed="${listed#,}"
    [[ -z "${listed%,}" ]] || die "partition ${RUN[partition]} has no node ${listed%,}"
    all=("${running[@]}" "${stopped[@]}" "${busy[@]}")
    if [[ "${wanted}" =~ ^[0-9]+$ ]]; then
        ((wanted > 0 && wanted <= ${#all[@]})) || die "--nodes ${wanted}, but jobs can start on $(counted "${#all[@]}" node) of partition ${RUN[partition]}${left_out:+; not on ${left_out//$'\n'/, }}"
        all=("${all[@]:0:wanted}")
    fi
    ((${#all[@]})) || die "no job can start on any node of partition ${RUN[partition]}${left_out:+: ${left_out//$'\n'/, }}"
    RUN[nodes]="$(printf '%s\n' "${all[@]}" | sort -V | paste -sd , -)"
}

# choose_bounds FILE: from the options, else from what each gate once may take.
choose_bounds() {
    local seconds gpu_seconds
    read -r seconds gpu_seconds < <(planned_costs "$1" "${RUN[nodes]}")
    RUN[max_s]=$((seconds * ROOM)) RUN[max_gpu_s]=$((gpu_seconds * ROOM))
    take_bounds
}

take_bounds() {
    if [[ -n "${ASKED[max-hours]}" ]]; then RUN[max_s]="$(seconds_of "${ASKED[max-hours]}")"; fi
    if [[ -n "${ASKED[max-gpu-hours]}" ]]; then RUN[max_gpu_s]="$(seconds_of "${ASKED[max-gpu-hours]}")"; fi
}

# others_prove: who else runs jobs of a prove.sh on the partition, in REPLY: another user, or this one from another folder.
others_prove() {
    local row user name text=""
    ask squeue --noheader "--partition=${RUN[partition]}" '--format=%u|%i|%j' || return 1
    while IFS='|' read -r user row name; do
        if [[ "${name}" != prove-* || (-n "${RUN[id]:-}" && "${name}" == "prove-${RUN[id]}-"*) ]]; then continue; fi
        text+="${text:+, }${user} (job ${row}, ${name})"
    done <<<"${REPLY}"
    REPLY="${text}"
}

confirm() {
    local answer=""
    if [[ "${yes}" == yes ]]; then return 0; fi
    [[ -t 0 ]] || die "nothing was started: add --yes, or type this where it can ask"
    read -r -p "Start? [y/N] " answer || true
    [[ "${answer}" == [yY]* ]] || { echo "Nothing was started."; exit 2; }
}

# go_on FOLDER: takes up a run that is not over, or gives it up.
go_on() {
    local base
    open_state "$1"
    if [[ "${new}" == yes ]]; then
        for base in "${state}"/*/*.job; do
            if [[ -e "${base}" && ! -e "${base%.job}.end" ]]; then cancel "${base%.job}" late; fi
        done
        whole "${state}/ended" "given up"
        state=""
        return 0
    fi
    local name
    for name in level partition; do
        if [[ -n "${ASKED[${name}]}" && "${ASKED[${name}]}" != "${RUN[${name}]}" ]]; then
            die "a run of level ${RUN[level]} on partition ${RUN[partition]} is not over. Type ./prove.sh ${RUN[level]} --partition ${RUN[partition]} to go on with it, or add --new to give it up"
        fi
    done
    for name in nodes skip size burn-minutes; do
        if [[ -n "${ASKED[${name}]}" ]]; then log "--${name} is that of the first start; --new begins anew"; fi
    done
    take_bounds
    whole "${state}/run" "$(run_text)"
    log "goes on with the run of ${RUN[started]}: level ${RUN[level]} on partition ${RUN[partition]}"
}

# begin: plans a new run and asks whether to start it.
begin() {
    RUN=([skip]="${ASKED[skip]}" [drain]="${may_drain}" [burn_minutes]="${ASKED[burn-minutes]:-60}" [max_s]=3600)
    choose_gates
    state="${scratch}"
    printf '%s\n' "${gates_text}" >"${scratch}/gates.tsv"
    local name
    for name in ${RUN[skip]//,/ }; do
        [[ -n "$(gate_line "${name}")" ]] || die "--skip ${name}: there is no such gate; the gates are: $(cut -f 1 "${scratch}/gates.tsv" | paste -sd ' ' -)"
    done
    choose_nodes
    choose_bounds "${scratch}/gates.tsv"
    show_plan "${scratch}/gates.tsv" "${RUN[nodes]}" "${left_out}"
    if [[ "${only_plan}" == yes ]]; then exit 0; fi
    others_prove || die "Slurm does not answer"
    [[ -z "${REPLY}" ]] || die "partition ${RUN[partition]} is being proven already by ${REPLY}; wait until that is over"
    confirm
    RUN[started]="$(TZ=UTC printf '%(%FT%TZ)T' -1)"
    # With the process, because users who share a folder of runs may start in the same second.
    RUN[id]="${RUN[level]}-${RUN[partition]}-${RUN[started]//[:-]/}-$$"
    RUN[cluster]="$(scontrol show config 2>/dev/null | awk '$1 == "ClusterName" { print $3 }')"
    RUN[runs]="${PWD}/runs"
    new_state
}

# leave: whatever ends this program, but for kill -9, the next one finds no lock, and its user learns how to go on.
# shellcheck disable=SC2329  # the trap calls it
leave() {
    drop_lock
    if [[ -n "${state}" && -e "${state}/run" && ! -e "${state}/ended" ]]; then
        log "this run is not over, and a job that runs goes on; to go on with it, type: ./prove.sh ${RUN[level]} --partition ${RUN[partition]}" || true
    fi
    if [[ -n "${scratch}" ]]; then rm -rf "${scratch}"; fi
}
trap leave EXIT

main() {
    local line folder
    local -a lines open
    local -i number=0
    read_options "$@"
    for line in sbatch squeue scontrol scancel sinfo awk timeout; do
        command -v "${line}" >/dev/null || die "command ${line} is missing on ${HOSTNAME}; run this on the scheduler or a login node"
    done
    scratch="$(mktemp -d "${TMPDIR:-/tmp}/prove.XXXXXX")"
    if [[ "${only_plan}" == yes ]]; then begin; fi
    take_lock
    mapfile -t open < <(open_runs)
    if ((${#open[@]})); then go_on "${open[-1]}"; fi
    if [[ -z "${state}" ]]; then begin; fi
    mapfile -t lines <"${state}/gates.tsv"
    for line in "${lines[@]}"; do
        read_gate "${line}"
        if [[ "${G_LEVEL}" == finder ]]; then continue; fi
        number=$((number + 1))
        printf -v folder '%s/%02d-%s' "${state}" "${number}" "${G_NAME}"
        prove_gate "${folder}" "${line}"
    done
    keep_spent
    overall
    local -r verdict="${REPLY}"
    show_summary
    record_summary "${verdict}"
    whole "${state}/ended" "${verdict}"
    echo "Verdict: $(shown_verdict "${verdict}")"
    exit "$(exit_status "${verdict}")"
}
main "$@"
