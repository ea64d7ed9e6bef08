# shellcheck shell=bash
# Measures groups of nodes, many at once, each by a step of its own. Sourced after common.sh, nccl.sh and outliers.sh.
# One launch over all groups (NCCL_TESTS_SPLIT) would only tell that one of them is slow, not which.
# shellcheck source=recipes/lib/mpi.sh
. "${JOBS_LIB}/mpi.sh"

# Until a step that was decided on has begun.
readonly START_S=10

# fabric_tool: the settings and programs that a measurement needs are there.
fabric_tool() {
    require METHOD BINARY MESSAGE_SIZE ITERATIONS GROUP_TIMEOUT_S BUDGET_S TASKS_PER_NODE CPUS_PER_TASK
    require_commands srun scontrol timeout awk sort
    forget_tuning
    bytes_of "${MESSAGE_SIZE}" >/dev/null || die "MESSAGE_SIZE is '${MESSAGE_SIZE}'; give a number with K, M or G, for example 8G"
    case "${METHOD}" in
        nccl)
            require GPUS_PER_NODE
            ((TASKS_PER_NODE > 0 && GPUS_PER_NODE > 0 && GPUS_PER_NODE % TASKS_PER_NODE == 0)) ||
                die "${GPUS_PER_NODE} GPUs of a node cannot be divided among ${TASKS_PER_NODE} tasks"
            load_nccl_env
            # A ring uses every port evenly. CollNet and NVLink's own reduction would hide one.
            export NCCL_ALGO="${FABRIC_ALGORITHM:-RING}" NCCL_COLLNET_ENABLE=0
            ;;
        osu) ;;
        perftest) perftest_tool ;;
        *) die "METHOD is '${METHOD}'; it must be nccl or osu, or for pairs perftest" ;;
    esac
    load_modules
    # HPC-X says where its OSU programs are.
    if [[ "${METHOD}" == osu && "${BINARY}" != */* && -n "${HPCX_OSU_DIR:-}" ]]; then BINARY="${HPCX_OSU_DIR}/${BINARY}"; fi
    budget_of_job
}

# budget_of_job: no group is begun that the end of the job would cut off: such a pair would seem to hang.
# shellcheck disable=SC2154  # ends_within of common.sh sets seconds_left
budget_of_job() {
    if ends_within $((BUDGET_S - SECONDS + BEFORE_END_S + START_S)); then BUDGET_S=$((SECONDS + seconds_left - BEFORE_END_S - START_S)); fi
}

# perftest_tool: what ib_write_bw between two nodes needs, and its floor: of a port, and of all ports of a pair together.
# shellcheck disable=SC2034  # whoever judges reads them
perftest_tool() {
    [[ -f pair.sh ]] || die "METHOD is perftest, which measures pairs of nodes (job fabric-pairs); this job takes nccl or osu"
    require LINK_PORTS LINK_MESSAGE_BYTES PORT_SECONDS PORT_SOURCE
    require_commands ib_write_bw
    ((LINK_PORTS > 0)) || die "METHOD is perftest, and ${VM_SIZE:-this VM size} has no InfiniBand port"
    FLOOR_FAIL="" FLOOR_WARN="" FLOOR_SOURCE="${PORT_SOURCE}"
    if [[ -n "${PORT_FLOOR_WARN}" ]]; then
        FLOOR_WARN="$(awk -v floor="${PORT_FLOOR_WARN}" -v ports="${LINK_PORTS}" 'BEGIN { printf "%.2f", floor * ports }')"
    fi
}

# stated_time: MINUTES for which a job measures again and again, in $stated_s; one pass without. Its last pass may end after that.
stated_time() {
    local now
    [[ "${MINUTES}" =~ ^[0-9]{1,6}$ ]] || die "MINUTES is '${MINUTES}'; give whole minutes, or 0 for one pass"
    stated_s=$((10#${MINUTES} * 60))
    if ((stated_s == 0)); then return 0; fi
    BUDGET_S=$((BUDGET_S + stated_s))
    if [[ ! "${SLURM_JOB_END_TIME:-}" =~ ^[0-9]+$ ]]; then return 0; fi
    printf -v now '%(%s)T' -1
    ((now + BUDGET_S < SLURM_JOB_END_TIME)) ||
        die "MINUTES is ${MINUTES} and the job ends in $((SLURM_JOB_END_TIME - now)) s; submit it with --time=$((BUDGET_S / 60 + 5))"
}

# measure_groups PLAN TABLE: measures all groups of the plan at once, lines `TAG <tab> NODE,NODE,... [<tab> ADAPTER]`, and
# adds `TAG <tab> NODES <tab> VALUE` to the table, in GB/s, or `failed`. What went wrong is in groups/<tag>.problem.
measure_groups() {
    local -r plan="$1" table="$2"
    local tag nodes adapter
    local -A values=()
    mkdir -p "${results:?}/groups"
    start_groups <"${plan}"
    # A launch may fail by itself; a node is named by one that fails twice. What printed a figure, be it a wrong one, counts.
    : >"${results}/groups/again"
    while IFS=$'\t' read -r tag nodes adapter; do
        values["${tag}"]="$(group_value "${tag}" "${nodes}")"
        if [[ "${values["${tag}"]}" == failed ]] && ! has_measured "${tag}"; then
            values["${tag}"]=""
            log "${nodes}: $(problem_of "${tag}")"
            printf '%s\t%s\t%s\n' "${tag}" "${nodes}" "${adapter}" >>"${results}/groups/again"
        fi
    done <"${plan}"
    if [[ -s "${results}/groups/again" ]] && ((SECONDS + GROUP_TIMEOUT_S <= BUDGET_S)); then
        log "launched once more: $(cut -f 2 "${results}/groups/again" | paste -sd ' ' -)"
        start_groups <"${results}/groups/again"
    fi
    while IFS=$'\t' read -r tag nodes adapter; do
        printf '%s\t%s\t%s\n' "${tag}" "${nodes}" "${values["${tag}"]:-$(group_value "${tag}" "${nodes}")}" >>"${table}"
        # Other measurements of these nodes do not outvote that.
        if has_wrong_values "${tag}"; then
            record "${results}/checks.tsv" wrong_values fail "" "0 0" values "a fault of hardware, or of NCCL: ${tag}" "" "${nodes}"
        fi
    done <"${plan}"
}

# has_measured TAG: the output of the step has at least the beginning of a figure.
has_measured() {
    untagged "${results}/groups/$1.log" 2>/dev/null | grep -cE '^( *[0-9]+ +|port [^ ]+ from [^ ]+ )[0-9]' >/dev/null
}

# has_wrong_values TAG: nccl-tests has checked the data and found some wrong.
has_wrong_values() {
    untagged "${results}/groups/$1.log" 2>/dev/null | grep -cE '^# Out of bounds values +: .*FAILED' >/dev/null
}

# start_groups: all groups on standard input at once, until the last has ended.
start_groups() {
    local tag nodes adapter
    local -a running=()
    while IFS=$'\t' read -r tag nodes adapter; do
        measure_group "${tag}" "${nodes}" "${adapter}" </dev/null &
        running+=("$!")
    done
    # Not a plain `wait`: a trap would interrupt it.
    if ((${#running[@]})); then wait "${running[@]}" || true; fi
}

# measure_group TAG NODES ADAPTER: one step on exactly these nodes; its output and exit status as files.
measure_group() {
    local -r log_file="${results}/groups/$1.log" nodes="$2" adapter="$3"
    local -r commas="${nodes//[^,]/}"
    local -r count=$((${#commas} + 1))
    local code=0
    local -a options=(--mpi=pmix "--nodelist=${nodes}" "--nodes=${count}" --kill-on-bad-exit=1 --mem=0) command=()
    if [[ "${METHOD}" == nccl ]]; then
        if [[ -n "${adapter}" ]]; then export NCCL_IB_HCA="=${adapter}"; fi
        export NCCL_DEBUG=WARN
        options+=("--ntasks=$((count * TASKS_PER_NODE))" "--ntasks-per-node=${TASKS_PER_NODE}" "--cpus-per-task=${CPUS_PER_TASK}")
        options+=("--gpus-per-node=${GPUS_PER_NODE}" "--cpu-bind=${CPU_BIND:-none}")
        command=("${BINARY}" -b "${MESSAGE_SIZE}" -e "${MESSAGE_SIZE}" -f 2 -g $((GPUS_PER_NODE / TASKS_PER_NODE)) -c 1 -n "${ITERATIONS}")
    elif [[ "${METHOD}" == perftest ]]; then
        options+=(--mpi=none "--ntasks=${count}" --ntasks-per-node=1 "--cpus-per-task=${VCPUS:-1}" --cpu-bind=none)
        if [[ "${LINK_GPU_MEMORY}" == 1 ]]; then options+=("--gpus-per-node=${GPUS_PER_NODE}"); fi
        command=(./pair.sh "${nodes%,*}" "${nodes#*,}" "${results}/groups/$1")
    else
        if [[ -n "${adapter}" ]]; then export UCX_NET_DEVICES="${adapter}:1"; fi
        options+=("--ntasks=${count}" --ntasks-per-node=1 --cpus-per-task=1)
        command=("${BINARY}" -m "$(bytes_of "${MESSAGE_SIZE}"):$(bytes_of "${MESSAGE_SIZE}")" -i "${ITERATIONS}")
    fi
    rm -f "${results}/groups/$1."*
    bounded "${GROUP_TIMEOUT_S}" srun "${options[@]}" "${command[@]}" >"${log_file}" 2>&1 || code=$?
    printf '%s\n' "${code}" >"${results}/groups/$1.code"
}

# group_value TAG NODES: GB/s, or `failed` with the reason in groups/<tag>.problem.
group_value() {
    local -r log_file="${results}/groups/$1.log" code_file="${results}/groups/$1.code"
    local -r commas="${2//[^,]/}"
    local -r count=$((${#commas} + 1))
    local code="" problem="" value=""
    if [[ -s "${code_file}" ]]; then code="$(<"${code_file}")"; fi
    case "${code}" in
        "") problem="the step was never ended" ;;
        0) "${METHOD}_value" "$1" ;;
        124 | 137) problem="ran past ${GROUP_TIMEOUT_S} s" ;;
        *) problem="ended with exit status ${code}: $(grep -vE '^[[:space:]]*(#|$)' "${log_file}" 2>/dev/null | tail -n 1 | cut -c 1-200 || true)" ;;
    esac
    if [[ -z "${problem}" ]] && ! is_number "${value}"; then problem="no number in the output"; fi
    if [[ -n "${problem}" ]]; then
        printf '%s\n' "${problem}" >"${results}/groups/$1.problem"
        value=failed
    fi
    echo "${value}"
}

# nccl_value: the bus bandwidth out of place, if ranks and values are right. Sets the caller's value or problem.
# shellcheck disable=SC2154  # tests_row sets them
nccl_value() {
    problem="$(tests_ranks "${log_file}" "$((count * GPUS_PER_NODE))" "${count}")"
    if [[ -n "${problem}" ]]; then return; fi
    if ! tests_row "${log_file}" "$(bytes_of "${MESSAGE_SIZE}")"; then
        problem="${row_problem}"
    elif [[ "${wrong_kind}" == "#wrong" && "${wrong_out} ${wrong_in}" != "0 0" ]]; then
        problem="wrong values: ${wrong_out} ${wrong_in}"
    elif [[ ! "$(tests_footer "${log_file}" "Out of bounds values")" =~ ^0\ +OK$ ]]; then
        problem="no footer that says 0 wrong values"
    else
        value="${bus_out}"
    fi
}

# osu_value: of the one row of that message, MB/s of 10^6 bytes in GB/s; of osu_latency messages per millisecond, so that
# more is better.
osu_value() {
    value="$(osu_row "${log_file}" "$(bytes_of "${MESSAGE_SIZE}")" | awk -v program="${BINARY##*/}" '
        $1 > 0 { printf "%.4f", (program == "osu_latency" ? 1000 / $1 : $1 / 1000) }')"
}

