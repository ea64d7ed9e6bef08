#!/usr/bin/env bash
# One client of one file system, run by srun: `client.sh check|write|read|metadata FOLDER LABEL MOUNT`. Each node has a folder
# of its own below FOLDER and reads that of its neighbour, so that no client reads what it has in its own memory. The figure
# goes into LABEL.<node>.rate, whole or not at all.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/fio.sh
. "${JOBS_LIB}/fio.sh"

# files_per_second FOLDER COUNT: empty files that one process makes, finds and removes again.
files_per_second() {
    local -r folder="$1" count="$2"
    local -r began="${EPOCHREALTIME}"
    local number
    mkdir "${folder}"
    for ((number = 0; number < count; number++)); do : >"${folder}/${number}" || return 1; done
    for ((number = 0; number < count; number++)); do [[ -e "${folder}/${number}" ]] || return 1; done
    rm -r "${folder}"
    awk -v count="${count}" -v s0="${began}" -v s1="${EPOCHREALTIME}" 'BEGIN { if (s1 <= s0) exit 1; printf "%.1f\n", count / (s1 - s0) }'
}

main() {
    local -r what="$1" folder="$2" label="$3" mount="$4"
    load_settings
    require results SLURMD_NODENAME
    local -r log="${results}/${label}.${SLURMD_NODENAME}.log" out="${results}/${label}.${SLURMD_NODENAME}.rate"
    # The number of a client within the step, and of its neighbour.
    local -r own="${SLURM_PROCID:-0}" neighbour=$(((${SLURM_PROCID:-0} + 1) % ${SLURM_NTASKS:-1}))
    local rate
    case "${what}" in
        check)
            # The file system itself, not the empty folder below it.
            rate="$(awk -v path="${mount}" '$2 == path { found = 1 } END { print found + 0 }' "${CF_ROOT:-}/proc/mounts")"
            [[ "${rate}" == 1 ]]
            ;;
        write)
            mkdir -p "${folder}/${own}"
            rate="$(disk_rate "${folder}/${own}" write "${CLIENT_JOBS}" "${CLIENT_MIB}" "${log}")"
            ;;
        read) rate="$(disk_rate "${folder}/${neighbour}" read "${CLIENT_JOBS}" "${CLIENT_MIB}" "${log}")" ;;
        metadata) rate="$(files_per_second "${folder}/metadata.${own}" "${METADATA_FILES}" 2>"${log}")" ;;
        *) die "no such test: ${what}" ;;
    esac
    printf '%s\n' "${rate}" >"${out}.partial"
    mv "${out}.partial" "${out}"
}
main "$@"
