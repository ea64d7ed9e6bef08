#!/usr/bin/env bash
# Measures every shared file system of mounts.tsv with one client and with all nodes of the job.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/fio.sh
. "${JOBS_LIB}/fio.sh"
# shellcheck source=recipes/lib/fleet.sh
. "${JOBS_LIB}/fleet.sh"

# counted NUMBER NOUN
counted() {
    if (($1 == 1)); then echo "$1 $2"; else echo "$1 $2s"; fi
}

# writable_folder MOUNT: a new folder of this run on that file system, where the user may write. The root of most file
# systems belongs to root.
writable_folder() {
    local -r mount="$1"
    local parent
    mkdir -p "${STAGE_PATH}" 2>/dev/null || true
    for parent in "${STAGE_PATH}" "${HOME:-}" "${mount}/${USER:-$(id -un)}" "${mount}"; do
        if [[ "${parent}/" == "${mount}/"* && -d "${parent}" && -w "${parent}" ]]; then
            if mktemp -d "${parent}/cycleforge-storage.XXXXXX" 2>/dev/null; then return; fi
        fi
    done
    return 1
}

# clients COUNT TEST FOLDER LABEL MOUNT: the test on that many nodes at once.
clients() {
    local -r count="$1" test="$2" folder="$3" label="$4" mount="$5"
    need_time
    bounded "${TIMEOUT_S}" srun --nodes="${count}" --ntasks="${count}" --ntasks-per-node=1 --cpus-per-task="${VCPUS:-1}" --mem=0 --cpu-bind=none \
        --kill-on-bad-exit=0 ./client.sh "${test}" "${folder}" "${label}" "${mount}" || log "${test} ${mount}: srun reported a failed client"
    end_if_cut_off
}

# all_clients TEST FOLDER LABEL MOUNT: every node at once. Where one is so much slower than the others that it would fail, all are
# measured once more, and each node keeps its better figure: what is wrong with a node is wrong both times, and what else
# happened on it or on the server meanwhile is not.
all_clients() {
    local -r label="$3"
    clients "${SLURM_JOB_NUM_NODES}" "$1" "$2" "${label}" "$4"
    if [[ -n "$(missing "${label}")" ]] || ! has_slow_client "${label}"; then return; fi
    log "$1 $4: a node is much slower than the others; measured once more"
    clients "${SLURM_JOB_NUM_NODES}" "$1" "$2" "${label}.again" "$4"
}

# has_slow_client LABEL: whether one of its nodes would fail.
has_slow_client() {
    local node
    while read -r node; do
        printf 'client\t%s\tshare\t%s\tMB/s\tany\t\n' "${node}" "$(rate_of "$1" "${node}")"
    done < <(requested_nodes) >"${results}/$1.shares"
    judge_fleet /dev/null "${results}/$1.shares" | awk -F '\t' '$2 == "fail" { found = 1 } END { exit !found }'
}

# rate_in LABEL NODE: what that client measured; fails where it gave no number.
rate_in() {
    local rate
    rate="$(cat "${results}/$1.$2.rate" 2>/dev/null)" || return 1
    rate="${rate%$'\r'}"
    is_number "${rate}" || return 1
    echo "${rate}"
}

# rate_of LABEL NODE: the better one, where it was measured twice.
rate_of() {
    local first again
    first="$(rate_in "$1" "$2")" || return 1
    if again="$(rate_in "$1.again" "$2")" && ! at_least "${first}" "${again}"; then first="${again}"; fi
    echo "${first}"
}

# sum_of LABEL: of all nodes of the job at the same time, the better one where they were measured twice; fails where one is missing.
sum_of() {
    local first again
    first="$(sum_in "$1")" || return 1
    if again="$(sum_in "$1.again")" && ! at_least "${first}" "${again}"; then first="${again}"; fi
    echo "${first}"
}

sum_in() {
    local node
    while read -r node; do rate_in "$1" "${node}" || return 1; done < <(requested_nodes) | awk '{ sum += $1 } END { if (!NR) exit 1; printf "%.1f\n", sum }'
}

# missing LABEL: nodes without a figure, for people.
missing() {
    local node list=""
    while read -r node; do
        if ! rate_in "$1" "${node}" >/dev/null; then list+="${list:+,}${node}"; fi
    done < <(requested_nodes)
    echo "${list}"
}

