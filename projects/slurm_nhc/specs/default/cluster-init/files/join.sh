#!/usr/bin/env bash
# CycleForge (slurm_nhc): before slurmd starts, whether the hooks before a job can run at all (slurmd's ExecStartPre).
#
# Slurm drains a node whose prolog fails and sends the job to the next one, so hooks that are broken for every node would
# drain one after the other. A node that does not join takes no job and drains nothing; systemd tries again until the hooks
# are there. A sick node is not meant: it joins, its prolog refuses jobs, and Slurm shows the reason.
set -euo pipefail
readonly ROOT="${CYCLEFORGE_ROOT:-}" LIMIT_S=20
readonly FOLDER=/etc/slurm/prolog.d

# fault: what Slurm would stumble over, in one line; nothing when it would not. Slurm runs every file of the folder, and
# takes an empty folder for a hook that failed.
fault() {
    local path hook first said found=false
    for path in "${ROOT}${FOLDER}"/*; do
        if [[ ! -e "${path}" && ! -L "${path}" ]]; then continue; fi
        found=true hook="${FOLDER}/${path##*/}" first=""
        if [[ ! -f "${path}" || ! -r "${path}" || ! -x "${path}" ]]; then
            echo "${hook} is not a file that can be run"
            return
        fi
        IFS= read -r first 2>/dev/null <"${path}" || true
        if [[ "${first}" =~ ^'#!'.*[/[:space:]](ba)?sh([[:space:]]|$) ]] && ! said="$(bash -n "${path}" 2>&1)"; then
            echo "${hook} is no valid script: ${said%%$'\n'*}"
            return
        fi
    done
    if [[ "${found}" == false ]]; then echo "${FOLDER} has no hooks; is its share mounted?"; fi
}

main() {
    local found code=0
    # The slurm projects before 4.0 have no such folder.
    if [[ ! -L "${ROOT}${FOLDER}" && ! -d "${ROOT}${FOLDER}" ]]; then return; fi
    # A share that does not answer hangs whoever looks.
    found="$(timeout --kill-after=1 "${LIMIT_S}" bash "$0" fault)" || code=$?
    if ((code != 0)); then found="${FOLDER} does not answer within ${LIMIT_S} s"; fi
    if [[ -z "${found}" ]]; then return; fi
    printf '%s\n' "slurmd is not started, because every job's prolog would fail here: ${found}" \
        "  do:  correct it on the scheduler; this node tries again by itself" >&2
    return 1
}

if [[ "${1:-}" == fault ]]; then fault; else main; fi
