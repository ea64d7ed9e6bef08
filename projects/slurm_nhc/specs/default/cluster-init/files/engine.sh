#!/usr/bin/env bash
# Run a configuration: by the LBNL NHC of the project's blob or of the image, otherwise by the built-in runner. Sourced by
# health.sh. Whatever happens to the engine, every line of the configuration ends up with a record.

# shellcheck disable=SC2034 # ENGINE is for results.sh

readonly NHC_UNPACKED="${CF_ROOT}/opt/cycleforge/slurm_nhc/nhc"
readonly NHC_OF_IMAGE="${CF_ROOT}/usr/sbin/nhc"
ENGINE=""

# choose_engine: ENGINE names it; NHC_PROGRAM and NHC_SCRIPTS are empty for the built-in runner.
NHC_PROGRAM="" NHC_SCRIPTS=""
choose_engine() {
    local version=""
    NHC_PROGRAM="" NHC_SCRIPTS="" ENGINE="built in"
    if [[ -s "${NHC_OF_IMAGE}" && -d "${CF_ROOT}/etc/nhc/scripts" ]]; then
        NHC_PROGRAM="${NHC_OF_IMAGE}" NHC_SCRIPTS="${CF_ROOT}/etc/nhc/scripts" ENGINE="nhc of the image"
    elif [[ -s "${NHC_UNPACKED}/nhc" && -d "${NHC_UNPACKED}/scripts" ]]; then
        if [[ -r "${NHC_UNPACKED}.version" ]]; then read -r version <"${NHC_UNPACKED}.version" || true; fi
        NHC_PROGRAM="${NHC_UNPACKED}/nhc" NHC_SCRIPTS="${NHC_UNPACKED}/scripts" ENGINE="nhc ${version}"
    fi
}

# run_engine CONF ROWS SECONDS: the engine's output in ENGINE_OUTPUT. It gets a few seconds more than the checks have, so
# that a check which reaches its own limit can still say so.
#
# Another name than nhc keeps /etc/default/nhc of the image out, which may detach the run; MARK_OFFLINE=0 because draining
# is done by health.sh; NHC_CHECK_ALL=1 because the first fault need not be the worst; no session of its own, so that a
# job's prolog can end everything by the session.
run_engine() {
    local -r conf="$1" rows="$2" budget_s="$3"
    local -a command=(bash "${HERE}/runner.sh" "${conf}")
    local code=0
    if [[ -n "${NHC_PROGRAM}" ]]; then
        command=(bash "${NHC_PROGRAM}" -n cycleforge -c "${conf}" "INCDIR=${NHC_SCRIPTS}" "HELPERDIR=${NHC_SCRIPTS}"
            MARK_OFFLINE=0 DETACHED_MODE=0 NHC_CHECK_ALL=1 NHC_CHECK_FORKED=0 FORCE_SETSID=0 TIMEOUT=0 LOGFILE=- NHC_RM=slurm)
    fi
    ENGINE_OUTPUT="$(CYCLEFORGE_ROWS="${rows}" CYCLEFORGE_BUDGET_S="${budget_s}" CYCLEFORGE_PATH="${PATH}" \
        CYCLEFORGE_SINCE_S="${NOTES[repaired]:-0}" \
        CYCLEFORGE_CHECKS="${HERE}/checks.sh" CYCLEFORGE_NHC="${NHC_PROGRAM}" CYCLEFORGE_NHC_SCRIPTS="${NHC_SCRIPTS}" \
        timeout --kill-after=5 "$((budget_s + 10))" "${command[@]}" 2>&1 9>&-)" || code=$?
    ENGINE_CODE="${code}"
}
ENGINE_OUTPUT="" ENGINE_CODE=0

# configured_checks CONF: the names of its lines, in order, in CONFIGURED.
declare -a CONFIGURED=()
configured_checks() {
    local line
    CONFIGURED=()
    while IFS= read -r line; do
        if [[ "${line}" != "* || cycleforge "* ]]; then continue; fi
        line="${line#"* || cycleforge "}"
        CONFIGURED+=("${line%%[!a-z0-9_]*}")
    done <"$1"
}

# run_checks CONF SECONDS: run and read back; the records are in RECORDS (fields as record() of verdicts.sh wrote them).
run_checks() {
    local -r conf="$1" budget_s="$2"
    local rows row name open="" done_checks=" "
    configured_checks "${conf}"
    choose_engine
    cf_sweep "${RUN_DIR}/rows.${KIND}."*
    rows="${RUN_DIR}/rows.${KIND}.${BASHPID}"
    : >"${rows}"
    run_engine "${conf}" "${rows}" "${budget_s}"
    while IFS= read -r row; do
        case "${row}" in
            "@begin${FIELD}"*) open="${row#*"${FIELD}"}" ;;
            "@end${FIELD}"*)
                done_checks+="${open} "
                open=""
                ;;
            *) add_record "${row}" ;;
        esac
    done <"${rows}"
    rm -f "${rows}"*
    for name in "${CONFIGURED[@]}"; do
        if [[ "${done_checks}" == *" ${name} "* ]]; then continue; fi
        if [[ "${name}" == "${open}" ]]; then
            add_record "not_measured${FIELD}${name}${FIELD}${FIELD}${FIELD}${FIELD}${FIELD}the check did not end in ${budget_s} s"
        else
            add_record "not_measured${FIELD}${name}${FIELD}${FIELD}${FIELD}${FIELD}${FIELD}the engine ended with code ${ENGINE_CODE} before it: ${ENGINE_OUTPUT:0:80}"
        fi
    done
}
