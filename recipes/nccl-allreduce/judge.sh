# shellcheck shell=bash
# Judges one run of all_reduce_perf. Sourced by run.sh after common.sh and nccl.sh.
#
# What decides, the first that exists:
#   1. the figure that the job was given (BASELINE_FAIL, BASELINE_WARN)
#   2. a published figure for this VM size, number of nodes, message and algorithm
#   3. a derived one, which warns at most and above which nothing has passed, together with
#   4. the medians of earlier runs: of the fleet (other nodes) and of all runs of this cluster
# With none of them the verdict is no_baseline.
# shellcheck disable=SC2154  # run.sh and nccl.sh set what a run has measured

readonly FIGURE_FORM=nccl-figure-1 BASELINE_COLUMNS=11 FIGURE_COLUMNS=13

# judge_all_reduce OUTPUT FILE LOG...: records the verdicts and keeps the figure for later runs; sets bus_bandwidth,
# measured_bytes, algorithm and fabric.
judge_all_reduce() {
    local -r output="$1" file="$2"
    shift 2
    local -r ranks=$((GPUS_PER_NODE * SLURM_JOB_NUM_NODES))
    local bytes problem verdict bounds average
    bytes="$(bytes_of "${MESSAGE_SIZE}")" || die "message size ${MESSAGE_SIZE} is not a valid size"
    problem="$(tests_ranks "${output}" "${ranks}" "${SLURM_JOB_NUM_NODES}")"
    if [[ -n "${problem}" ]]; then
        record "${file}" ranks error "" "${ranks}" ranks "${problem}"
        return
    fi
    record "${file}" ranks pass "${ranks}" "${ranks}" ranks ""
    if ! tests_row "${output}" "${bytes}"; then
        record "${file}" all_reduce error "" "" "" "${row_problem}"
        return
    fi
    algorithm="$(nccl_algorithm AllReduce "${measured_bytes}" "$@")"
    fabric="$(nccl_fabric "$@")"
    judge_values "${file}"
    verdict=fail
    bounds="$(tests_footer "${output}" "Out of bounds values")" || bounds="not printed"
    if [[ "${bounds}" =~ ^0\ +OK$ ]]; then verdict=pass; fi
    record "${file}" out_of_bounds "${verdict}" "${bounds}" "0 OK" "" ""
    average="$(tests_footer "${output}" "Avg bus bandwidth")" || average=""
    judge_bandwidth "${file}" "${bus_out}" "${average}"
    keep_figure "$(worst_in "${file}")" "${average}" || log "this run's figure could not be kept for later runs"
}

# judge_values FILE: data checking has found nothing; releases with `error` say so in the footer alone.
judge_values() {
    if [[ "${wrong_kind}" != "#wrong" ]]; then return 0; fi
    local verdict=fail
    if [[ "${wrong_out} ${wrong_in}" == "0 0" ]]; then verdict=pass; fi
    record "$1" wrong_values "${verdict}" "${wrong_out} ${wrong_in}" "0 0" "values out of and in place" "any other number is a hardware fault"
}

# judge_bandwidth FILE BUSBW AVERAGE
judge_bandwidth() {
    local -r file="$1" busbw="$2" average="$3"
    local verdict detail="" expected="" note="" of_median="" published="" derived="" warn="" fail=""
    bus_bandwidth="${busbw}"
    if [[ -n "${BASELINE_FAIL}${BASELINE_WARN}" ]]; then
        given_baseline
    elif ! read_baselines; then
        record "${file}" all_reduce error "${busbw}" "" GB/s "${note}"
        return
    fi
    if [[ -n "${published}" ]]; then
        choose "${published}" "${busbw}" "${average}"
        verdict="$(judge "${bus_bandwidth}" "${warn}" "${fail}")"
    else
        of_median="$(judge_medians "${busbw}")"
        detail="${of_median#*$'\t'}" of_median="${of_median%%$'\t'*}"
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
    detail="algorithm ${algorithm}, ${measured_bytes} bytes${detail:+; ${detail}}${note:+; ${note}}"
    record "${file}" all_reduce "${verdict}" "${bus_bandwidth}" "${expected}" GB/s "${detail}"
}

# choose ROW BUSBW AVERAGE: sets warn, fail, expected, bus_bandwidth and detail from a row of the table.
choose() {
    local kind metric formula source
    IFS=$'\t' read -r kind _ _ metric _ _ expected warn fail formula source <<<"$1"
    warn="${warn#-}" fail="${fail#-}" expected="${expected#-}"
    bus_bandwidth="$2"
    if [[ "${metric}" == "avg busbw" ]]; then bus_bandwidth="$3"; fi
    expected="${expected:-${warn:-${fail}}}"
    if [[ "${kind}" == derived ]]; then
        detail+="${detail:+; }derived floor ${warn} GB/s = ${formula}, warns at most; source ${source}"
    else
        detail="${kind} floor ${fail:-${warn}} GB/s; source ${source}"
    fi
}

