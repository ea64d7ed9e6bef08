#!/usr/bin/env bash
# Times from the allocation to a running node, and from an image's name to a running container.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"

readonly MIN_NODES=3

# check CHECK VERDICT VALUE EXPECTED DETAIL SOURCE NODES: seconds.
check() {
    record "${results}/checks.tsv" "$1" "$2" "$3" "$4" s "$5" "$6" "$7"
}

# since BEGAN: seconds with one decimal.
since() {
    awk -v s0="$1" -v s1="${EPOCHREALTIME}" 'BEGIN { printf "%.1f", s1 - s0 }'
}

# time_of FIELD TEXT: seconds since 1970 of a field of scontrol; fails where it is missing, None or Unknown.
time_of() {
    local value
    value="$(grep -o -E "(^|[[:space:]])$1=[0-9T:-]+" <<<"$2" | head -n 1)" || return 1
    date -d "${value#*=}" +%s 2>/dev/null
}

# test_boot: a node that started for this job has a slurmd that is younger than the allocation.
# Fields: https://slurm.schedmd.com/scontrol.html (StartTime of a job, SlurmdStartTime of a node, ResumeTimeout)
test_boot() {
    local node text allocated started limit="" verdict level seconds=0 booted=0
    if ! allocated="$(time_of StartTime "$(scontrol show job "${SLURM_JOB_ID}" 2>&1)")"; then
        check boot error "" "" "not proven: Slurm does not say when the job was allocated" "" ""
        return
    fi
    limit="$(scontrol show config 2>/dev/null | awk '$1 == "ResumeTimeout" && $3 ~ /^[0-9]+$/ { print $3; exit }')"
    while read -r node; do
        text="$(scontrol show node "${node}" 2>&1)" || text=""
        if ! started="$(time_of SlurmdStartTime "${text}")"; then
            check boot error "" "" "not proven: Slurm does not say when slurmd started" "" "${node}"
            booted=$((booted + 1))
        elif ((started >= allocated)); then
            booted=$((booted + 1))
            seconds=$((started - allocated))
            verdict=no_baseline level=""
            if [[ -n "${limit}" ]]; then
                level=$((limit * BOOT_WARN_PERCENT / 100)) verdict=pass
                if ((seconds > level)); then verdict=warn; fi
                if ((seconds > limit)); then verdict=fail; fi
            fi
            check boot "${verdict}" "${seconds}" "${level}" "from the allocation until slurmd started" "${BOOT_WARN_PERCENT} % of ResumeTimeout, ${limit:-unknown} s" "${node}"
        fi
    done < <(requested_nodes)
    if ((booted == 0)); then
        check boot no_baseline "" "" "all nodes were running already; power them down before the job, see README.md" "" ""
    fi
}

