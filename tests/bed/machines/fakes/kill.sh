# shellcheck shell=bash
# Sourced by every Bash through BASH_ENV. Ends the whole process group at the KILL_AT-th command of step KILL_STEP; with
# KILL_COUNT it writes down how many commands each step has.
set -o functrace
CF_KILL_SEEN=0
CF_KILL_LAST=""
if [[ -n "${KILL_COUNT:-}" ]]; then exec {CF_KILL_COUNT}>>"${KILL_COUNT}"; fi
cf_kill_here() {
    if [[ -z "${CF_STEP:-}" || "${BASHPID}" != "$$" ]]; then return 0; fi
    if [[ "${CF_STEP}" != "${CF_KILL_LAST}" ]]; then CF_KILL_SEEN=0 CF_KILL_LAST="${CF_STEP}"; fi
    CF_KILL_SEEN=$((CF_KILL_SEEN + 1))
    if [[ -n "${KILL_COUNT:-}" ]]; then printf '%s\t%s\n' "${CF_KILL_SEEN}" "${CF_STEP}" >&"${CF_KILL_COUNT}"; fi
    if [[ "${CF_STEP}" == "${KILL_STEP:-}" && "${CF_KILL_SEEN}" == "${KILL_AT:-}" ]]; then kill -KILL 0; fi
    return 0
}
# cf_kill_there: where commands are not counted, none but those of the one step matter, and a function for each of the
# others would take as long as the command.
cf_kill_there() {
    if [[ "${CF_STEP:-}" == "${KILL_STEP:-}" ]]; then cf_kill_here; else CF_KILL_LAST=""; fi
}
if [[ -n "${KILL_COUNT:-}" ]]; then
    trap cf_kill_here DEBUG
else
    trap '[[ "${CF_STEP:-}" != "${KILL_STEP:-}" && -z "${CF_KILL_LAST}" ]] || cf_kill_there' DEBUG
fi
