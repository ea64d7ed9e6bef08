#!/usr/bin/env bash
# Blobs on the node: files of other people that a project uses, fetched from the locker and accepted only with the
# pinned sha256. Sourced after cycleforge.sh by the scripts that need it; blobs.tsv (file, version, sha256) lies beside.
# shellcheck disable=SC2034 # CF_CHANGED is a result for the script that sources this

readonly CF_BLOB_TABLE="${BASH_SOURCE[0]%/*}/blobs.tsv"
readonly CF_BLOB_TRIES=3
# The agent gives no limit of its own. CYCLEFORGE_BLOB_LIMIT_S is for the tests.
readonly CF_BLOB_LIMIT_S="${CYCLEFORGE_BLOB_LIMIT_S:-120}"

# cf_blob_digest FILE: the pinned sha256 of a blob in REPLY.
cf_blob_digest() {
    local name version digest
    REPLY=""
    if [[ -r "${CF_BLOB_TABLE}" ]]; then
        while IFS=$'\t' read -r name version digest; do
            if [[ "${name}" == "$1" && "${digest}" =~ ^[0-9a-f]{64}$ ]]; then REPLY="${digest}"; fi
        done <"${CF_BLOB_TABLE}"
    fi
    if [[ -z "${REPLY}" ]]; then
        cf_die "${CF_BLOB_TABLE} has no digest of '$1'" "the project is incomplete" "upload the project again"
    fi
}

# cf_blob_is PATH DIGEST: whether the file is there, with exactly this content.
cf_blob_is() {
    local have
    if [[ ! -f "$1" || -L "$1" ]]; then return 1; fi
    have="$(sha256sum <"$1")" || return 1
    [[ "${have%% *}" == "$2" ]]
}

# cf_blob FILE TARGET_DIR: REPLY is the path of the file with the pinned content, CF_CHANGED tells whether it was
# fetched. 1, an empty REPLY and a warning with the reason when the locker does not give it, so that the caller decides.
cf_blob() {
    local -r file="$1" target="$2"
    local digest folder try reason=""
    cf_blob_digest "${file}"
    digest="${REPLY}"
    CF_CHANGED=0
    rm -rf "${target}/.${file}.cycleforge."*
    if cf_blob_is "${target}/${file}" "${digest}"; then
        REPLY="${target}/${file}"
        return 0
    fi
    if ! command -v jetpack >/dev/null; then
        cf_warn "blob ${file} was not fetched: the node agent (jetpack) is not installed"
        REPLY=""
        return 1
    fi
    if ! mkdir -p "${target}" || ! folder="$(mktemp -d "${target}/.${file}.cycleforge.XXXXXX")"; then
        cf_die "cannot write to ${target}" "" "look at the line above; is the disk full?"
    fi
    for ((try = 1; try <= CF_BLOB_TRIES; try++)); do
        if ((try > 1)); then sleep "${CYCLEFORGE_POLL_S:-2}"; fi
        cf_blob_fetch "${file}" "${folder}"
        reason="${REPLY}"
        if cf_blob_is "${folder}/${file}" "${digest}"; then
            chmod 0644 "${folder}/${file}"
            mv -fT "${folder}/${file}" "${target}/${file}" || cf_die "cannot write ${target}/${file}"
            rm -rf "${folder}"
            CF_CHANGED=1
            REPLY="${target}/${file}"
            return 0
        fi
        if [[ -z "${reason}" ]]; then reason="what came does not have the pinned sha256"; fi
        rm -rf "${folder:?}/${file}"
    done
    rm -rf "${folder}"
    cf_warn "blob ${file} was not fetched in ${CF_BLOB_TRIES} tries: ${reason}. Where the deployment is built:" \
        "cycleforge blobs fetch, then build and deploy again"
    REPLY=""
    return 1
}

# cf_blob_fetch FILE FOLDER: one bounded download into the folder; REPLY is empty or says why it failed.
cf_blob_fetch() {
    local -r file="$1" folder="$2"
    local code=0 line last=""
    timeout --kill-after=10 "${CF_BLOB_LIMIT_S}" jetpack download --project "${CF_PROJECT}" "${file}" \
        "${folder}/${file}" >"${folder}/.log" 2>&1 </dev/null || code=$?
    REPLY=""
    if ((code == 124 || code == 137)); then
        REPLY="jetpack download did not end within ${CF_BLOB_LIMIT_S} s"
    elif ((code != 0)); then
        while IFS= read -r line || [[ -n "${line}" ]]; do
            if [[ -n "${line//[[:space:]]/}" ]]; then last="${line}"; fi
        done <"${folder}/.log"
        REPLY="jetpack download ended with ${code}${last:+ (${last:0:200})}"
    elif [[ ! -f "${folder}/${file}" ]]; then
        REPLY="jetpack download ended well, but wrote no file"
    fi
}

# cf_unpack_blob FILE TARGET: the folder TARGET holds exactly the members of this tar file. It appears as a whole; the
# marker in it names the content, so a second run does nothing and another content replaces the folder.
cf_unpack_blob() {
    local -r file="$1" target="${2%/}"
    local -r parent="${target%/*}" name="${target##*/}"
    local digest folder
    digest="$(sha256sum <"${file}")" || cf_die "cannot read ${file}"
    digest="${digest%% *}"
    CF_CHANGED=0
    rm -rf "${parent}/.${name}.cycleforge."*
    if [[ -r "${target}/.cycleforge-blob" && "$(<"${target}/.cycleforge-blob")" == "${digest}" ]]; then return 0; fi
    if ! mkdir -p "${parent}" || ! folder="$(mktemp -d "${parent}/.${name}.cycleforge.XXXXXX")"; then
        cf_die "cannot write to ${parent}" "" "look at the line above; is the disk full?"
    fi
    mkdir "${folder}/new"
    # Owners and modes of the archive's maker mean nothing here: root owns it, the umask holds.
    if ! timeout 300 tar --extract --file "${file}" --directory "${folder}/new" --no-same-owner --no-same-permissions ||
        ! printf '%s\n' "${digest}" >"${folder}/new/.cycleforge-blob"; then
        rm -rf "${folder}"
        cf_die "${file##*/} cannot be unpacked to ${target}" "" "look at the line above; is the disk full?"
    fi
    if [[ -e "${target}" || -L "${target}" ]]; then mv -T "${target}" "${folder}/old" || cf_die "cannot move ${target}"; fi
    mv -T "${folder}/new" "${target}" || cf_die "cannot write ${target}"
    rm -rf "${folder}"
    CF_CHANGED=1
}
