# shellcheck shell=bash
# Which image a reference stands for: the digest of its manifest, which the first import records beside the squash file.
# A tag can be moved to another image; what has been recorded cannot. Sourced by images.sh.
# enroot has `digest` and takes `IMAGE:TAG@sha256:…` from 4.0.0 on. Source: NVIDIA/enroot, src/docker.sh.

# image_name IMAGE: a reference as a file name.
image_name() {
    local name="${1#docker://}"
    echo "${name//[^A-Za-z0-9._-]/+}"
}

# digest_file IMAGE: where the digest of its first import is, for all jobs of the file system.
digest_file() {
    echo "${STAGE_PATH:?}/images/$(image_name "$1").digest"
}

# stated_digest IMAGE: what the settings say: CONTAINER_DIGEST, or the digest in the reference itself.
stated_digest() {
    local digest="${CONTAINER_DIGEST:-}"
    if [[ "$1" == *@sha256:* ]]; then
        if [[ -n "${digest}" && "${digest}" != "${1##*@}" ]]; then die "CONTAINER names ${1##*@}, CONTAINER_DIGEST ${digest}; state one of them"; fi
        digest="${1##*@}"
    fi
    if [[ -n "${digest}" && ! "${digest}" =~ ^sha256:[0-9a-f]{64}$ ]]; then die "${digest} is no digest; it is sha256: and 64 hexadecimal digits"; fi
    echo "${digest}"
}

# recorded_digest IMAGE: what the first import has recorded; nothing where there was none.
recorded_digest() {
    local digest="" file
    file="$(digest_file "$1")"
    if [[ -s "${file}" ]]; then read -r digest <"${file}" || true; fi
    if [[ -n "${digest}" && ! "${digest}" =~ ^sha256:[0-9a-f]{64}$ ]]; then die "${file} holds no digest; remove it, and the next import writes it anew"; fi
    echo "${digest}"
}

# record_digest IMAGE DIGEST: once; whoever is first decides.
record_digest() {
    local file
    file="$(digest_file "$1")"
    printf '%s\n' "$2" >"${file}.partial-${SLURM_JOB_ID:-$$}"
    mv -n "${file}.partial-${SLURM_JOB_ID:-$$}" "${file}"
    rm -f "${file}.partial-${SLURM_JOB_ID:-$$}"
    if [[ "$(recorded_digest "$1")" != "$2" ]]; then die "another job has just recorded another image for ${1}, see ${file}; submit this step again"; fi
}

# registry_digest IMAGE: the manifest that the registry has now for this architecture.
registry_digest() {
    local digest
    digest="$(with_credentials enroot digest "$1")" || return 1
    [[ "${digest}" =~ ^sha256:[0-9a-f]{64}$ ]] || return 1
    echo "${digest}"
}

# digest_to_import IMAGE: the one that is stated; else the recorded one, which the registry must still have under this tag;
# at the first import what the registry has.
digest_to_import() {
    local stated recorded now=""
    stated="$(stated_digest "$1")" || exit
    if [[ -n "${stated}" ]]; then
        echo "${stated}"
        return
    fi
    recorded="$(recorded_digest "$1")" || exit
    now="$(registry_digest "$1")" || true
    if [[ -z "${recorded}${now}" ]]; then
        die "the registry says no digest of ${1}: is it reachable from here, is the name right, does it need REGISTRY_NETRC? \`enroot digest\` needs enroot 4.0.0; with an older one set CONTAINER_DIGEST"
    fi
    if [[ -n "${recorded}" && -n "${now}" && "${recorded}" != "${now}" ]]; then
        die "${1} is another image now: the registry has ${now}, the first import recorded ${recorded}. To keep the recorded one, set CONTAINER_DIGEST=${recorded}; to take the new one, set CONTAINER_DIGEST=${now}, or remove $(digest_file "$1")"
    fi
    if [[ -z "${now}" ]]; then log "WARNING: the registry does not answer; ${recorded} is what the first import recorded" >&2; fi
    echo "${recorded:-${now}}"
}

# check_credentials: before anything asks the registry.
check_credentials() {
    if [[ -z "${REGISTRY_NETRC:-}" ]]; then return; fi
    [[ -r "${REGISTRY_NETRC}" ]] || die "REGISTRY_NETRC ${REGISTRY_NETRC} cannot be read"
    if [[ -n "$(find -L "${REGISTRY_NETRC}" -maxdepth 0 -perm /007)" ]]; then
        die "everybody can read or change ${REGISTRY_NETRC}; type: chmod o= ${REGISTRY_NETRC}"
    fi
}

# with_credentials COMMAND...: enroot reads `.credentials` in the folder ENROOT_CONFIG_PATH, which here is a link to the
# file that REGISTRY_NETRC names; what is in it is on no command line and in no log. Without it enroot looks where
# the node or the user has set it up.
with_credentials() {
    if [[ -z "${REGISTRY_NETRC:-}" ]]; then
        "$@"
        return
    fi
    local folder status=0
    folder="$(mktemp -d)"
    ln -s "$(realpath "${REGISTRY_NETRC}")" "${folder}/.credentials"
    ENROOT_CONFIG_PATH="${folder}" "$@" || status=$?
    rm -rf "${folder}"
    return "${status}"
}
