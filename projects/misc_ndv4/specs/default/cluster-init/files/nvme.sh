#!/usr/bin/env bash
# Make the local NVMe disks one file system: RAID 0 of all, a plain one for a single disk, nothing without disks.
# Runs at every boot as cycleforge-nvme.service, before slurmd. Deallocation gives blank disks, a reboot the old ones.
# A disk is taken only when it is local and empty, or carries our own mark; everything else is left alone and named.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

CF_PROJECT=misc_ndv4
# The array's name and the file system's label are the mark by which a later boot knows its own disks.
readonly MARK=cycleforge
readonly ARRAY="/dev/md/${MARK}"
readonly FORMATTED="${CF_STATE_DIR}/nvme.uuid"
readonly STATE="${CF_STATE_DIR}/nvme.state"
# Where images and CycleCloud itself (8.8 and later) mount local NVMe disks.
readonly KNOWN_MOUNTS=(/nvme /mnt/nvme /mnt/resource_nvme)
# Azure's model string of remote disks behind an NVMe controller; those hold the system or somebody's data.
readonly REMOTE_MODEL='MSFT NVMe Accelerator*'

declare -a BLANK=() MEMBERS=() SINGLES=() FOREIGN=()
ACTIVE_ARRAY="" ARRAY_DEVICES=0 LOCAL_DISKS=0

# probe DEVICE: file-system or partition type in REPLY, empty when blank; LABEL and UUID beside it. 1 when unreadable.
LABEL="" UUID=""
probe() {
    local output code=0 key value
    REPLY="" LABEL="" UUID=""
    output="$(timeout 60 blkid --probe --output export "$1")" || code=$?
    if ((code == 2)); then
        # 2 means both "nothing found" and "could not read"; wipefs without options only lists, and tells them apart.
        output="$(timeout 60 wipefs --noheadings --output TYPE "$1")" || return 1
        REPLY="${output//[[:space:]]/}"
        return 0
    fi
    ((code == 0)) || return 1
    while IFS='=' read -r key value; do
        case "${key}" in
            TYPE | PTTYPE) REPLY="${value}" ;;
            LABEL) LABEL="${value}" ;;
            UUID) UUID="${value}" ;;
        esac
    done <<<"${output}"
}

# is_our_member DEVICE: whether its RAID superblock is ours; ARRAY_DEVICES is the member count that it records.
is_our_member() {
    local output key value name="" level="" devices=0
    output="$(timeout 60 mdadm --examine --export "$1")" || return 1
    while IFS='=' read -r key value; do
        case "${key}" in
            MD_NAME) name="${value##*:}" ;;
            MD_LEVEL) level="${value}" ;;
            MD_DEVICES) devices="${value}" ;;
        esac
    done <<<"${output}"
    if [[ "${name}" != "${MARK}" || "${level}" != raid0 ]]; then return 1; fi
    ARRAY_DEVICES="${devices}"
}

# classify NAME MOUNTED CHILDREN: put one local disk where it belongs. Children are "name type" words joined by commas.
classify() {
    local -r device="/dev/$1" mounted="$2" children="$3"
    local child
    if [[ -n "${mounted}" ]]; then
        FOREIGN+=("${device} (mounted at ${mounted})")
        return
    fi
    if [[ -n "${children}" ]]; then
        child="${children%%,*}"
        if [[ "${children}" =~ ^md[0-9]+:[a-z0-9]+,$ ]] && is_our_member "${device}"; then
            MEMBERS+=("${device}")
            # An array that lacks members is there but inactive, and then its type is not its level.
            ACTIVE_ARRAY="/dev/${child%%:*}"
            if [[ "${child##*:}" != raid0 ]]; then ACTIVE_ARRAY="inactive ${ACTIVE_ARRAY}"; fi
        else
            FOREIGN+=("${device} (in use by ${child%%:*})")
        fi
        return
    fi
    if ! probe "${device}"; then
        FOREIGN+=("${device} (unreadable or ambiguous)")
    elif [[ -z "${REPLY}" ]]; then
        BLANK+=("${device}")
    elif [[ "${REPLY}" == linux_raid_member ]] && is_our_member "${device}"; then
        MEMBERS+=("${device}")
    elif [[ "${REPLY}" == @(xfs|ext4) && "${LABEL}" == "${MARK}" ]]; then
        SINGLES+=("${device}")
    else
        FOREIGN+=("${device} (holds ${REPLY})")
    fi
}