# judge_total CHECK TOTAL UNIT TOOL[: WORDS] PROMISED FORMULA: by the tier, else by earlier runs of as many nodes with the same tool.
judge_total() {
    local -r check="$1" total="$2" unit="$3" said="$4" promised="$5" formula="$6"
    local -r tool="${said%%:*}"
    local level share
    printf '%s\t%s\t%s\t%s\n' "${check}" "${SLURM_JOB_NUM_NODES}" "${tool}" "${total}" >>"${results}/totals.tsv"
    if [[ "${promised}" != - ]]; then
        level="$(awk -v all="${promised}" -v percent="${SHARE_WARN_PERCENT}" 'BEGIN { printf "%.1f", all * percent / 100 }')"
        share="$(awk -v total="${total}" -v all="${promised}" 'BEGIN { printf "%.0f", 100 * total / all }')"
        record "${results}/checks.tsv" "${check}" "$(judge "${total}" "${level}" "")" "${total}" "${level}" "${unit}" \
            "${share} % of ${promised} MB/s by ${SLURM_JOB_NUM_NODES} clients, ${said}" "tier: ${formula}; ${SHARE_WARN_PERCENT} % is our own choice" ""
    elif level="$(usual "${check}" "${tool}")"; then
        level="$(awk -v all="${level}" -v percent="${SHARE_WARN_PERCENT}" 'BEGIN { printf "%.1f", all * percent / 100 }')"
        record "${results}/checks.tsv" "${check}" "$(judge "${total}" "${level}" "")" "${total}" "${level}" "${unit}" \
            "${SLURM_JOB_NUM_NODES} clients, ${said}" "${SHARE_WARN_PERCENT} % of the median of earlier runs" ""
    else
        record "${results}/checks.tsv" "${check}" no_baseline "${total}" "" "${unit}" \
            "${SLURM_JOB_NUM_NODES} clients, ${said}; the tier promises nothing, and fewer than ${MEDIAN_MIN_RUNS} earlier runs of as many nodes" "" ""
    fi
}

# usual CHECK TOOL: the median of earlier runs of as many nodes; fails where there are too few. Damaged lines do not count.
usual() {
    local -a files=()
    local file
    for file in "${HISTORY_DIR:-${RESULTS_DIR}}"/*/totals.tsv; do
        if [[ -f "${file}" && ! "${file}" -ef "${results}/totals.tsv" ]]; then files+=("${file}"); fi
    done
    if ((${#files[@]} == 0)); then return 1; fi
    awk -F '\t' -v check="$1" -v nodes="${SLURM_JOB_NUM_NODES}" -v tool="$2" \
        'NF == 4 && $1 == check && $2 == nodes && $3 == tool && $4 ~ /^[0-9]+([.][0-9]+)?$/ && $4 > 0 { print $4 }' "${files[@]}" | sort -n |
        awk -v least="${MEDIAN_MIN_RUNS}" '{ value[NR] = $1 } END { if (NR < least) exit 1; print (NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2) }'
}

# by_clients NUMBER MOUNT PROMISED FORMULA FOLDER: fio or dd on each node: alone on one, then on all.
by_clients() {
    local -r number="$1" mount="$2" promised="$3" formula="$4" folder="$5"
    local way total one node rate
    local -r tool="$(disk_tool)"
    for way in write read; do
        clients 1 "${way}" "${folder}/one" "one.${number}.${way}" "${mount}"
        one="$(rate_of "one.${number}.${way}" "$(requested_nodes | head -n 1)" || true)"
        if [[ -n "${one}" ]]; then series "${way} ${mount}" MB/s clients "" 1 "${one}"; fi
    done
    rm -rf "${folder}/one"
    for way in write read; do
        all_clients "${way}" "${folder}" "all.${number}.${way}" "${mount}"
        if total="$(sum_of "all.${number}.${way}")"; then
            series "${way} ${mount}" MB/s clients "" "${SLURM_JOB_NUM_NODES}" "${total}"
            judge_total "${way} ${mount}" "${total}" MB/s "${tool}" "${promised}" "${formula}"
            while read -r node; do
                rate="$(rate_of "all.${number}.${way}" "${node}")"
                append_line "${results}/values.tsv" "client ${way} ${mount}" "${node}" share "${rate}" MB/s "${tool}" "all clients at once"
            done < <(requested_nodes)
        else
            record "${results}/checks.tsv" "${way} ${mount}" error "" "" MB/s "not proven: no figure of these nodes, see all.${number}.${way}.*.log" "" "$(missing "all.${number}.${way}")"
        fi
    done
}

# with_mpi LOG PROGRAM WORD...: as many processes on each node as clients have, started by PMIx. A launch that failed is made once more.
with_mpi() {
    local -r log_file="$1"
    shift
    local try
    for try in 1 2; do
        need_time
        if bounded "${TIMEOUT_S}" srun --mpi=pmix --nodes="${SLURM_JOB_NUM_NODES}" --ntasks="$((SLURM_JOB_NUM_NODES * CLIENT_JOBS))" \
            --ntasks-per-node="${CLIENT_JOBS}" --mem=0 "$@" >"${log_file}" 2>&1; then
            return
        fi
        end_if_cut_off
        log "${1##*/} failed in launch ${try}: $(grep -v '^[[:space:]]*$' "${log_file}" | tail -n 1 | cut -c 1-160)"
    done
    return 1
}

