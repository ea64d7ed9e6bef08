#!/usr/bin/env bash
# Make the local NVMe disks one file system: RAID 0 of all, a plain one for a single disk, nothing without disks.
# Runs at every boot as cycleforge-nvme.service, before slurmd. Deallocation gives blank disks, a reboot the old ones.
# A disk is taken only when it is local and empty, or carries our own mark; everything else is left alone and named.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR source=nvme-disks.sh
. "${BASH_SOURCE[0]%/*}/nvme-disks.sh"

CF_PROJECT=misc_ndv4
readonly FORMATTED="${CF_STATE_DIR}/nvme.uuid"
readonly STATE="${CF_STATE_DIR}/nvme.state"
# Where images and CycleCloud itself (8.8 and later) mount local NVMe disks.
readonly KNOWN_MOUNTS=(/nvme /mnt/nvme /mnt/resource_nvme)
readonly ATTEMPTS=3
# Creating and formatting terabytes; and how long another run may take for all of it.
readonly BUILD_S="${CYCLEFORGE_BUILD_S:-600}" LOCK_S="${CYCLEFORGE_LOCK_S:-900}"

EXPECTED=0 ATTEMPT=0
# What is mounted in the end, why a step lost its disks to another program, and what identifies our array.
DEVICE="" LOST="" ARRAY_UUID="" FRESH=false

# The lock is inherited, so that it also waits for a mkfs that outlived its killed script.
take_lock() {
    local lock
    mkdir -p "${CF_STATE_DIR}"
    exec {lock}>"${CF_STATE_DIR}/nvme.lock"
    flock --wait "${LOCK_S}" "${lock}" || cf_die "another run has prepared the disks for ${LOCK_S} s" "it may hang" \
        "see 'fuser -v ${CF_STATE_DIR}/nvme.lock'"
}

limited() { timeout --kill-after=5 "${BUILD_S}" "$@"; }

settle() {
    if command -v udevadm >/dev/null; then timeout 60 udevadm settle --timeout=30 || true; fi
}

# ---------------------------------------------------------------- what others have mounted

# is_on_nvme SOURCE: whether every disk below a mounted device is an NVMe disk; network and memory have none.
is_on_nvme() {
    local listing name kind disks=0
    local -r device="${1%%\[*}"
    listing="$(timeout "${CALL_S}" lsblk --inverse --noheadings --raw --output NAME,TYPE "${device}" 2>/dev/null)" || return 1
    while read -r name kind; do
        if [[ "${kind}" == disk ]]; then
            if [[ "${name}" != nvme* ]]; then return 1; fi
            disks=$((disks + 1))
        fi
    done <<<"${listing}"
    ((disks > 0))
}

# find_mount: the first known mount of local disks, its path in REPLY and its device in DEVICE.
find_mount() {
    local path source
    for path in "${CF_CONF[mount_point]}" "${KNOWN_MOUNTS[@]}"; do
        if cf_mounted "${path}"; then
            source="$(timeout 60 findmnt --noheadings --output SOURCE --mountpoint "${CF_ROOT}${path}" | tail -n 1 || true)"
            if [[ "${path}" == "${CF_CONF[mount_point]}" ]] || is_on_nvme "${source}"; then
                REPLY="${path}" DEVICE="${source:-unknown}"
                return 0
            fi
        fi
    done
    return 1
}

# A mount that exists already is used: as it is, or bound to the wanted place.
use_existing_mount() {
    if ! find_mount; then
        cf_outcome "none"
    elif [[ "${REPLY}" == "${CF_CONF[mount_point]}" ]]; then
        cf_outcome "${REPLY} is mounted (${DEVICE})"
    else
        mkdir -p "${CF_ROOT}${CF_CONF[mount_point]}"
        timeout 60 mount --bind "${CF_ROOT}${REPLY}" "${CF_ROOT}${CF_CONF[mount_point]}"
        cf_outcome "${REPLY} (${DEVICE}) bound to ${CF_CONF[mount_point]}"
    fi
}

