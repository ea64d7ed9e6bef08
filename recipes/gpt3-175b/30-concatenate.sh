#!/usr/bin/env bash
# Extracts the files and packs them into chunks, without the sources that are not wanted. Safe to run again:
# a chunk is written under a temporary name and counts as finished only with its line count beside it, and while it would
# be made of the same files: a trial takes the first ones of the corpus.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/data.sh
. "${JOBS_LIB}/data.sh"

# build_chunk NUMBER: the files of one chunk, in sorted order.
build_chunk() {
    local output made_of
    printf -v output '%s/train_chunk_%03d.jsonl' "${chunks}" "$1"
    local -a files
    mapfile -t files < <(corpus_files | cut -d ' ' -f 2 | sort | tail -n +$(($1 * DATASET_FILES_PER_CHUNK + 1)) | sed -n "1,${DATASET_FILES_PER_CHUNK}p" | sed "s|^|${raw}/|")
    made_of="$(printf '%s\n' "${EXCLUDED_SETS}" "${files[@]}" | cksum)"
    if [[ -s "${output}" && -s "${output}.lines" && "$(cat "${output}.made_of" 2>/dev/null)" == "${made_of}" ]]; then return 0; fi
    rm -f "${output}.lines"
    unpacked "${files[@]}" |
        awk -v sets="${EXCLUDED_SETS}" '
            BEGIN { count = split(sets, names, /[ ,]+/) }
            /^[ \t\r]*$/ { next } # no document; the tool that makes tokens would end at it
            {
                for (i = 1; i <= count; i++)
                    if (names[i] != "" && $0 ~ "\"redpajama_set_name\": *\"" names[i] "\"") next
                print
            }' >"${output}.partial"
    wc -l <"${output}.partial" >"${output}.lines.partial"
    printf '%s\n' "${made_of}" >"${output}.made_of"
    mv "${output}.partial" "${output}"
    mv "${output}.lines.partial" "${output}.lines"
    log "${output}: $(cat "${output}.lines") documents of ${#files[@]} files"
}

main() {
    load_settings
    require STAGE_PATH DATA DATASET_FILES DATASET_FILES_PER_CHUNK WORKERS_PER_NODE
    corpus
    if [[ "${DATA}" == mock ]]; then
        log "DATA is mock: nothing to extract"
        return
    fi
    require_commands zstd gzip
    raw="$(data_folder)/raw" chunks="$(data_folder)/chunks"
    local files expected
    files="$(corpus_files | wc -l)"
    expected=$(((files + DATASET_FILES_PER_CHUNK - 1) / DATASET_FILES_PER_CHUNK))
    if [[ "${1:-}" == worker ]]; then
        local number
        for ((number = SLURM_PROCID; number < expected; number += SLURM_NTASKS)); do build_chunk "${number}"; done
        return
    fi
    local have
    have="$(corpus_files | while read -r _ name; do if [[ -s "${raw}/${name}" ]]; then echo; fi; done | wc -l)"
    ((have == files && files > 0)) || die "${have} of ${files} files in ${raw}; finish the download first"
    mkdir -p "${chunks}"
    with_progress "${chunks}" 'train_chunk_*.jsonl.lines' "${expected}" \
        srun --ntasks=$((WORKERS_PER_NODE * SLURM_JOB_NUM_NODES)) --ntasks-per-node="${WORKERS_PER_NODE}" \
        --cpus-per-task=$((SLURM_CPUS_ON_NODE / WORKERS_PER_NODE)) --kill-on-bad-exit=0 ./30-concatenate.sh worker || log "a worker failed"
    have="$(find "${chunks}" -name 'train_chunk_*.jsonl.lines' | wc -l)"
    all_there "${have}" "${expected}" chunks "${chunks}"
    log "${have} chunks in ${chunks}"
}
main "$@"