# by_ior NUMBER MOUNT PROMISED FORMULA FOLDER: one file for each process, read by the next node.
by_ior() {
    local -r mount="$2" promised="$3" formula="$4" folder="$5"
    local -r log_file="${results}/ior.$1.log"
    local -r tasks=$((SLURM_JOB_NUM_NODES * CLIENT_JOBS))
    local way total
    with_mpi "${log_file}" "${IOR_BINARY}" -a POSIX -w -r -F -e -C -b "${CLIENT_MIB}m" -t 1m -i 1 -o "${folder}/ior" || true
    for way in write read; do
        if total="$(rate_of_ior "${log_file}" "${way}" "${tasks}")"; then
            judge_total "${way} ${mount}" "${total}" MB/s ior "${promised}" "${formula}"
        else
            record "${results}/checks.tsv" "${way} ${mount}" error "" "" MB/s "not proven: IOR gave no result for all ${tasks} processes, see ior.$1.log" "" ""
        fi
    done
}

# metadata_by_mdtest NUMBER MOUNT FOLDER: files of all processes together.
metadata_by_mdtest() {
    local -r mount="$2" log_file="${results}/mdtest.$1.log"
    local -r tasks=$((SLURM_JOB_NUM_NODES * CLIENT_JOBS))
    local total said
    mkdir "$3/mdtest"
    with_mpi "${log_file}" "${MDTEST_BINARY}" -F -C -T -r -u -i 1 -N "${CLIENT_JOBS}" -n "${METADATA_FILES}" -d "$3/mdtest" || true
    if IFS=$'\t' read -r total said < <(rate_of_mdtest "${log_file}" "${tasks}"); then
        judge_total "metadata ${mount}" "${total}" files/s "mdtest: ${said}" - -
    else
        record "${results}/checks.tsv" "metadata ${mount}" error "" "" files/s "not proven: mdtest gave no result for all ${tasks} processes, see mdtest.$1.log" "" ""
    fi
}

# metadata_by_loop MOUNT LABEL: what the loops of all clients reach together.
metadata_by_loop() {
    local -r mount="$1"
    local -r total="$(sum_of "$2")"
    # With enough nodes to compare, a rate that no one has published needs no history.
    if ((SLURM_JOB_NUM_NODES < FLEET_MIN_VALUES)) || usual "metadata ${mount}" loop >/dev/null; then
        judge_total "metadata ${mount}" "${total}" files/s loop - -
    else
        printf '%s\t%s\tloop\t%s\n' "metadata ${mount}" "${SLURM_JOB_NUM_NODES}" "${total}" >>"${results}/totals.tsv"
    fi
}