# Disks that all became somebody's may be CycleCloud's or the image's work in progress: their mount is worth waiting for.
wait_for_other_program() {
    local -r limit=$((CF_CONF[wait_s] < 30 ? CF_CONF[wait_s] : 30))
    if cf_wait_for "${limit}" find_mount; then
        use_existing_mount
    else
        cf_outcome "nobody mounted them within ${limit} s"
    fi
}

# ---------------------------------------------------------------- our own disks

# The number of disks is right when the VM size's are there, and those of an array that lacks members. A disk that came
# back blank counts too: the array is lost then and waiting longer would not bring it back.
all_disks_there() {
    local uuid size needed="${EXPECTED}"
    scan
    for uuid in "${!MEMBERS[@]}"; do
        members_found "${uuid}"
        size="${ARRAY_SIZE[${uuid}]}"
        if ((REPLY < size && size > needed)); then needed="${size}"; fi
    done
    ((LOCAL_DISKS >= needed))
}

find_disks() {
    local disk uuid ours
    settle
    cf_wait_for "${CF_CONF[wait_s]}" all_disks_there || true
    if ((LOCAL_DISKS < EXPECTED)); then
        cf_warn "${LOCAL_DISKS} local NVMe disks after ${CF_CONF[wait_s]} s, the VM size has ${EXPECTED}; using what is there"
    fi
    for disk in "${FOREIGN[@]}"; do cf_warn "leaving ${disk} alone: it is not empty and not ours"; done
    ours="${#SINGLES[@]}"
    for uuid in "${!MEMBERS[@]}"; do
        members_found "${uuid}"
        ours=$((ours + REPLY))
    done
    cf_outcome "${LOCAL_DISKS} local: ${#BLANK[@]} blank, ${ours} ours, ${#FOREIGN[@]} foreign"
}

# complete_array: the RAID UUID of the largest of our arrays that has all its members, or empty, in REPLY.
complete_array() {
    local uuid size best="" most=0
    for uuid in "${!MEMBERS[@]}"; do
        members_found "${uuid}"
        size="${ARRAY_SIZE[${uuid}]}"
        if ((REPLY >= size && size > most)); then best="${uuid}" most="${size}"; fi
    done
    REPLY="${best}"
}