# Read all block devices anew; names are not stable, so nothing is kept from an earlier look.
scan() {
    local listing line name kind parent mounted model
    local -a disks=()
    local -A mounts=() children=()
    BLANK=() MEMBERS=() SINGLES=() FOREIGN=() ACTIVE_ARRAY="" ARRAY_DEVICES=0
    local -r row='NAME="([^"]*)" TYPE="([^"]*)" PKNAME="([^"]*)" MOUNTPOINT="([^"]*)" MODEL="([^"]*)"'
    listing="$(timeout 60 lsblk --pairs --output NAME,TYPE,PKNAME,MOUNTPOINT,MODEL)" || cf_die "lsblk failed"
    while read -r line; do
        [[ "${line}" =~ ${row} ]] || continue
        name="${BASH_REMATCH[1]}" kind="${BASH_REMATCH[2]}" parent="${BASH_REMATCH[3]}"
        mounted="${BASH_REMATCH[4]}" model="${BASH_REMATCH[5]//\\x20/ }"
        # shellcheck disable=SC2053 # REMOTE_MODEL is a pattern
        if [[ -n "${parent}" ]]; then
            children["${parent}"]+="${name}:${kind},"
        elif [[ "${kind}" == disk && "${name}" =~ ^nvme[0-9]+n[0-9]+$ && "${model}" != ${REMOTE_MODEL} ]]; then
            disks+=("${name}")
            mounts["${name}"]="${mounted}"
        fi
    done <<<"${listing}"
    for name in "${disks[@]}"; do
        classify "${name}" "${mounts[${name}]}" "${children[${name}]:-}"
    done
    LOCAL_DISKS="${#disks[@]}"
}

