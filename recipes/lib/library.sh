# shellcheck shell=bash
# Stands in the folder of every job and finds what the jobs of a build share: in this folder, where `cycleforge run` copies it,
# or beside it. Which library that is says library.digest. A job keeps the one that it began with.
if [[ ! -d "${JOBS_LIB:-}" ]]; then
    read -r JOBS_LIB <library.digest
    if [[ -d "lib/${JOBS_LIB}" ]]; then JOBS_LIB="${PWD}/lib/${JOBS_LIB}"; else JOBS_LIB="${PWD%/*}/lib/${JOBS_LIB}"; fi
fi
if [[ ! -d "${JOBS_LIB}" ]]; then
    echo "${JOBS_LIB} is missing: copy jobs/lib of the deployment folder beside the folder of the job" >&2
    exit 2
fi
export JOBS_LIB
# shellcheck source=recipes/lib/common.sh
. "${JOBS_LIB}/common.sh"
