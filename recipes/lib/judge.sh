# shellcheck shell=bash
# Judges one run of nccl-tests or rccl-tests. Sourced by collective.sh after common.sh and nccl.sh.
#
# What decides, the first that exists:
#   1. the figure that the job was given (BASELINE_FAIL, BASELINE_WARN)
#   2. a published figure for this collective, VM size, number of nodes, message and algorithm
#   3. a derived one, which warns at most and above which nothing has passed, together with
#   4. the medians of earlier runs, by their records: of the fleet (other nodes) and of all runs of this cluster
# With none of them the verdict is no_baseline.
# shellcheck disable=SC2154  # nccl.sh sets what a run has measured

readonly BASELINE_COLUMNS=12
# As NCCL's log names them. All-gather, reduce-scatter and alltoall divide their message among the ranks, in blocks of 16
# bytes; alltoall and sendrecv do not work in place, so nothing is checked there (NVIDIA/nccl-tests, src/*.cu).
readonly -A NCCL_FUNCTION=([all_reduce]=AllReduce [all_gather]=AllGather [reduce_scatter]=ReduceScatter [alltoall]=AlltoAll [sendrecv]=SendRecv)
readonly -A IS_DIVIDED=([all_gather]=1 [reduce_scatter]=1 [alltoall]=1) IS_NOT_IN_PLACE=([alltoall]=1 [sendrecv]=1)
readonly BLOCK_BYTES=16

# judge_collective COLLECTIVE OUTPUT FILE LOG...: records the verdicts on the message of MESSAGE_SIZE; sets bus_bandwidth,
# measured_bytes, algorithm and fabric. With SWEEP_FROM the output is that of a sweep, which must be whole.
judge_collective() {
    local -r collective="$1" output="$2" file="$3"
    shift 3
    local -r ranks=$((GPUS_PER_NODE * SLURM_JOB_NUM_NODES))
    local bytes problem verdict bounds average="" block=1
    bytes="$(bytes_of "${MESSAGE_SIZE}")" || die "message size ${MESSAGE_SIZE} is not a valid size"
    bus_bandwidth="" measured_bytes="" algorithm=unknown fabric=unknown
    if [[ -n "${IS_DIVIDED[${collective}]:-}" ]]; then block=$((BLOCK_BYTES * ranks)); fi
    problem="$(tests_ranks "${output}" "${ranks}" "${SLURM_JOB_NUM_NODES}")"
    if [[ -n "${problem}" ]]; then
        record "${file}" "${collective} ranks" error "" "${ranks}" ranks "${problem}"
        return
    fi
    record "${file}" "${collective} ranks" pass "${ranks}" "${ranks}" ranks ""
    if [[ -n "${SWEEP_FROM:-}" ]]; then
        problem="$(sweep_problem "${output}" "$(bytes_of "${SWEEP_FROM}")" "${bytes}" "${block}")"
        if [[ -n "${problem}" ]]; then
            record "${file}" "${collective} sweep" error "" "" "" "${problem}"
            return
        fi
        judge_sweep_values "${file}"
    fi
    if ! tests_row "${output}" "${bytes}" "${block}"; then
        record "${file}" "${collective}" error "" "" "" "${row_problem}"
        return
    fi
    local share="${measured_bytes}"
    if [[ -n "${IS_DIVIDED[${collective}]:-}" ]]; then share=$((measured_bytes / ranks)); fi
    algorithm="$(nccl_algorithm "${NCCL_FUNCTION[${collective}]}" "${measured_bytes}" "${share}" "$@")"
    fabric="$(nccl_fabric "$@")"
    judge_values "${file}"
    verdict=fail
    bounds="$(tests_footer "${output}" "Out of bounds values")" || bounds="not printed"
    if [[ "${bounds}" =~ ^0\ +OK$ ]]; then verdict=pass; fi
    record "${file}" "${collective} out_of_bounds" "${verdict}" "${bounds}" "0 OK" "" ""
    # The average is one over all sizes and both places: in a sweep it says nothing of one message.
    if [[ -z "${SWEEP_FROM:-}" ]]; then average="$(tests_footer "${output}" "Avg bus bandwidth")" || average=""; else average="$(mean_of "${bus_out}" "${bus_in}")"; fi
    judge_bandwidth "${file}" "${bus_out}" "${average}"
}

# no_wrong OUT IN: data checking has found nothing in a row.
no_wrong() {
    [[ "$1" == 0 && ("$2" == 0 || ("$2" == N/A && -n "${IS_NOT_IN_PLACE[${collective}]:-}")) ]]
}

