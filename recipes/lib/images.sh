# shellcheck shell=bash
# Container images as squash files: imported once by digest, put whole, striped over all Lustre targets, copied to local
# disks.

# shellcheck source=recipes/lib/image-digests.sh
. "${JOBS_LIB}/image-digests.sh"
# shellcheck source=recipes/lib/scratch.sh
. "${JOBS_LIB}/scratch.sh"

# squash_path IMAGE: its squash file, which is named after the digest, so that equal images are there once. A path is
# a squash file of your own. Ends the script where nothing has been imported: call it in an assignment of its own.
squash_path() {
    local digest
    if [[ "$1" == /* ]]; then
        echo "$1"
        return
    fi
    digest="$(stated_digest "$1")" || exit
    if [[ -z "${digest}" ]]; then digest="$(recorded_digest "$1")" || exit; fi
    [[ -n "${digest}" ]] || die "${1} has not been imported to ${STAGE_PATH}; run the set-up step first"
    echo "${STAGE_PATH:?}/images/${digest/:/-}.sqsh"
}

# striped_folder FOLDER: creates it; on Lustre its files are spread over all targets, because every node reads them at once.
striped_folder() {
    [[ -d "$1" ]] && return 0
    mkdir -p "$1"
    if command -v lfs >/dev/null && lfs getstripe -d "$1" >/dev/null 2>&1; then
        lfs setstripe -S 1M -c -1 "$1" || log "could not stripe ${1}; every node will read from few targets"
    fi
}

# import_image IMAGE: asks the registry, refuses another image than the recorded one, and imports by digest what is not
# there yet; a broken import leaves no file of that name.
import_image() {
    local -r image="$1"
    local file partial digest
    if [[ "${image}" == /* ]]; then
        [[ -s "${image}" ]] || die "CONTAINER ${image} is not there"
        return
    fi
    require_commands enroot sha256sum
    check_credentials
    # `set -e` is off where the status of the caller is tested.
    digest="$(digest_to_import "${image}")" || exit
    striped_folder "${STAGE_PATH:?}/images"
    file="${STAGE_PATH}/images/${digest/:/-}.sqsh"
    if [[ -s "${file}" ]]; then
        log "image is there: ${image}, ${file}"
    else
        partial="${file}.partial-${SLURM_JOB_ID:-$$}"
        rm -f "${partial}"
        check_scratch "${image}"
        if ! with_credentials enroot import --output "${partial}" "${image%@sha256:*}@${digest}"; then
            rm -f "${partial}"
            die "enroot could not import ${image} as ${digest}; a registry may have removed it since the tag was moved: CONTAINER_DIGEST states another one"
        fi
        (cd "$(dirname "${file}")" && sha256sum "$(basename "${partial}")") | awk -v name="$(basename "${file}")" '{ print $1 "  " name }' >"${file}.sha256"
        mv "${partial}" "${file}"
        log "imported ${image}, ${digest}: $(cat "${file}.sha256")"
    fi
    # A stated digest is not what the tag stands for.
    if [[ -z "$(stated_digest "${image}")" ]]; then record_digest "${image}" "${digest}"; fi
}

# need_image IMAGE: imports what is not there, and once recorded always the same; a run that goes on keeps its image.
need_image() {
    local stated recorded file
    stated="$(stated_digest "$1")" || exit
    recorded="$(recorded_digest "$1")" || exit
    if [[ "$1" == /* || -n "${stated}${recorded}" ]]; then
        file="$(squash_path "$1")" || exit
        if [[ -s "${file}" ]]; then return; fi
    fi
    CONTAINER_DIGEST="${stated:-${recorded}}" import_image "$1"
}

# record_image IMAGE FILE: which image the run has had, for its record.
record_image() {
    local words="$1" digest
    if [[ "$1" == /* ]]; then
        if [[ -s "$1.sha256" ]]; then words+=" sha256:$(cut -d ' ' -f 1 "$1.sha256")"; fi
    else
        digest="$(basename "$2" .sqsh)"
        words="${1%@sha256:*}@${digest/-/:}"
    fi
    version container "${words}"
}

# stage_image IMAGE: prints the path that nodes start from: the local disk where there is one, the shared file otherwise.
stage_image() {
    local file local_file
    file="$(squash_path "$1")" || exit
    [[ -s "${file}" ]] || die "${file} is missing; run the set-up step first"
    record_image "$1" "${file}"
    if [[ -z "${NVME_MOUNT:-}" ]]; then
        echo "${file}"
        return 0
    fi
    local_file="${NVME_MOUNT}/$(basename "${file}")"
    # One task per node: a copy in the batch script would reach the first node only.
    # The nodes of the launch, where long-runs.sh has chosen them.
    # shellcheck disable=SC2016,SC2154  # expanded on each node
    srun "${srun_places[@]}" --ntasks="${wanted_nodes:-${SLURM_JOB_NUM_NODES}}" --ntasks-per-node=1 --cpus-per-task=1 bash -c '
        set -euo pipefail
        mountpoint -q "$1" || { echo "$1 is not a mount point on $(hostname -s)" >&2; exit 1; }
        if [[ "$(stat -c %s "$3" 2>/dev/null)" != "$(stat -c %s "$2")" ]]; then cp "$2" "$3.partial" && mv "$3.partial" "$3"; fi
    ' stage "${NVME_MOUNT}" "${file}" "${local_file}" >&2 || die "could not stage ${file} on every node"
    echo "${local_file}"
}

# kept_in_container NAME...: for --container-env: these and the variables of nccl.env, which an image must not replace.
# No name helps against pyxis itself: it sets RANK and LOCAL_RANK in every container with PYTORCH_VERSION.
# shellcheck disable=SC2154  # nccl_names is from load_nccl_env of common.sh
kept_in_container() {
    local IFS=,
    local -a names=("${nccl_names[@]}" "$@")
    echo "${names[*]}"
}

# clone_at URL COMMIT FOLDER: a checkout of exactly that commit.
clone_at() {
    local -r url="$1" commit="$2" folder="$3"
    require_commands git
    if [[ ! -d "${folder}/.git" ]]; then
        local -r partial="${folder}.partial-${SLURM_JOB_ID:-$$}"
        rm -rf "${partial}"
        git clone --quiet "${url}" "${partial}"
        # Another job may have been first.
        mv -T "${partial}" "${folder}" 2>/dev/null || rm -rf "${partial}"
    fi
    if [[ "$(git -C "${folder}" rev-parse HEAD)" != "${commit}"* ]]; then git -C "${folder}" checkout --quiet --detach "${commit}"; fi
    log "${folder} is at $(git -C "${folder}" rev-parse HEAD)"
}

# download URL FILE: whole or not at all; server errors are tried again, other errors end it. A rate limit is waited for and
# counts as no failure: the server says how long (Hugging Face: windows of 5 minutes).
download() {
    local -r url="$1" file="$2" partial="$2.partial-${SLURM_JOB_ID:-$$}"
    if [[ -s "${file}" ]]; then return 0; fi
    local -a header=()
    local code waits=0 status
    mkdir -p "$(dirname "${file}")"
    while :; do
        if [[ -n "${HF_TOKEN:-}" && "${url}" == https://huggingface.co/* ]]; then header=(--config <(printf 'header = "Authorization: Bearer %s"\n' "${HF_TOKEN}")); fi
        status=0
        # Without --fail the body of an error would be the file; 429 is not left to curl, which gives up sooner.
        code="$(curl --silent --show-error --location --proto '=https' --connect-timeout 30 --speed-limit 1024 --speed-time 120 \
            "${header[@]}" --dump-header "${partial}.headers" --write-out '%{http_code}' --output "${partial}" "${url}")" || status=$?
        if ((status == 0)) && [[ "${code}" == 2* ]]; then
            rm -f "${partial}.headers"
            mv "${partial}" "${file}"
            return
        fi
        rm -f "${partial}"
        waits=$((waits + 1))
        case "${code}" in
            429) ((waits <= ${RATE_LIMIT_WAITS:-100})) || break ;;
            000 | 5?? | 2?? | 408) ((waits <= ${DOWNLOAD_RETRIES:-8})) || break ;;
            *) break ;;
        esac
        sleep "$(wait_of "${code}" "${partial}.headers")"
    done
    log "could not download ${url}: HTTP ${code}, curl ${status}"
    rm -f "${partial}.headers"
    return 1
}

# wait_of CODE HEADERS: seconds until the next try: Retry-After, or `t=` of RateLimit, at most 5 minutes.
wait_of() {
    local seconds=""
    if [[ "$1" == 429 ]]; then
        seconds="$(tr -d '\r' <"$2" 2>/dev/null | sed -nE 's/^[Rr]etry-[Aa]fter: *([0-9]+)$/\1/p; s/^[Rr]ate[Ll]imit:.*[; ]t=([0-9]+).*/\1/p' | tail -n 1)"
        seconds="$(count_or 60 "${seconds}")"
        seconds=$((seconds > 300 ? 300 : seconds + 1))
    fi
    echo "${seconds:-5}"
}