# perftest_value TAG: GB/s of all ports together. A port has the lower figure of its two ways; those of each port are in
# groups/<tag>.ports. A port that has not both has failed, and the pair with it.
perftest_value() {
    problem="$(untagged "${log_file}" | awk -v wanted="${LINK_PORTS}" -v file="${results}/groups/$1.ports" '
        $1 == "port" && $3 == "from" {
            if (!($2 in ways)) { ways[$2] = 0; name[++ports] = $2 }
            if ($5 !~ /^[0-9]+([.][0-9]+)?$/ || $5 + 0 <= 0) { if (why == "") why = $0; next }
            ways[$2]++
            if (!($2 in least) || $5 + 0 < least[$2]) least[$2] = $5 + 0
        }
        $1 == "end" { ends++ }
        END {
            printf "" >file
            for (i = 1; i <= ports; i++) if (ways[name[i]] == 2) { printf "%s\t%.4f\n", name[i], least[name[i]] / 8 >file; whole++ }
            if (why != "") print why
            else if (ends != 2) print "a node did not come to its end"
            else if (whole != wanted) print whole + 0 " of " wanted " ports have figures both ways"
        }')"
    if [[ -z "${problem}" ]]; then value="$(awk -F '\t' '{ sum += $2 } END { printf "%.4f", sum }' "${results}/groups/$1.ports")"; fi
}