# judge_values FILE: the values of the judged message; releases with `error` say so in the footer alone.
judge_values() {
    if [[ "${wrong_kind}" != "#wrong" ]]; then return 0; fi
    local verdict=fail expected="0 0"
    if [[ -n "${IS_NOT_IN_PLACE[${collective}]:-}" ]]; then expected="0 N/A"; fi
    if no_wrong "${wrong_out}" "${wrong_in}"; then verdict=pass; fi
    record "$1" "${collective} wrong_values" "${verdict}" "${wrong_out} ${wrong_in}" "${expected}" "values out of and in place" "any other number is a hardware fault"
}

# judge_sweep_values FILE: the curve of a sweep, and the sizes whose values were wrong.
judge_sweep_values() {
    local bytes out in wrong_there wrong_here kind bad="" rows=0 nodes verdict=pass
    nodes="$(requested_nodes | paste -sd , -)"
    while read -r bytes out in wrong_there wrong_here kind; do
        if [[ ! "${bytes}" =~ ^[0-9]+$ || "${bytes}" == 0 ]]; then continue; fi
        rows=$((rows + 1))
        series "busbw ${collective}" GB/s bytes "${nodes}" "${bytes}" "${out}"
        series "in place ${collective}" GB/s bytes "${nodes}" "${bytes}" "${in}"
        if [[ "${kind}" == "#wrong" ]] && ! no_wrong "${wrong_there}" "${wrong_here}"; then bad+="${bad:+, }${bytes}"; fi
    done < <(tests_rows "${output}")
    if [[ -n "${bad}" ]]; then verdict=fail; elif ((rows == 0)); then verdict=error; fi
    record "$1" "${collective} sweep" "${verdict}" "${rows}" "" sizes "${bad:+wrong values at ${bad} bytes, a hardware fault}"
}

# mean_of A B
mean_of() {
    awk -v a="$1" -v b="$2" 'BEGIN { if (a ~ /^[0-9.]+$/ && b ~ /^[0-9.]+$/) printf "%.2f\n", (a + b) / 2 }'
}

# judge_bandwidth FILE BUSBW AVERAGE
judge_bandwidth() {
    local -r file="$1" busbw="$2" average="$3"
    local verdict detail="" expected="" note="" of_median="" published="" derived="" warn="" fail="" floor=""
    bus_bandwidth="${busbw}"
    if [[ -n "${BASELINE_FAIL}${BASELINE_WARN}" ]]; then
        given_baseline
    elif ! read_baselines; then
        record "${file}" "${collective}" error "${busbw}" "" GB/s "${note}"
        return
    fi
    if [[ -n "${published}" ]]; then
        choose "${published}" "${busbw}" "${average}"
        verdict="$(judge "${bus_bandwidth}" "${warn}" "${fail}")"
    else
        of_median="$(judge_medians "${busbw}")"
        detail="${of_median#*$'\t'}" of_median="${of_median%%$'\t'*}"
        if [[ -n "${of_median}" ]]; then floor="median of earlier runs"; fi
        if [[ -n "${derived}" ]]; then
            choose "${derived}" "${busbw}" "${average}"
            # What follows from a derived figure is a warning, or nothing at all.
            verdict="$(judge "${bus_bandwidth}" "${warn}" "")"
            if [[ "${verdict}" == pass ]]; then verdict="${of_median:-no_baseline}"; elif [[ -n "${of_median}" ]]; then verdict="$(worst "${verdict}" "${of_median}")"; fi
        else
            verdict="${of_median:-no_baseline}"
            if ! is_number "${busbw}"; then verdict=fail; fi
        fi
    fi
    if [[ "${verdict}" == no_baseline ]]; then detail="${detail:+${detail}; }no published figure for this run"; fi
    detail="$(run_key)${detail:+; ${detail}}${note:+; ${note}}"
    record "${file}" "${collective}" "${verdict}" "${bus_bandwidth}" "${expected}" GB/s "${detail}" "${floor}"
}

# choose ROW BUSBW AVERAGE: sets warn, fail, expected, bus_bandwidth, floor and detail from a row of the table.
choose() {
    local kind metric formula source
    IFS=$'\t' read -r kind _ _ _ metric _ _ expected warn fail formula source <<<"$1"
    warn="${warn#-}" fail="${fail#-}" expected="${expected#-}"
    bus_bandwidth="$2"
    if [[ "${metric}" == "avg busbw" ]]; then bus_bandwidth="$3"; fi
    expected="${expected:-${warn:-${fail}}}"
    if [[ "${kind}" == derived ]]; then
        detail+="${detail:+; }derived floor ${warn} GB/s = ${formula}, warns at most"
        floor="derived: ${formula}; ${source}${floor:+; ${floor}}"
        series "floor ${collective}" GB/s bytes "" "${measured_bytes}" "${warn}"
    else
        detail="${kind} floor ${fail:-${warn}} GB/s"
        floor="${kind}: ${source}"
        series "floor ${collective}" GB/s bytes "" "${measured_bytes}" "${fail:-${warn}}"
        if [[ "${kind}" == published ]]; then series "published ${collective}" GB/s bytes "" "${measured_bytes}" "${expected}"; fi
    fi
}