# import_image IMAGE: its squash file, in REPLY; fails where there is none, which is recorded. A file needs no import.
import_image() {
    local -r image="$1"
    local began seconds
    local -r imported="${STAGE_PATH}/images/start-times-${SLURM_JOB_ID}.sqsh"
    if [[ "${image}" == /* ]]; then
        REPLY="${image}"
        if [[ -s "${image}" ]]; then
            left_out+=("import, because IMAGE is a file")
            return
        fi
        check import error "" "" "not proven: IMAGE is ${image}, and there is no such file" "" ""
        return 1
    fi
    require_commands enroot
    striped_folder "${STAGE_PATH}/images"
    began="${EPOCHREALTIME}"
    if ! timeout "${TIMEOUT_S}" enroot import --output "${imported}" "${image}" >"${results}/import.log" 2>&1 || [[ ! -s "${imported}" ]]; then
        rm -f "${imported}"
        check import error "" "" "not proven: enroot import failed: $(tail -n 1 "${results}/import.log" | cut -c 1-160)" "" ""
        return 1
    fi
    seconds="$(since "${began}")"
    check import pass "${seconds}" "" "${image}, $(stat -c %s "${imported}") bytes; reported, not judged" "" ""
    REPLY="${STAGE_PATH}/images/$(image_name "${image}").sqsh"
    if [[ -s "${REPLY}" ]]; then rm -f "${imported}"; else mv "${imported}" "${REPLY}"; fi
}

# test_containers: import on this node, copy to every node, and two starts on all nodes.
test_containers() {
    local file
    # shellcheck disable=SC2153  # a setting
    import_image "${IMAGE}" || return 0
    file="${REPLY}"
    if [[ -n "${NVME_MOUNT}" ]]; then
        # shellcheck disable=SC2016  # expanded on each node
        on_every_node copy 'mountpoint -q "$2" && cp "$1" "$2/start-times.sqsh.partial" && mv "$2/start-times.sqsh.partial" "$2/start-times.sqsh"' "${file}" "${NVME_MOUNT}"
        judge_seconds copy
        if [[ "$(worst_of copy)" != fail ]]; then file="${NVME_MOUNT}/start-times.sqsh"; fi
    fi
    start_containers "first start" "${file}"
    start_containers "second start" "${file}"
    if [[ -n "${NVME_MOUNT}" ]]; then
        # shellcheck disable=SC2016  # expanded on each node
        bounded 120 srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --kill-on-bad-exit=0 bash -c 'rm -f "$1/start-times.sqsh"' clean "${NVME_MOUNT}" || true
    fi
}

# on_every_node CHECK COMMAND WORD...: a Bash command line on every node; lines `NODE SECONDS` of those where it succeeded.
on_every_node() {
    local -r name="$1" command="$2"
    shift 2
    need_time
    # shellcheck disable=SC2016  # expanded on each node
    bounded "${TIMEOUT_S}" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task=1 --cpu-bind=none --kill-on-bad-exit=0 bash -c '
        began="${EPOCHREALTIME}"
        command="$1"
        shift
        eval "${command}" >&2 && awk -v node="${SLURMD_NODENAME}" -v s0="${began}" -v s1="${EPOCHREALTIME}" "BEGIN { printf \"%s %.1f\n\", node, s1 - s0 }"
    ' "${name}" "${command}" "$@" >"${results}/${name// /-}.times" 2>"${results}/${name// /-}.log" || log "${name}: srun reported a failed node"
    end_if_cut_off
}

# start_containers CHECK IMAGE-FILE: the first command of each container says when it runs. The image's own date may know no
# nanoseconds.
start_containers() {
    local -r name="$1" file="$2"
    need_time
    local -r began="${EPOCHREALTIME}"
    # shellcheck disable=SC2016  # expanded in each container
    bounded "${TIMEOUT_S}" srun --ntasks="${SLURM_JOB_NUM_NODES}" --ntasks-per-node=1 --cpus-per-task=1 --cpu-bind=none --kill-on-bad-exit=0 \
        --container-image="${file}" sh -c 'echo "${SLURMD_NODENAME} $(date +%s.%N)"' 2>"${results}/${name// /-}.log" |
        awk -v s0="${began}" 'NF == 2 && $2 ~ /^[0-9]+([.][0-9N%]*)?$/ { printf "%s %.1f\n", $1, $2 - s0 }' >"${results}/${name// /-}.times" ||
        log "${name}: srun reported a failed container"
    end_if_cut_off
    judge_seconds "${name}"
}

# worst_of CHECK: of what was recorded under that name.
worst_of() {
    local -a verdicts=()
    mapfile -t verdicts < <(awk -F '\t' -v check="$1" '$1 == check { print $2 }' "${results}/checks.tsv")
    worst "${verdicts[@]}"
}

# judge_seconds CHECK: each node against the median of all; a node without a time fails.
judge_seconds() {
    local -r name="$1"
    requested_nodes >"${results}/nodes.txt"
    awk -v OFS='\t' -v name="${name}" -v percent="${SLOW_PERCENT}" -v least="${SLOW_S}" -v min_nodes="${MIN_NODES}" '
        FILENAME == ARGV[1] { node[++nodes] = $1; next }
        NF == 2 && $2 ~ /^-?[0-9]+([.][0-9]+)?$/ && !($1 in seconds) { seconds[$1] = $2 + 0; sorted[++count] = $2 + 0 }
        END {
            for (i = 2; i <= count; i++) { each = sorted[i]; for (k = i - 1; k > 0 && sorted[k] > each; k--) sorted[k + 1] = sorted[k]; sorted[k + 1] = each }
            level = count ? (count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2) : 0
            limit = level * (1 + percent / 100)
            if (limit < level + least) limit = level + least
            for (i = 1; i <= nodes; i++) {
                n = node[i]
                if (!(n in seconds)) { print name, "fail", "", "", "s", "no time from this node, see its log in the results", "", n; continue }
                verdict = count < min_nodes ? "no_baseline" : seconds[n] > limit ? "warn" : "pass"
                print name, verdict, seconds[n], (count < min_nodes ? "" : sprintf("%.1f", limit)), "s", sprintf("median %.1f s", level), (count < min_nodes ? "" : "median of " count " nodes"), n
            }
        }' "${results}/nodes.txt" "${results}/${name// /-}.times" >>"${results}/checks.tsv"
}

# has_pyxis: Slurm knows containers where the plug-in is.
has_pyxis() {
    srun --help 2>&1 | grep -q -e --container-image
}

main() {
    local tests
    local -a left_out=()
    load_settings
    new_results_folder
    require TESTS IMAGE TIMEOUT_S STAGE_PATH BOOT_WARN_PERCENT SLOW_PERCENT SLOW_S
    require_commands srun scontrol timeout awk
    # shellcheck disable=SC2153
    tests="${TESTS//,/ }"
    if [[ "${TESTS}" == auto ]]; then
        tests="boot containers"
        if ! has_pyxis; then
            tests=boot
            left_out+=("containers, because Slurm has no pyxis here")
        fi
    fi
    describe_nodes
    for test in ${tests}; do
        case "${test}" in
            boot) test_boot ;;
            containers) if has_pyxis; then test_containers; else check containers error "" "" "not proven: Slurm has no pyxis here" "" ""; fi ;;
            *) check "${test}" error "" "" "not proven: there is no test of that name" "" "" ;;
        esac
    done
    conclude "start times of ${SLURM_JOB_NUM_NODES} nodes$(not_tested "${left_out[@]}")"
}
main "$@"
