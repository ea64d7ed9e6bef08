# shellcheck shell=bash
# The corpora of training jobs: what DATA stands for, where its files come from, and how they are fetched. Sourced after
# common.sh and images.sh.
#   slimpajama  cerebras/SlimPajama-627B: the licences of its parts (Common Crawl, C4, GitHub, books, arXiv, Wikipedia,
#               StackExchange); who downloads it accepts them
#   c4          allenai/c4, `en`: ODC-BY 1.0, and the terms of use of Common Crawl
#   files       your own *.jsonl, *.jsonl.gz or *.jsonl.zst in DATA_FILES
#   mock        nothing: the framework makes up its tokens

# data_folder: where the stages of the corpus are, for all jobs of the file system.
data_folder() {
    local name="${DATA:?}"
    # Two folders of one name are two corpora.
    if [[ "${DATA}" == files ]]; then name+="-$(basename "${DATA_FILES:?}")-$(cksum <<<"${DATA_FILES%/}" | cut -d ' ' -f 1)"; fi
    echo "${STAGE_PATH:?}/data/${name}"
}

# corpus: the corpus in $corpus_pattern (its files), $corpus_source (one or several places, blank separated: https:// or a
# folder), $corpus_licence.
# shellcheck disable=SC2034  # for the steps
corpus() {
    case "${DATA:-}" in
        slimpajama)
            corpus_pattern='*.jsonl.zst' corpus_source="${DATASET_URL:-https://huggingface.co/datasets/cerebras/SlimPajama-627B/resolve/main/train}"
            corpus_licence="the licences of its parts, see https://huggingface.co/datasets/cerebras/SlimPajama-627B"
            ;;
        c4)
            corpus_pattern='*.json.gz' corpus_source="${DATASET_URL:-https://huggingface.co/datasets/allenai/c4/resolve/main/en}"
            corpus_licence="ODC-BY 1.0 and the terms of use of Common Crawl, see https://huggingface.co/datasets/allenai/c4"
            ;;
        files)
            require DATA_FILES
            [[ -d "${DATA_FILES}" ]] || die "DATA_FILES ${DATA_FILES} is no folder"
            corpus_pattern='*.jsonl*' corpus_source="${DATA_FILES}" corpus_licence="your own files"
            ;;
        mock) corpus_pattern="" corpus_source="" corpus_licence="none: the tokens are made up" ;;
        *) die "DATA is '${DATA:-}'; slimpajama, c4, files and mock can be selected" ;;
    esac
}

# corpus_files: one file a line: its name at the source, and its name here, which sorts them.
corpus_files() {
    local -a last
    local chunk shard file
    case "${DATA}" in
        slimpajama)
            read -r -a last <<<"${DATASET_LAST_INDEX}"
            for chunk in "${!last[@]}"; do
                for ((shard = 0; shard <= last[chunk]; shard++)); do
                    echo "chunk$((chunk + 1))/example_train_${shard}.jsonl.zst example_train_chunk$((chunk + 1))_shard${shard}.jsonl.zst"
                done
            done
            ;;
        c4) for ((shard = 0; shard < 1024; shard++)); do printf 'c4-train.%05d-of-01024.json.gz c4-train.%05d-of-01024.json.gz\n' "${shard}" "${shard}"; done ;;
        files)
            while read -r file; do echo "${file} ${file}"; done < <(cd "${DATA_FILES}" && find . -maxdepth 1 -type f \( -name '*.jsonl' -o -name '*.jsonl.gz' -o -name '*.jsonl.zst' \) -printf '%f\n' | sort)
            ;;
    esac | awk -v most="${DATASET_FILES:-0}" -v own="$([[ "${DATA}" != files ]] || echo 1)" 'own || NR <= most'
}

# find_source: the first of the places that has the first file, in $source; it is fetched now, before nodes wait for it.
# shellcheck disable=SC2034,SC2154  # corpus sets what is read, the steps read what is set
find_source() {
    local remote local_name place
    read -r remote local_name < <(corpus_files | awk 'NR == 1') || die "no file to read: DATA is ${DATA}"
    for place in ${corpus_source}; do
        if fetch_file "${place}/${remote}" "${raw}/${local_name}"; then
            source="${place}"
            log "corpus ${DATA} from ${source} (${corpus_licence})"
            return
        fi
        log "${place} does not have ${remote}"
    done
    die "no source of ${DATA} has ${remote}: set DATASET_URL to a mirror or to a folder with a copy, or DATA to another corpus. A data set may ask for HF_TOKEN, and may be gone"
}

# fetch_file SOURCE FILE: whole or not at all, from the web or from a folder.
fetch_file() {
    if [[ -s "$2" ]]; then return 0; fi
    case "$1" in
        https://*) download "$1" "$2" ;;
        *) [[ -s "$1" ]] && cp "$1" "$2.partial-${SLURM_JOB_ID:-$$}" && mv "$2.partial-${SLURM_JOB_ID:-$$}" "$2" ;;
    esac
}

# report_progress FOLDER PATTERN TOTAL: one line every PROGRESS_S seconds until it is killed: how many files, and when the
# rest will be there at this speed.
report_progress() {
    local -r folder="$1" pattern="$2" total="$3"
    local first have now start pause
    # A wait without a process: it would outlive this one and keep the output of the job open.
    exec {pause}<> <(:)
    first="$(count_files "${folder}" "${pattern}")"
    printf -v start '%(%s)T' -1
    while ! read -r -t "${PROGRESS_S:-300}" -u "${pause}"; do
        have="$(count_files "${folder}" "${pattern}")"
        printf -v now '%(%s)T' -1
        if ((have > first)); then
            log "${have} of ${total} files in ${folder}, the rest in about $(((total - have) * (now - start) / (have - first) / 60)) minutes"
        else
            log "${have} of ${total} files in ${folder}, no new one for $(((now - start) / 60)) minutes"
        fi
    done
}

# with_progress FOLDER PATTERN TOTAL COMMAND...: the command, and reports while it runs.
with_progress() {
    report_progress "$1" "$2" "$3" &
    local -r reporter=$!
    local status=0
    "${@:4}" || status=$?
    kill "${reporter}" 2>/dev/null || true
    wait "${reporter}" 2>/dev/null || true
    return "${status}"
}

count_files() {
    find "$1" -maxdepth 1 -name "$2" | wc -l
}

# all_there HAVE EXPECTED WHAT FOLDER: as many as the corpus makes. A worker that failed has left too few, an earlier corpus
# of more files too many.
all_there() {
    (($1 <= $2)) || die "${1} ${3} in ${4}, and this corpus makes ${2}: an earlier one had more files; remove what it has left there, or the folder, and submit this step again"
    (($1 == $2)) || die "${1} of ${2} ${3} in ${4}; submit this step again"
}

# unpacked FILE...: the documents of files as they came, one a line: the last line of a file may have no end.
unpacked() {
    local file
    for file in "$@"; do
        case "${file}" in
            *.zst) zstd --decompress --stdout --quiet "${file}" ;;
            *.gz) gzip --decompress --stdout "${file}" ;;
            *) cat "${file}" ;;
        esac | sed -e "\$a\\" || return
    done
}
