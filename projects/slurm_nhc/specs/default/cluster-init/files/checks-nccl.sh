#!/usr/bin/env bash
# NCCL inside one node: all GPUs over NVLink, and the same over InfiniBand alone. Sourced by checks.sh; never beside a job.
#
# A floor of NCCL holds for the environment it was measured in: where the ranks run, how they are bound, and which
# variables they have. So the line nccl_environment stands before the tests, and they run in exactly that environment, or
# under another name and without a floor.

readonly ALL_REDUCE=/opt/nccl-tests/build/all_reduce_perf
declare -a NCCL_VARIABLES=()
declare -A NCCL_HOW=()

# NAME=VALUE...: the variables of the ranks. In small letters what else belongs to the environment: name=, place=host or
# container, bind_to=, hcoll=off, module= of the host's MPI, library_path= of the plug-in.
check_nccl_environment() {
    local key
    NCCL_VARIABLES=() NCCL_HOW=()
    # shellcheck disable=SC2153 # cycleforge() has it
    for key in "${!GIVEN[@]}"; do
        if [[ "${key}" == [a-z]* ]]; then NCCL_HOW["${key}"]="${GIVEN[${key}]}"; else NCCL_VARIABLES+=("${key}=${GIVEN[${key}]}"); fi
    done
}