all_disks_there() {
    scan
    ((LOCAL_DISKS >= EXPECTED)) && ((${#MEMBERS[@]} == 0 || ${#MEMBERS[@]} >= ARRAY_DEVICES))
}

# The kernel may list fewer disks than there are right after boot.
find_disks() {
    if command -v udevadm >/dev/null; then timeout 60 udevadm settle --timeout=30 || true; fi
    cf_wait_for "${CF_CONF[wait_s]}" all_disks_there || true
    if ((LOCAL_DISKS < EXPECTED)); then
        cf_warn "${LOCAL_DISKS} local NVMe disks after ${CF_CONF[wait_s]} s, the VM size has ${EXPECTED}; using what is there"
    fi
    local disk
    for disk in "${FOREIGN[@]}"; do cf_warn "leaving ${disk} alone: it is not empty and not ours"; done
    cf_outcome "${LOCAL_DISKS} local: ${#BLANK[@]} blank, $((${#MEMBERS[@]} + ${#SINGLES[@]})) ours, ${#FOREIGN[@]} foreign"
}

# assemble: DEVICE becomes the array or disk to mount; empty when there is none.
DEVICE=""
assemble() {
    if ((${#MEMBERS[@]} > 0)) && [[ "${ACTIVE_ARRAY}" == /dev/* ]]; then
        DEVICE="${ACTIVE_ARRAY}"
        cf_outcome "${DEVICE} is assembled (${#MEMBERS[@]} disks)"
    elif ((${#MEMBERS[@]} > 0)) && reassemble; then
        DEVICE="${ARRAY}"
        cf_outcome "${DEVICE} assembled again (${#MEMBERS[@]} disks)"
    elif ((${#SINGLES[@]} > 0)); then
        DEVICE="${SINGLES[0]}"
        cf_outcome "${DEVICE} is ours"
    elif ((${#BLANK[@]} == 0)); then
        cf_outcome "no disk to use"
    elif ((${#BLANK[@]} == 1)); then
        DEVICE="${BLANK[0]}"
        cf_outcome "${DEVICE} alone, no array"
    else
        command -v mdadm >/dev/null || cf_die "mdadm is not installed, ${#BLANK[@]} disks need it" "" "use an image that has it"
        timeout 120 mdadm --create "${ARRAY}" --run --level=0 --raid-devices="${#BLANK[@]}" --metadata=1.2 \
            --homehost=any --name="${MARK}" "${BLANK[@]}"
        DEVICE="${ARRAY}"
        cf_outcome "${DEVICE} created (${#BLANK[@]} disks)"
    fi
}

# RAID 0 with a lost member has lost everything, so our own superblocks are cleared and the disks count as blank.
reassemble() {
    if [[ -n "${ACTIVE_ARRAY}" ]]; then timeout 60 mdadm --stop "${ACTIVE_ARRAY#inactive }" || true; fi
    if ((${#MEMBERS[@]} >= ARRAY_DEVICES)) && timeout 120 mdadm --assemble "${ARRAY}" "${MEMBERS[@]}"; then return 0; fi
    cf_warn "the array has ${#MEMBERS[@]} of ${ARRAY_DEVICES} disks or does not assemble; its scratch data is gone, building it anew"
    timeout 120 mdadm --zero-superblock "${MEMBERS[@]}" || cf_die "mdadm cannot clear ${MEMBERS[*]}"
    BLANK+=("${MEMBERS[@]}")
    MEMBERS=()
    return 1
}

format() {
    local -r force="${1:-}"
    if command -v mkfs.xfs >/dev/null; then
        timeout 600 mkfs.xfs -q ${force:+-f} -L "${MARK}" "${DEVICE}"
    else
        timeout 600 mkfs.ext4 -q ${force:+-F} -L "${MARK}" "${DEVICE}"
    fi
    probe "${DEVICE}" || cf_die "${DEVICE} cannot be read after formatting"
    # Written only now: a format that was killed half way is not recorded and is done again.
    cf_write "${FORMATTED}" 0644 <<<"${UUID}"
}

mount_device() {
    local -r target="${CF_ROOT}${CF_CONF[mount_point]}"
    mkdir -p "${target}"
    timeout 120 mount -o noatime "${DEVICE}" "${target}"
}

format_and_mount() {
    probe "${DEVICE}" || cf_die "${DEVICE} cannot be read" "the disk may be broken" "see 'dmesg | grep -i nvme', redeploy the node"
    case "${REPLY}" in
        "")
            format
            mount_device
            cf_outcome "${DEVICE} formatted and mounted at ${CF_CONF[mount_point]}"
            ;;
        xfs | ext4)
            if ! mount_device; then
                if [[ -n "${UUID}" && "$(cat "${FORMATTED}" 2>/dev/null || true)" == "${UUID}" ]]; then
                    cf_die "${DEVICE} has a file system that does not mount" "it was complete once, so it is not overwritten" \
                        "run 'xfs_repair ${DEVICE}' or redeploy the node"
                fi
                cf_warn "${DEVICE} carries an unfinished file system, formatting it again"
                format force
                mount_device
            fi
            cf_outcome "${DEVICE} mounted at ${CF_CONF[mount_point]}"
            ;;
        *) cf_die "${DEVICE} holds '${REPLY}', which this project never writes" "somebody uses it" "set cycleforge.nvme.enabled = false" ;;
    esac
}

# A mount that exists already is used: as it is, or bound to the wanted place.
use_existing_mount() {
    local path source
    if cf_mounted "${CF_CONF[mount_point]}"; then
        DEVICE=mounted
        cf_outcome "${CF_CONF[mount_point]} is mounted"
        return
    fi
    for path in "${KNOWN_MOUNTS[@]}"; do
        if [[ "${path}" != "${CF_CONF[mount_point]}" ]] && cf_mounted "${path}"; then
            source="$(findmnt --noheadings --output SOURCE --mountpoint "${CF_ROOT}${path}" || true)"
            if [[ "${source}" == /dev/md* || "${source}" == /dev/nvme* ]]; then
                mkdir -p "${CF_ROOT}${CF_CONF[mount_point]}"
                timeout 60 mount --bind "${CF_ROOT}${path}" "${CF_ROOT}${CF_CONF[mount_point]}"
                DEVICE="${source}"
                cf_outcome "${path} (${source}) bound to ${CF_CONF[mount_point]}"
                return
            fi
        fi
    done
    cf_outcome "none"
}

write_state() {
    local mounted=false
    if cf_mounted "${CF_CONF[mount_point]}"; then
        # Scratch for all users: the sticky bit keeps them from removing each other's files.
        chmod 1777 "${CF_ROOT}${CF_CONF[mount_point]}"
        mounted=true
    fi
    cf_write "${STATE}" 0644 <<STATE
mount_point=${CF_CONF[mount_point]}
mounted=${mounted}
expected_disks=${EXPECTED}
STATE
    cf_outcome "mounted ${mounted}"
}

main() {
    cf_load_conf "${CF_CONF_DIR}/nvme.conf"
    EXPECTED="${CF_CONF[expected_disks]}"
    cf_step "existing mount" use_existing_mount
    if [[ -z "${DEVICE}" ]]; then
        cf_step "local disks" find_disks
        cf_step "array" assemble
        if [[ -n "${DEVICE}" ]]; then cf_step "file system" format_and_mount; fi
    fi
    cf_step "result" write_state
}

cf_main main "$@"
