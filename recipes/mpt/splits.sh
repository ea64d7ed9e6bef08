# shellcheck shell=bash
# What DATA stands for, and where the converted splits are. Sourced after common.sh.
#   c4        allenai/c4, splits train and val: ODC-BY 1.0, and the terms of use of Common Crawl
#   c4-small  its splits train_small and val_small (LLM Foundry has no mock data): enough for a first test
#   files     your own *.jsonl with the key `text`: DATA_FILES to train, DATA_FILES_EVAL to evaluate

# splits: sets TRAIN_SPLIT, EVAL_SPLIT and $data.
# shellcheck disable=SC2034  # for the steps
splits() {
    case "${DATA:-}" in
        c4) : "${TRAIN_SPLIT:=train}" "${EVAL_SPLIT:=val}" ;;
        c4-small) : "${TRAIN_SPLIT:=train_small}" "${EVAL_SPLIT:=val_small}" ;;
        files)
            [[ -n "${DATA_FILES}${DATA_REMOTE}" ]] || die "DATA is files, so set DATA_FILES and DATA_FILES_EVAL to folders with your *.jsonl"
            : "${TRAIN_SPLIT:=train}" "${EVAL_SPLIT:=val}"
            ;;
        *) die "DATA is '${DATA:-}'; c4, c4-small and files can be selected. LLM Foundry has no mock data" ;;
    esac
    local_folder
    data="${DATA_REMOTE:-${data}}"
}

# local_folder: in $data the folder of the converted splits below STAGE_PATH.
local_folder() {
    local name=c4
    # Two folders of one name are two corpora.
    if [[ "${DATA}" == files && -n "${DATA_FILES}" ]]; then name="files-$(basename "${DATA_FILES}")-$(cksum <<<"${DATA_FILES%/}" | cut -d ' ' -f 1)"; fi
    # Tokens of one length: jobs with another one have their own folder.
    data="${STAGE_PATH:?}/data/mds-${name}-${SEQUENCE:?}"
}

# on_a_mount PATH: ends the job where a container is not mounted: what is written there would be on the disk of one node.
on_a_mount() {
    local folder="$1"
    while [[ "${folder}" == /?* ]]; do
        if mountpoint -q "${folder}"; then return 0; fi
        folder="$(dirname "${folder}")"
    done
    die "$1 is on no mounted file system of $(hostname -s)"
}