# test_mount NUMBER PATH PROTOCOL ACCESS PROMISED FORMULA
test_mount() {
    local -r number="$1" mount="$2" protocol="$3" access="$4" promised="$5" formula="$6"
    local folder node rate
    # What is open past the page cache is refused, or not cached at all, by file systems in user space.
    local -x SET_DISK_DIRECT="${DISK_DIRECT}"
    if [[ "${protocol}" == blobfuse ]]; then SET_DISK_DIRECT=0; fi
    clients "${SLURM_JOB_NUM_NODES}" check - "mounted.${number}" "${mount}"
    if [[ -n "$(missing "mounted.${number}")" ]]; then
        record "${results}/checks.tsv" "mounted ${mount}" fail "" "" "" "not mounted: /proc/mounts has no such path" "" "$(missing "mounted.${number}")"
        return
    fi
    record "${results}/checks.tsv" "mounted ${mount}" pass "" "" "" "" "" ""
    if [[ "${access}" != rw ]]; then
        left_out+=("${mount}, to which only $([[ "${access}" == ro ]] && echo "its owner writes" || echo "root writes")")
        return
    fi
    if ! folder="$(writable_folder "${mount}")"; then
        record "${results}/checks.tsv" "write ${mount}" error "" "" MB/s \
            "not proven: there is no folder in which ${USER:-you} may write; make one: sudo install -d -o ${USER:-you} ${mount}/${USER:-you}" "" ""
        return
    fi
    remove_at_end "${folder}"
    log "${mount}: in ${folder}"
    if [[ -n "${IOR_BINARY}" ]]; then by_ior "${number}" "${mount}" "${promised}" "${formula}" "${folder}"; else by_clients "${number}" "${mount}" "${promised}" "${formula}" "${folder}"; fi
    if [[ -n "${MDTEST_BINARY}" ]]; then metadata_by_mdtest "${number}" "${mount}" "${folder}"; fi
    all_clients metadata "${folder}" "metadata.${number}" "${mount}"
    if [[ -z "$(missing "metadata.${number}")" ]]; then
        if [[ -z "${MDTEST_BINARY}" ]]; then metadata_by_loop "${mount}" "metadata.${number}"; fi
        while read -r node; do
            rate="$(rate_of "metadata.${number}" "${node}")"
            append_line "${results}/values.tsv" "client metadata ${mount}" "${node}" files "${rate}" files/s loop "${METADATA_FILES} files made, found and removed"
        done < <(requested_nodes)
    else
        record "${results}/checks.tsv" "metadata ${mount}" error "" "" files/s "not proven: no figure of these nodes" "" "$(missing "metadata.${number}")"
    fi
    rm -rf "${folder}"
}

main() {
    local -a left_out=()
    local number=0 mount protocol access promised formula
    load_settings
    new_results_folder
    require CLIENT_JOBS CLIENT_MIB METADATA_FILES SHARE_WARN_PERCENT TIMEOUT_S MEDIAN_MIN_RUNS STAGE_PATH
    require_commands srun scontrol timeout awk
    [[ -s mounts.tsv ]] || die "mounts.tsv is not in ${PWD}"
    [[ -z "${IOR_BINARY}" ]] || require_commands "${IOR_BINARY}"
    # mdtest comes with IOR, and make leaves both in one folder.
    if [[ -z "${MDTEST_BINARY}" && "${IOR_BINARY}" == */* && -x "${IOR_BINARY%/*}/mdtest" ]]; then MDTEST_BINARY="${IOR_BINARY%/*}/mdtest"; fi
    [[ -z "${MDTEST_BINARY}" ]] || require_commands "${MDTEST_BINARY}"
    forget_tuning
    : >"${results}/values.tsv"
    describe_nodes
    while IFS=$'\t' read -r mount protocol access promised formula; do
        if [[ "${mount}" == \#* || (-n "${MOUNTS}" && ",${MOUNTS}," != *",${mount},"*) ]]; then continue; fi
        number=$((number + 1))
        # srun reads what is left of the table otherwise.
        test_mount "${number}" "${mount}" "${protocol}" "${access}" "${promised}" "${formula}" </dev/null
    done <mounts.tsv
    ((number)) || die "MOUNTS is '${MOUNTS}', and mounts.tsv has no such file system"
    judge_fleet /dev/null "${results}/values.tsv" >"${results}/fleet.tsv"
    # Clients are compared with each other; what they reach together is judged above.
    awk -F '\t' '$2 != "no_baseline"' "${results}/fleet.tsv" >>"${results}/checks.tsv"
    conclude "$(counted "${number}" "file system"), $(counted "${SLURM_JOB_NUM_NODES}" client)$(not_tested "${left_out[@]}")"
}
main "$@"