# nccl_lacks: what the environment needs on the host and the image does not have, in REPLY; 1 when it has everything.
nccl_lacks() {
    local pair
    if [[ ! -x "${CF_ROOT}${ALL_REDUCE}" ]]; then
        REPLY="${ALL_REDUCE}"
        return 0
    fi
    if [[ -n "${NCCL_HOW[library_path]:-}" && ! -d "${CF_ROOT}${NCCL_HOW[library_path]}" ]]; then
        REPLY="${NCCL_HOW[library_path]}"
        return 0
    fi
    for pair in "${NCCL_VARIABLES[@]}"; do
        if [[ "${pair}" == NCCL_*_FILE=/* && ! -r "${CF_ROOT}${pair#*=}" ]]; then
            REPLY="${pair#*=}"
            return 0
        fi
    done
    return 1
}

# run_all_reduce VARIABLE...: ranks=N message=SIZE message_end=SIZE: one process per GPU, as the floors were measured.
# mpirun hands the variables to the ranks itself.
run_all_reduce() {
    local -r ranks="${GIVEN[ranks]}" from="${GIVEN[message]}" to="${GIVEN[message_end]:-${GIVEN[message]}}"
    local pair
    local -a launch=(mpirun -np "${ranks}" --map-by "ppr:${ranks}:node" --bind-to "${NCCL_HOW[bind_to]:-numa}" --allow-run-as-root)
    local -a given=() test=(-b "${from}" -e "${to}" -f 2 -g 1 -c 1)
    if [[ "${NCCL_HOW[hcoll]:-off}" == off ]]; then launch+=(-mca coll_hcoll_enable 0); fi
    for pair in "${NCCL_VARIABLES[@]}" "$@"; do
        # What is not there would only make NCCL complain; under the name of the floor nothing is missing.
        if [[ "${pair}" == NCCL_*_FILE=/* && -z "${CONTAINER}" && ! -r "${CF_ROOT}${pair#*=}" ]]; then continue; fi
        given+=(-x "${pair}")
    done
    if [[ -n "${CONTAINER}" ]]; then
        run_tool 300 docker exec "${CONTAINER}" "${launch[@]}" "${given[@]}" "${AZNHC_ALL_REDUCE}" "${test[@]}"
        return
    fi
    # Nothing of the caller's environment that would change the test reaches it.
    # shellcheck disable=SC2016 # the inner shell expands it
    run_tool 300 bash -c '
        root="$1" module="$2" library="$3"
        shift 3
        for name in $(compgen -e); do
            case "${name}" in NCCL_* | UCX_* | OMPI_* | SHARP_*) unset "${name}" ;; esac
        done
        if [[ -n "${module}" && -r "${root}/etc/profile.d/modules.sh" ]]; then . "${root}/etc/profile.d/modules.sh"; module load "${module}"; fi
        if [[ -n "${library}" ]]; then export LD_LIBRARY_PATH="${library}${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}"; fi
        launch=() rest=()
        while [[ "$1" != -- ]]; do launch+=("$1"); shift; done
        shift
        exec "${launch[@]}" -x LD_LIBRARY_PATH "$@"' \
        all_reduce "${CF_ROOT}" "${NCCL_HOW[module]:-}" "${NCCL_HOW[library_path]:-}" \
        "${launch[@]}" "${given[@]}" -- "${CF_ROOT}${ALL_REDUCE}" "${test[@]}"
}

# reading: average bus bandwidth (GB/s) and number of wrong values of OUTPUT, in BUS and WRONG.
BUS="" WRONG=""
reading() {
    local line
    BUS="" WRONG=""
    while IFS= read -r line; do
        if [[ "${line}" =~ ^#[[:space:]]*Avg\ bus\ bandwidth[[:space:]]*:[[:space:]]*([0-9.]+) ]]; then BUS="${BASH_REMATCH[1]}"; fi
        if [[ "${line}" =~ ^#[[:space:]]*Out\ of\ bounds\ values[[:space:]]*:[[:space:]]*([0-9]+) ]]; then WRONG="${BASH_REMATCH[1]}"; fi
    done <<<"${OUTPUT}"
}

# best_all_reduce CHECK FLOOR VARIABLE...: attempts=N. The best bandwidth in BEST, after how many tries in TRIES. Any try may
# reach the floor; a tool that fails twice has failed, one failure is tried once more. At most a third of the run's time goes
# into it. 1: everything is said already.
BEST="" TRIES=0
best_all_reduce() {
    local -r check="$1" floor="$2" attempts="${GIVEN[attempts]:-1}" started="${SECONDS}"
    local run code failures=0 words="" cure=""
    shift 2
    BEST="" TRIES=0
    # One more than the tries, for a failure.
    for ((run = 0; run <= attempts; run++)); do
        code=0
        run_all_reduce "$@" || code=$?
        reading
        if [[ -n "${WRONG}" && "${WRONG}" != 0 ]]; then
            # Wrong sums are a hardware fault however fast they come, and no test that passes later takes it back.
            record service "${check}_wrong_values" "${WRONG}" le 0 values ""
            return 1
        fi
        outcome all_reduce_perf "${code}" 'Avg bus bandwidth[[:space:]]*:[[:space:]]*[0-9]'
        case "${OUTCOME}" in
            not_measured) break ;;
            failed)
                words="${REPLY}" cure="${OUTCOME_CURE}"
                failures=$((failures + 1))
                if ((failures == 2)); then break; fi
                ;;
            ran)
                TRIES=$((TRIES + 1))
                if [[ -z "${BEST}" ]] || cf_compare "${BUS}" gt "${BEST}"; then BEST="${BUS}"; fi
                if [[ -z "${floor}" ]] || cf_compare "${BUS}" ge "${floor}" || ((TRIES >= attempts)); then break; fi
                ;;
        esac
        if ! seconds_left 20 || ((TRIES > 0 && (SECONDS - started) * 3 > CYCLEFORGE_BUDGET_S)); then break; fi
    done
    if [[ -n "${BEST}" ]] && ((failures < 2)); then return 0; fi
    if [[ -n "${words}" ]]; then OUTCOME=failed OUTCOME_CURE="${cure}" REPLY="${words}"; fi
    record_outcome "${check}"
    return 1
}

# measure_all_reduce CHECK VARIABLE...: ranks=N message=SIZE message_end=SIZE floor_gb_per_s=N attempts=N. Where the
# environment of the floor cannot be had, CHECK is not measured, and CHECK_host is measured without a floor.
measure_all_reduce() {
    local check="$1" floor="${GIVEN[floor_gb_per_s]:-}" range detail
    shift
    if [[ "${NCCL_HOW[place]:-host}" == container ]]; then
        if ! start_container; then
            not_measured "${check}" "its environment is the container of Azure's health checks: ${REPLY}; see ${check}_host"
            check+=_host floor=""
        fi
    fi
    if [[ -z "${CONTAINER}" ]] && nccl_lacks; then
        if [[ "${check}" != *_host ]]; then
            not_measured "${check}" "${REPLY} is not in this image"
            check+=_host floor=""
        elif [[ "${REPLY}" == "${ALL_REDUCE}" ]]; then
            not_measured "${check}" "${REPLY} is not in this image"
        fi
        if [[ "${REPLY}" == "${ALL_REDUCE}" ]]; then return; fi
    fi
    if best_all_reduce "${check}" "${floor}" "$@"; then
        range="${GIVEN[message]}${GIVEN[message_end]:+ to ${GIVEN[message_end]}}"
        detail="${NCCL_HOW[name]:-}${NCCL_HOW[name]:+, }message ${range}, attempt ${TRIES} of ${GIVEN[attempts]:-1}"
        judge "${check}" "${BEST}" ge "${floor}" GB/s fail "${detail}"
    fi
    stop_container
}

check_nccl_all_reduce() { measure_all_reduce nccl_all_reduce; }

# Shared memory and NVLink switched off: what is left is InfiniBand. They come last, so nothing overrides them.
check_nccl_loopback() { measure_all_reduce nccl_loopback NCCL_SHM_DISABLE=1 NCCL_P2P_DISABLE=1; }
