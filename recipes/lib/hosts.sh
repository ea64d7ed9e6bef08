# shellcheck shell=bash
# Host files of mpirun: one node a line, `NAME slots=N`. Sourced after common.sh.

# host_lines SLOTS: nodes on standard input, one a line, as lines of a host file.
host_lines() {
    awk -v slots="$1" 'NF { print $1 " slots=" slots }'
}

# hosts_in FILE: the nodes of a host file, one a line; fails where it has none, one twice, or what is not a name.
# Source: https://docs.open-mpi.org/en/v5.0.x/launching-apps/scheduling.html#calculating-the-number-of-slots
hosts_in() {
    [[ -r "$1" && -f "$1" ]] || return 1
    awk '
        { sub(/#.*/, "") }
        !NF { next }
        $1 !~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ || seen[$1]++ { bad = 1; exit }
        { print $1; hosts++ }
        END { exit (bad || !hosts) }' "$1"
}

# expanded LIST...: the nodes of lists such as `hpc-[1-4,7],login`, one a line; fails where a list has another form.
expanded() {
    local list head numbers part first last width number
    for list in "$@"; do
        while [[ -n "${list}" ]]; do
            [[ "${list}" =~ ^([A-Za-z0-9][A-Za-z0-9._-]*)(\[([0-9,-]+)\])?(,|$)(.*)$ ]] || return 1
            head="${BASH_REMATCH[1]}" numbers="${BASH_REMATCH[3]}" list="${BASH_REMATCH[5]}"
            if [[ -z "${numbers}" ]]; then
                [[ -z "${BASH_REMATCH[2]}" ]] || return 1
                echo "${head}"
                continue
            fi
            for part in ${numbers//,/ }; do
                [[ "${part}" =~ ^([0-9]{1,6})(-([0-9]{1,6}))?$ ]] || return 1
                first="${BASH_REMATCH[1]}" last="${BASH_REMATCH[3]:-${BASH_REMATCH[1]}}" width="${#BASH_REMATCH[1]}"
                ((10#${first} <= 10#${last})) || return 1
                for ((number = 10#${first}; number <= 10#${last}; number++)); do printf '%s%0*d\n' "${head}" "${width}" "${number}"; done
            done
        done
    done
}

# nodes_of_slurm [PARTITION]: the nodes of this job, or those of the partition that run and answer.
nodes_of_slurm() {
    if [[ -z "${1:-}" ]]; then
        scontrol show hostnames "${SLURM_JOB_NODELIST:?}"
    else
        # A star behind the state is a node that does not answer; a tilde one whose VM does not exist.
        sinfo --noheader --Node --partition="$1" --Format='NodeHost:256,StateCompact:64' | awk '$2 ~ /^(idle|mix|alloc|resv)$/ { print $1 }' | sort -V -u
    fi
}

# nodes_of_azslurm: the nodes whose VM is ready, as CycleCloud sees them; on the scheduler, as root.
# Source: https://github.com/Azure/cyclecloud-scalelib/blob/master/src/hpc/autoscale/clilib.py, nodes
nodes_of_azslurm() {
    azslurm nodes --output-columns name,hostname,status --output-format table_headerless | awk '$NF == "Ready" && NF == 3 { print $2 }' | sort -V -u
}

# print_hosts ARGUMENT...: the whole of hosts.sh.
print_hosts() {
    local nodes
    load_settings
    local slots="${TASKS_PER_NODE}"
    if [[ "${1:-}" == --slots ]]; then
        slots="${2:-}"
        shift $(($# < 2 ? 1 : 2))
    fi
    [[ "${slots}" =~ ^[1-9][0-9]*$ ]] || die "--slots needs a number, the tasks of a node"
    case "${1:-}" in
        "")
            [[ -n "${SLURM_JOB_NODELIST:-}" ]] || die "this is no job of Slurm; name nodes, or use --partition NAME or --azslurm"
            nodes="$(nodes_of_slurm)" || die "scontrol does not expand ${SLURM_JOB_NODELIST}"
            ;;
        --partition)
            require_commands sinfo
            (($# == 2)) || die "--partition needs one value, a name or several separated by commas; nothing stands behind it"
            nodes="$(nodes_of_slurm "$2")" || die "sinfo failed"
            ;;
        --azslurm)
            require_commands azslurm
            (($# == 1)) || die "nothing stands behind --azslurm"
            nodes="$(nodes_of_azslurm)" || die "azslurm failed; it needs root, on the scheduler"
            ;;
        -*) die "unknown option ${1}; usage: hosts.sh [--slots N] [NODE... | --partition NAME | --azslurm]" ;;
        *) nodes="$(expanded "$@")" || die "'$*' is not a list of nodes; write for example hpc-[1-4,7]" ;;
    esac
    [[ -n "${nodes}" ]] || die "no node is there"
    host_lines "${slots}" <<<"${nodes}"
}