# claim: DEVICE becomes the array or disk to mount; it stays empty when there is none.
claim() {
    complete_array
    ARRAY_UUID="${REPLY}"
    if [[ -n "${ARRAY_UUID}" ]]; then
        assemble
    elif ((${#SINGLES[@]} > 0)); then
        DEVICE="${SINGLES[0]}"
        cf_outcome "${DEVICE} is ours"
    else
        if ((${#MEMBERS[@]} > 0)); then dismantle; fi
        build
    fi
    if [[ -n "${DEVICE}" && "${FRESH}" == false ]] && ((${#BLANK[@]} > 0)); then
        cf_warn "${BLANK[*]} came after ${DEVICE} was made and stay unused; deallocate the node to get all disks into one array"
    fi
}

assemble() {
    local -a disks
    read -r -a disks <<<"${MEMBERS[${ARRAY_UUID}]}"
    DEVICE="${ARRAY_DEVICE[${ARRAY_UUID}]:-}"
    if [[ -n "${DEVICE}" ]] && array_runs "${DEVICE}"; then
        cf_outcome "${DEVICE} is assembled (${#disks[@]} disks)"
        return
    fi
    if [[ -n "${DEVICE}" ]]; then stop_array "${DEVICE}"; fi
    if limited mdadm --assemble "/dev/md/${MARK}" "${disks[@]}"; then
        array_of "${disks[0]}"
        cf_outcome "${DEVICE} assembled again (${#disks[@]} disks)"
    elif ((ATTEMPT < ATTEMPTS)); then
        LOST="our array of ${#disks[@]} disks does not assemble"
    else
        dismantle
        build
    fi
}

stop_array() { timeout --kill-after=5 "${CALL_S}" mdadm --stop "$1" || true; }

# array_of DISK: DEVICE becomes the array that the kernel has built on a disk, whatever number it got.
array_of() {
    settle
    holder_of "$1"
    if ((${#HOLDERS[@]} == 0)); then cf_die "the kernel shows no array on $1" "mdadm reported success" "see 'cat /proc/mdstat'"; fi
    DEVICE="/dev/${HOLDERS[0]}"
}

# RAID 0 with a lost member has lost everything, so our own superblocks are cleared and the disks count as blank.
dismantle() {
    local uuid
    local -a disks
    for uuid in "${!MEMBERS[@]}"; do
        read -r -a disks <<<"${MEMBERS[${uuid}]}"
        cf_warn "our array has ${#disks[@]} of ${ARRAY_SIZE[${uuid}]} disks or does not assemble; its scratch data is gone, building it anew"
        if [[ -n "${ARRAY_DEVICE[${uuid}]:-}" ]]; then stop_array "${ARRAY_DEVICE[${uuid}]}"; fi
        limited mdadm --zero-superblock "${disks[@]}" || cf_die "mdadm cannot clear ${disks[*]}" \
            "something uses them" "see 'lsblk' and 'cat /proc/mdstat', then restart cycleforge-nvme.service"
        BLANK+=("${disks[@]}")
    done
    mapfile -t BLANK < <(printf '%s\n' "${BLANK[@]}" | sort --version-sort)
    MEMBERS=()
}

build() {
    # Before the array, and on the disk: after a power cut in between the record must not vouch for a leftover.
    rm -f "${FORMATTED}"
    sync "${CF_STATE_DIR}"
    if ((${#BLANK[@]} == 0)); then
        DEVICE=""
        cf_outcome "no disk to use"
    elif ((${#BLANK[@]} == 1)); then
        DEVICE="${BLANK[0]}"
        FRESH=true
        cf_outcome "${DEVICE} alone, no array"
    elif ! command -v mdadm >/dev/null; then
        cf_die "mdadm is not installed, ${#BLANK[@]} disks need it" "" "install the package mdadm or use an image that has it"
    elif ! limited mdadm --create "/dev/md/${MARK}" --run --level=0 --raid-devices="${#BLANK[@]}" --metadata=1.2 \
        --homehost=any --name="${MARK}" "${BLANK[@]}"; then
        LOST="mdadm did not create an array of ${BLANK[*]}"
    elif ! read_superblock "${BLANK[0]}"; then
        LOST="${BLANK[0]} has lost the superblock that mdadm wrote"
    else
        ARRAY_UUID="${REPLY}"
        FRESH=true
        array_of "${BLANK[0]}"
        cf_outcome "${DEVICE} created (${#BLANK[@]} disks)"
    fi
}

# ---------------------------------------------------------------- file system

# The file system of an array has the array's UUID. An array that is built again from used disks shows what the former
# one held, which may even mount; by its UUID it is known as a leftover.
array_file_system_uuid() {
    local -r hex="${ARRAY_UUID//:/}"
    REPLY=""
    if [[ "${hex}" =~ ^[0-9a-f]{32}$ ]]; then REPLY="${hex:0:8}-${hex:8:4}-${hex:12:4}-${hex:16:4}-${hex:20}"; fi
}

# format [force]: no discards, the disks of a new node are empty and terabytes of discards take long.
format() {
    local -r force="${1:-}"
    local wanted done=true
    array_file_system_uuid
    wanted="${REPLY}"
    if command -v mkfs.xfs >/dev/null; then
        limited mkfs.xfs -q -K ${force:+-f} -L "${MARK}" ${wanted:+-m "uuid=${wanted}"} "${DEVICE}" || done=false
    else
        limited mkfs.ext4 -q -E nodiscard ${force:+-F} -L "${MARK}" ${wanted:+-U "${wanted}"} "${DEVICE}" || done=false
    fi
    if [[ "${done}" == false ]]; then LOST="${DEVICE} could not be formatted"; fi
}

mount_device() {
    local -r target="${CF_ROOT}${CF_CONF[mount_point]}"
    mkdir -p "${target}"
    timeout 120 mount -o noatime "${DEVICE}" "${target}"
}

# The record is written only after a mount: a format that was killed half way is done again.
was_complete() { [[ -n "${UUID}" && "$(cat "${FORMATTED}" 2>/dev/null || true)" == "${UUID}" ]]; }

# is_leftover: whether the file system on our array belongs to a former array of the same disks.
is_leftover() {
    if [[ -z "${ARRAY_UUID}" ]]; then return 1; fi
    if [[ "${FRESH}" == true ]]; then return 0; fi
    array_file_system_uuid
    [[ "${UUID}" != "${REPLY}" ]] && ! was_complete
}

format_and_mount() {
    local how="formatted and mounted"
    probe "${DEVICE}" || cf_die "${DEVICE} cannot be read" "the disk may be broken" "see 'dmesg | grep -i nvme', redeploy the node"
    if [[ -n "${REPLY}" && "${FRESH}" == true && -z "${ARRAY_UUID}" ]]; then
        LOST="${DEVICE} was blank a moment ago and now holds ${REPLY}"
        return
    fi
    case "${REPLY}" in
        "") format ;;
        xfs | ext4)
            if is_leftover; then
                cf_warn "${DEVICE} shows the file system of a former array, formatting it"
                format force
            elif mount_device; then
                how="mounted"
            elif was_complete; then
                cf_die "${DEVICE} has a file system that does not mount" "it was complete once, so it is not overwritten" \
                    "run 'xfs_repair ${DEVICE}' or redeploy the node"
            else
                cf_warn "${DEVICE} carries an unfinished file system, formatting it again"
                format force
            fi
            ;;
        *)
            # A new array of ours shows what a former one held, or what lay in the middle of the disks.
            if [[ "${FRESH}" == false ]]; then
                cf_die "${DEVICE} holds '${REPLY}', which this project never writes" "somebody uses it" "set cycleforge.nvme.enabled = false"
            fi
            format force
            ;;
    esac
    if [[ -n "${LOST}" ]]; then return; fi
    if [[ "${how}" != mounted ]]; then mount_device; fi
    cf_outcome "${DEVICE} ${how} at ${CF_CONF[mount_point]}"
}

# ---------------------------------------------------------------- the way through

# Scratch for all users: the sticky bit keeps them from removing each other's files.
write_state() {
    local is_mounted=false
    if cf_mounted "${CF_CONF[mount_point]}"; then
        is_mounted=true
        if is_on_nvme "${DEVICE}"; then
            chmod 1777 "${CF_ROOT}${CF_CONF[mount_point]}"
            if probe "${DEVICE}" && [[ "${LABEL}" == "${MARK}" && -n "${UUID}" ]]; then cf_write "${FORMATTED}" 0644 <<<"${UUID}"; fi
        fi
    fi
    cf_write "${STATE}" 0644 <<STATE
mount_point=${CF_CONF[mount_point]}
mounted=${is_mounted}
expected_disks=${EXPECTED}
STATE
    cf_outcome "mounted ${is_mounted}"
}

attempt() {
    DEVICE="" LOST="" ARRAY_UUID="" FRESH=false
    cf_step "existing mount" use_existing_mount
    if [[ -n "${DEVICE}" ]]; then return; fi
    cf_step "local disks" find_disks
    if ((UNMOUNTED > 0 && ${#BLANK[@]} + ${#SINGLES[@]} + ${#MEMBERS[@]} == 0)); then
        cf_step "other program's mount" wait_for_other_program
        return
    fi
    cf_step "array" claim
    if [[ -n "${DEVICE}" && -z "${LOST}" ]]; then cf_step "file system" format_and_mount; fi
}

main() {
    cf_load_conf "${CF_CONF_DIR}/nvme.conf"
    EXPECTED="${CF_CONF[expected_disks]}"
    cf_step "lock" take_lock
    for ((ATTEMPT = 1; ATTEMPT <= ATTEMPTS; ATTEMPT++)); do
        attempt
        if [[ -z "${LOST}" ]]; then break; fi
        cf_warn "${LOST}; another program may have been faster, looking again"
        sleep "${CYCLEFORGE_POLL_S:-5}"
    done
    if [[ -n "${LOST}" ]]; then
        cf_die "${LOST}" "${ATTEMPTS} attempts failed" "see the lines above and 'dmesg', then restart cycleforge-nvme.service"
    fi
    cf_step "result" write_state
}

cf_main main "$@"