# given_baseline: the figure in the job's settings, if it holds for this run; sets published and note. It replaces the
# table: who gives a figure does not want to be judged by another one. It is one for the first collective of the job.
given_baseline() {
    if [[ "${collective}" != "${COLLECTIVES%% *}" ]]; then
        note="the given figure holds for ${COLLECTIVES%% *}"
    elif [[ -n "${BASELINE_MESSAGE_SIZE}" && "$(bytes_of "${BASELINE_MESSAGE_SIZE}")" != "${measured_bytes}" ]]; then
        note="the given figure holds for ${BASELINE_MESSAGE_SIZE}"
    elif [[ -n "${BASELINE_ALGORITHM}" && " ${BASELINE_ALGORITHM} " != *" ${algorithm} "* ]]; then
        note="the given figure holds for ${BASELINE_ALGORITHM}, this run used ${algorithm}"
    else
        published="given"$'\t'"-"$'\t'"-"$'\t'"-"$'\t'"${BASELINE_METRIC:-busbw}"$'\t'"any"$'\t'"any"
        published+=$'\t'"${BASELINE_EXPECTED:--}"$'\t'"${BASELINE_WARN:--}"$'\t'"${BASELINE_FAIL:--}"$'\t'"-"$'\t'"${BASELINE_SOURCE:-the settings of the job}"
    fi
}