# osu_row OUTPUT BYTES: the value of the one complete row of that message; nothing where there is none, or several.
# Rows of the OSU Micro-Benchmarks are `SIZE VALUE` below `# Size ...`; of osu_bw MB/s, of osu_latency microseconds.
osu_row() {
    untagged "$1" 2>/dev/null | awk -v bytes="$2" '
        /^# Size / { table = 1; next }
        table && $1 == bytes && NF == 2 && $2 ~ /^[0-9]+\.[0-9]+$/ { rows++; value = $2 }
        END { if (rows == 1) print value }'
}

# problem_of TAG: why a group gave no value.
problem_of() {
    cat "${results}/groups/$1.problem" 2>/dev/null || true
}

# node_groups FILE: `NODE <tab> SWITCH` for every node of the job that Slurm's topology knows: the lowest switch of a tree,
# or the block. Nothing without a topology.
node_groups() {
    local -r file="$1"
    local line name list node
    : >"${file}"
    while IFS= read -r line; do
        if [[ "${line}" =~ ^SwitchName=([^[:blank:]]+)[[:blank:]]+Level=0[[:blank:]].*Nodes=([^[:blank:]]+) ]] ||
            [[ "${line}" =~ ^BlockName=([^[:blank:]]+)[[:blank:]].*Nodes=([^[:blank:]]+) ]]; then
            name="${BASH_REMATCH[1]}" list="${BASH_REMATCH[2]}"
            while read -r node; do printf '%s\t%s\n' "${node}" "${name}"; done < <(scontrol show hostnames "${list}")
        fi
    done < <(timeout 30 scontrol show topology 2>/dev/null || true) | sort -u | awk -F '\t' '
        FILENAME == ARGV[1] { wanted[$1] = 1; next } $1 in wanted && !($1 in seen) { seen[$1] = 1; print }' <(requested_nodes) - >"${file}"
}