# given_baseline: the figure in the job's settings, if it holds for this run; sets published and note. It replaces the
# table: who gives a figure does not want to be judged by another one.
given_baseline() {
    if [[ -n "${BASELINE_MESSAGE_SIZE}" && "$(bytes_of "${BASELINE_MESSAGE_SIZE}")" != "${measured_bytes}" ]]; then
        note="the given figure holds for ${BASELINE_MESSAGE_SIZE}"
    elif [[ -n "${BASELINE_ALGORITHM}" && " ${BASELINE_ALGORITHM} " != *" ${algorithm} "* ]]; then
        note="the given figure holds for ${BASELINE_ALGORITHM}, this run used ${algorithm}"
    else
        published="given"$'\t'"-"$'\t'"-"$'\t'"${BASELINE_METRIC:-busbw}"$'\t'"any"$'\t'"any"
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
    [[ "${field[1]}" =~ ^[1-9][0-9]*[+]?$ && "${field[2]}" =~ ^[1-9][0-9]*[KMG][+]?$ ]] || return 1
    [[ "${field[3]}" == busbw || "${field[3]}" == "avg busbw" ]] || return 1
    for value in "${field[@]:6:3}"; do
        [[ "${value}" == - || ("${value}" =~ ^[0-9]+([.][0-9]+)?$ && "${value}" == *[1-9]*) ]] || return 1
    done
    [[ "${field[7]}${field[8]}" != -- ]]
}

# fits_run: the row holds for this number of nodes, message, algorithm and fabric. A figure that another algorithm
# missed is named in note.
fits_run() {
    local -r nodes="${field[1]%+}" algorithms="${field[4]}" connected="${field[5]}"
    local bytes
    ((SLURM_JOB_NUM_NODES == nodes)) || [[ "${field[1]}" == *+ && ${SLURM_JOB_NUM_NODES} -gt ${nodes} ]] || return 1
    bytes="$(bytes_of "${field[2]%+}")"
    ((measured_bytes == bytes)) || [[ "${field[2]}" == *+ && ${measured_bytes} -gt ${bytes} ]] || return 1
    if [[ "${algorithms}" != any && ",${algorithms}," != *",${algorithm},"* ]]; then
        if [[ "${field[0]}" == published ]]; then note="the published figure holds for ${algorithms//,/ or }, this run used ${algorithm}"; fi
        return 1
    fi
    if [[ "${connected}" != any && "${connected}" != "${fabric}" ]]; then
        if [[ "${field[0]}" == published ]]; then note="the published figure holds for nodes connected by ${connected}, this run: ${fabric}"; fi
        return 1
    fi
}

# earlier_figures: `nodes <tab> GB/s` of every earlier run like this one, the oldest first, from the results of this job or
# from HISTORY_DIR, which several jobs and users may share; a folder per run. A figure that is not whole
# does not count, and neither do runs that failed: a cluster must not get used to being slow.
earlier_figures() {
    local -a files=()
    local file
    for file in "${HISTORY_DIR:-${RESULTS_DIR}}"/*/figure.tsv; do
        if [[ -f "${file}" ]]; then files+=("${file}"); fi
    done
    if ((${#files[@]} == 0)); then return 0; fi
    mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -V)
    awk -F '\t' -v form="${FIGURE_FORM}" -v columns="${FIGURE_COLUMNS}" -v key="$(figure_key)" '
        FNR == 1 && NF == columns && $1 == form && $columns == "end" {
            own = $2
            for (i = 3; i <= 8; i++) own = own " " $i
            if (own == key && ($11 == "pass" || $11 == "warn" || $11 == "no_baseline") && $9 ~ /^[0-9.]+$/ && $9 + 0 > 0) print $12 "\t" $9
        }' "${files[@]}"
}

# figure_key: what two runs must have in common to be compared.
figure_key() {
    echo "all_reduce ${VM_SIZE} ${SLURM_JOB_NUM_NODES} $((GPUS_PER_NODE * SLURM_JOB_NUM_NODES)) ${measured_bytes} ${algorithm} ${fabric}"
}

# keep_figure VERDICT AVERAGE: this run's figure for later runs; whole or not at all.
keep_figure() {
    local key nodes folder="${results}"
    if [[ -n "${HISTORY_DIR}" ]]; then folder="${HISTORY_DIR}/${JOB}-${results##*/}"; fi
    mkdir -p "${folder}" 2>/dev/null || return
    key="$(figure_key)"
    nodes="$(requested_nodes | paste -sd , -)"
    printf '%s\t%s\t%s\t%s\t%s\t%s\tend\n' "${FIGURE_FORM}" "${key// /$'\t'}" "${bus_out}" "${2:-none}" "$1" "${nodes}" >"${folder}/figure.tsv.partial" || return
    mv "${folder}/figure.tsv.partial" "${folder}/figure.tsv"
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