# read_baselines: the rows of the table that fit this run: sets published, derived and note. Fails, with the reason in
# note, when the table is missing or damaged: without it no floor would be found.
read_baselines() {
    if [[ -z "${BASELINES}" ]]; then
        note="BASELINES is empty, so no figure was looked up"
        return 0
    fi
    if [[ ! -s "${BASELINES}" ]]; then
        note="${BASELINES} is missing or empty; build the deployment folder again"
        return 1
    fi
    local line number=0
    local -a field
    while IFS= read -r line || [[ -n "${line}" ]]; do
        number=$((number + 1))
        if [[ "${line}" == \#* ]]; then continue; fi
        IFS=$'\t' read -r -a field <<<"${line}"
        if ((${#field[@]} != BASELINE_COLUMNS)) || ! fits_form; then
            note="line ${number} of ${BASELINES} is damaged; build the deployment folder again"
            return 1
        fi
        if ! fits_run; then continue; fi
        if [[ "${field[0]}" == published ]]; then published="${published:-${line}}"; else derived="${derived:-${line}}"; fi
    done <"${BASELINES}"
    if [[ -n "${published}" ]]; then note=""; fi
}

# fits_form: the fields of a row are what they should be.
fits_form() {
    local value
    [[ "${field[0]}" == published || "${field[0]}" == derived ]] || return 1
    for value in ${field[1]//,/ }; do
        [[ -n "${NCCL_FUNCTION[${value}]:-}" ]] || return 1
    done
    [[ "${field[2]}" =~ ^[1-9][0-9]*[+]?$ && "${field[3]}" =~ ^[1-9][0-9]*[KMG][+]?$ ]] || return 1
    [[ "${field[4]}" == busbw || "${field[4]}" == "avg busbw" ]] || return 1
    for value in "${field[@]:7:3}"; do
        [[ "${value}" == - || ("${value}" =~ ^[0-9]+([.][0-9]+)?$ && "${value}" == *[1-9]*) ]] || return 1
    done
    [[ "${field[8]}${field[9]}" != -- ]]
}

# fits_run: the row holds for this collective, number of nodes, message, algorithm and fabric. A figure that another
# algorithm missed is named in note.
fits_run() {
    local -r nodes="${field[2]%+}" algorithms="${field[5]}" connected="${field[6]}"
    local bytes
    [[ ",${field[1]}," == *",${collective},"* ]] || return 1
    ((SLURM_JOB_NUM_NODES == nodes)) || [[ "${field[2]}" == *+ && ${SLURM_JOB_NUM_NODES} -gt ${nodes} ]] || return 1
    bytes="$(bytes_of "${field[3]%+}")"
    # A message that is divided among the ranks may be a few bytes short.
    ((measured_bytes <= bytes && measured_bytes > bytes - block)) || [[ "${field[3]}" == *+ && ${measured_bytes} -gt $((bytes - block)) ]] || return 1
    if [[ "${algorithms}" != any && ",${algorithms}," != *",${algorithm},"* ]]; then
        if [[ "${field[0]}" == published ]]; then note="the published figure holds for ${algorithms//,/ or }, this run used ${algorithm}"; fi
        return 1
    fi
    if [[ "${connected}" != any && "${connected}" != "${fabric}" ]]; then
        if [[ "${field[0]}" == published ]]; then note="the published figure holds for nodes connected by ${connected}, this run: ${fabric}"; fi
        return 1
    fi
}

# run_key: what two runs must have in common to be compared, beside the VM size. It begins the detail of the check, by which
# later runs know the figure.
run_key() {
    echo "algorithm ${algorithm}, fabric ${fabric}, ${measured_bytes} bytes, $((GPUS_PER_NODE * SLURM_JOB_NUM_NODES)) ranks on ${SLURM_JOB_NUM_NODES} nodes"
}

# earlier_figures: `nodes <tab> GB/s` of every earlier run like this one, the oldest first, from the records in RUNS_DIR,
# which several jobs and users may share. What is not whole does not count, and neither do runs that failed or did not
# come to their end: a cluster must not get used to being slow.
earlier_figures() {
    local -a files=()
    local file
    for file in "${RUNS_DIR:-}"/*/run.json; do
        if [[ -f "${file}" && -r "${file}" ]]; then files+=("${file}"); fi
    done
    if ((${#files[@]} == 0)); then return 0; fi
    awk -v collective="${collective}" -v key="$(run_key)" -v size="${VM_SIZE}" '
        # text(NAME): the text of a member of this line.
        function text(name,    rest) {
            if (!match($0, "\"" name "\": \"")) return ""
            rest = substr($0, RSTART + RLENGTH)
            sub(/".*/, "", rest)
            return rest
        }
        function judged(verdict) { return verdict == "pass" || verdict == "warn" || verdict == "no_baseline" }
        FNR == 1 { nodes = started = value = ""; fits = counts = 0 }
        /^  "started": / { started = text("started") }
        /^  "cluster": / { fits = text("vm_size") == size }
        /^  "verdict": / { counts = judged(text("verdict")) }
        /^    [{]"name": .*"physical_host": / { nodes = nodes (nodes == "" ? "" : ",") text("name") }
        /^    [{]"check": / && text("check") == collective && judged(text("verdict")) {
            detail = text("detail")
            if (detail == key || index(detail, key ";") == 1) { value = $0; sub(/^.*"value": /, "", value); sub(/,.*/, "", value) }
        }
        # The last line of a record that is whole.
        /^}$/ && fits && counts && nodes != "" && value ~ /^[0-9]+([.][0-9]+)?$/ && value + 0 > 0 { print started "\t" nodes "\t" value }
    ' "${files[@]}" | sort | cut -f 2,3
}

# judge_medians GB/S: `verdict <tab> text` by the medians of earlier runs; nothing where there are too few.
# The fleet is the newest figure of each other set of nodes. The worse of both decides.
judge_medians() {
    local earlier nodes fleet all verdict="" text="" each name values
    earlier="$(earlier_figures)"
    if [[ -z "${earlier}" ]]; then return 0; fi
    nodes="$(requested_nodes | paste -sd , -)"
    all="$(cut -f 2 <<<"${earlier}")"
    fleet="$(awk -F '\t' -v own="${nodes}" '$1 != own { newest[$1] = $2 } END { for (each in newest) print newest[each] }' <<<"${earlier}")"
    for name in "other nodes" "earlier runs"; do
        values="${all}"
        if [[ "${name}" == "other nodes" ]]; then values="${fleet}"; fi
        if (($(grep -c . <<<"${values}") < MEDIAN_MIN_RUNS)); then continue; fi
        each="$(median_of "${values}")"
        verdict="$(worst ${verdict:+"${verdict}"} "$(judge_below "$1" "${each}")")"
        text+="${text:+, }median of ${name} ${each} GB/s"
    done
    if [[ -n "${verdict}" ]]; then printf '%s\t%s\n' "${verdict}" "${text}; fails ${MEDIAN_FAIL_PERCENT} % below, warns ${MEDIAN_WARN_PERCENT} % below"; fi
}

# median_of VALUES: one a line.
median_of() {
    sort -g <<<"$1" | awk '{ value[NR] = $1 } END { print (NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2) }'
}

# judge_below VALUE MEDIAN
judge_below() {
    judge "$1" "$(percent_below "$2" "${MEDIAN_WARN_PERCENT}")" "$(percent_below "$2" "${MEDIAN_FAIL_PERCENT}")"
}

# percent_below VALUE PERCENT
percent_below() {
    awk -v value="$1" -v percent="$2" 'BEGIN { printf "%.6f\n", value * (1 - percent / 100) }'
}