# with_host NODES TEXT: the text, with the physical hosts of the nodes as far as they are known.
with_host() {
    local text="$2" node host
    local -a names=()
    IFS=, read -r -a names <<<"$1"
    for node in "${names[@]}"; do
        host="$(awk -F '\t' '$1 == "physical_host" { print $2; exit }' "${results}/${node}.facts" 2>/dev/null || true)"
        if [[ -n "${host}" ]]; then text+="; ${node} is on physical host ${host}"; fi
    done
    echo "${text}"
}

# record_judged JUDGED LABEL UNIT: what judge_pairs printed as checks of the run; without its last word there is no verdict.
record_judged() {
    local kind names verdict value expected detail source check
    if ! grep -q $'^whole\t' "$1"; then record "${results}/checks.tsv" "$2 whole" error "" "" "$3" "the measurements were not judged to the end" "" ""; fi
    while IFS=$'\t' read -r kind names verdict value expected detail source; do
        check="$2 ${kind}"
        if [[ "${kind}" != whole ]]; then check+=" ${names}"; fi
        if [[ "${verdict}" != pass ]]; then detail="$(with_host "${names#-}" "${detail}")"; fi
        record "${results}/checks.tsv" "${check}" "${verdict}" "${value/#none/}" "${expected#-}" "$3" "${detail}" "${source#-}" "${names#-}"
    done <"$1"
}

# record_groups MEASURED GROUPS: a check on pairs across switches against those below one, and on each switch
# against the others; nothing where Slurm knows of one switch or none. In racks of NVLink far is slower by design.
record_groups() {
    local verdict value expected names detail
    compare_groups "$1" "$2" >"${results}/groups.judged"
    while IFS=$'\t' read -r verdict value expected names detail; do
        if [[ "${verdict}" == warn && "${names}" == - && "${FAR_IS_SLOWER}" == 1 ]]; then verdict=pass detail+="; within a rack NVLink connects them"; fi
        record "${results}/checks.tsv" "pairs across switches${names:+${names#-}}" "${verdict}" "${value}" "${expected}" GB/s "${detail}" "median of pairs" ""
    done <"${results}/groups.judged"
}

# compare_groups MEASURED GROUPS: lines of verdict, value, expected, `-` or the name of a switch, detail.
compare_groups() {
    awk -F '\t' -v OFS='\t' -v share="${OUTLIER_SPREAD_PERCENT}" "$(awk_statistics)"'
        FILENAME == ARGV[1] { group[$1] = $2; if (!($2 in names)) { names[$2] = 1; name[++groups] = $2 } next }
        $4 ~ /^[0-9.]+$/ && ($2 in group) && ($3 in group) {
            if (group[$2] == group[$3]) { near[++nears] = $4; next }
            far[++fars] = $4; one[fars] = group[$2]; other[fars] = group[$3]
        }
        END {
            if (groups < 2 || !fars) exit
            for (i = 1; i <= fars; i++) all[i] = far[i]
            middle = median(all, fars)
            if (nears) {
                inside = median(near, nears)
                print (middle < inside * (1 - share / 100) ? "warn" : "pass"), shown(middle), shown(inside), "-", fars " pairs across " groups " switches against " nears " below one"
            }
            for (g = 1; groups > 2 && g <= groups; g++) {
                with = without = 0
                for (i = 1; i <= fars; i++) if (one[i] == name[g] || other[i] == name[g]) touching[++with] = far[i]; else apart[++without] = far[i]
                if (with < 3 || without < 3) continue
                value = median(touching, with); limit = median(apart, without)
                if (value < limit * (1 - share / 100)) print "warn", shown(value), shown(limit), " of " name[g], "all its nodes are slower with other switches: its uplinks"
            }
        }' "$2" "$1"
}
