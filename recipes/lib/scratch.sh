# shellcheck shell=bash
# Room to import an image: enroot unpacks its layers on a disk of the node before it writes the squash file. Sourced after
# common.sh.

# enroot_scratch: the folder in which enroot unpacks, as far as it is there.
# Source: NVIDIA/enroot, doc/configuration.md: ENROOT_TEMP_PATH, ENROOT_SYSCONF_PATH.
enroot_scratch() {
    local folder="${ENROOT_TEMP_PATH:-}"
    if [[ -z "${folder}" ]]; then
        folder="$(sed -nE 's/^ENROOT_TEMP_PATH[[:space:]]+//p' "${ENROOT_SYSCONF_PATH:-/etc/enroot}/enroot.conf" 2>/dev/null | tail -n 1 || true)"
    fi
    # What enroot calculates itself, such as the user, is below.
    folder="${folder%%\$*}"
    if [[ "${folder}" != /* ]]; then folder="${TMPDIR:-/tmp}"; fi
    until [[ -d "${folder}" ]]; do folder="$(dirname "${folder}")"; done
    echo "${folder}"
}

# check_scratch IMAGE: ends the step before an import that would fill the disk in its middle. IMPORT_SCRATCH_GB (10^9
# bytes) is what it takes; 0: nobody looks, and nobody knows it of a recipe without the setting.
check_scratch() {
    [[ -n "${IMPORT_SCRATCH_GB+set}" ]] || return 0
    require IMPORT_SCRATCH_GB
    ((IMPORT_SCRATCH_GB > 0)) || return 0
    local folder free
    folder="$(enroot_scratch)"
    free="$(df --output=avail --block-size=1000000000 "${folder}" | tail -n 1 | tr -d ' ')" || free=""
    [[ "${free}" =~ ^[0-9]+$ ]] || die "how much room ${folder} has cannot be said, and ${1} takes about ${IMPORT_SCRATCH_GB} GB there"
    ((free >= IMPORT_SCRATCH_GB)) ||
        die "${folder} on $(hostname -s) has ${free} GB free, and importing ${1} takes about ${IMPORT_SCRATCH_GB} GB there: set ENROOT_TEMP_PATH to a larger disk, take a VM size with one, or say with IMPORT_SCRATCH_GB that the image is smaller"
}
