#!/usr/bin/env bash
# Which local NVMe disks there are and what each of them holds. Sourced by nvme.sh, never run.
# A disk counts as blank or as ours only when every look at it succeeded and agreed; anything else is somebody else's.
# shellcheck disable=SC2034 # the lists are results for nvme.sh

# The array's name and the file system's label are the mark by which a later boot knows its own disks.
readonly MARK=cycleforge
# Azure's model string of remote disks behind an NVMe controller; those hold the system or somebody's data.
# Local ones are "Microsoft NVMe Direct Disk" and the same with " v2". Source: github.com/Azure/azure-vm-utils, 80-azure-disk.rules
readonly REMOTE_MODEL='MSFT NVMe Accelerator*'
# A disk that hangs must not hold the boot.
readonly CALL_S="${CYCLEFORGE_CALL_S:-60}"

# Local disks, and those of them that carry somebody's mark but are not mounted: they may be work in progress.
LOCAL_DISKS=0 UNMOUNTED=0
# Devices without content, with our own plain file system, and "device (what it is)" of everybody else's.
declare -a BLANK=() SINGLES=() FOREIGN=()
# Our arrays by RAID UUID: the members found, how many there must be, and the md device where one is assembled.
declare -A MEMBERS=() ARRAY_SIZE=() ARRAY_DEVICE=()

# probe DEVICE: file-system or partition type in REPLY, empty when blank; LABEL and UUID beside it. 1 when unreadable.
LABEL="" UUID=""
probe() {
    local output code=0 key value
    REPLY="" LABEL="" UUID=""
    output="$(timeout --kill-after=5 "${CALL_S}" blkid --probe --output export "$1")" || code=$?
    if ((code == 2)); then
        # 2 means both "nothing found" and "could not read". wipefs without options only lists; a read tells the rest.
        output="$(timeout --kill-after=5 "${CALL_S}" wipefs --noheadings --output TYPE "$1")" || return 1
        REPLY="${output//[[:space:]]/}"
        [[ -n "${REPLY}" ]] || timeout --kill-after=5 "${CALL_S}" head --bytes=1048576 "${CF_ROOT}$1" >/dev/null || return 1
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
    # An answer without a type is no proof of emptiness.
    REPLY="${REPLY:-content that blkid does not name}"
}

# read_superblock DEVICE: the RAID UUID in REPLY and the member count in SIZE when the superblock is ours, otherwise 1.
SIZE=0
read_superblock() {
    local output key value name="" level=""
    REPLY="" SIZE=0
    output="$(timeout --kill-after=5 "${CALL_S}" mdadm --examine --export "$1")" || return 1
    while IFS='=' read -r key value; do
        case "${key}" in
            MD_NAME) name="${value##*:}" ;;
            MD_LEVEL) level="${value}" ;;
            MD_DEVICES) SIZE="${value}" ;;
            MD_UUID) REPLY="${value}" ;;
        esac
    done <<<"${output}"
    [[ "${name}" == "${MARK}" && "${level}" == raid0 && "${SIZE}" =~ ^[1-9][0-9]{0,3}$ && -n "${REPLY}" ]]
}

# holder_of DEVICE: the devices that the kernel has built on a disk, in HOLDERS. lsblk may name an array below one of
# its members only, and leaves out one that is not running.
declare -a HOLDERS=()
holder_of() {
    local path
    HOLDERS=()
    for path in "${CF_ROOT}/sys/block/${1#/dev/}/holders/"*; do
        if [[ -e "${path}" ]]; then HOLDERS+=("${path##*/}"); fi
    done
}

array_runs() {
    local state
    state="$(cat "${CF_ROOT}/sys/block/${1#/dev/}/md/array_state" 2>/dev/null || true)"
    [[ "${state}" == @(clean|active|active-idle|write-pending) ]]
}

# classify NAME MOUNTED MODEL: put one local disk where it belongs.
classify() {
    local -r name="$1" mounted="$2" model="$3" device="/dev/$1"
    local path
    for path in "${CF_ROOT}/sys/block/${name}/${name}p"*; do
        if [[ -e "${path}" ]]; then
            FOREIGN+=("${device} (has the partition ${path##*/})")
            return
        fi
    done
    holder_of "${device}"
    if [[ -n "${mounted}" ]]; then
        FOREIGN+=("${device} (mounted at ${mounted})")
    elif [[ -z "${model}" ]]; then
        FOREIGN+=("${device} (no model, so it may be a remote disk)")
    elif ((${#HOLDERS[@]} > 0)) && [[ "${HOLDERS[*]}" != md+([^ /]) ]]; then
        FOREIGN+=("${device} (in use by ${HOLDERS[*]})")
        UNMOUNTED=$((UNMOUNTED + 1))
    elif ((${#HOLDERS[@]} > 0)); then
        if read_superblock "${device}"; then
            add_member "${device}" "/dev/${HOLDERS[0]}"
        else
            FOREIGN+=("${device} (in use by ${HOLDERS[0]})")
            UNMOUNTED=$((UNMOUNTED + 1))
        fi
    elif ! probe "${device}"; then
        FOREIGN+=("${device} (unreadable or ambiguous)")
    elif [[ -z "${REPLY}" ]]; then
        BLANK+=("${device}")
    elif [[ "${REPLY}" == @(xfs|ext4) && "${LABEL}" == "${MARK}" ]]; then
        SINGLES+=("${device}")
    elif [[ "${REPLY}" == linux_raid_member ]] && read_superblock "${device}"; then
        add_member "${device}" ""
    else
        probe "${device}" || true
        FOREIGN+=("${device} (holds ${REPLY}${LABEL:+ ${LABEL}})")
        UNMOUNTED=$((UNMOUNTED + 1))
    fi
}

# add_member DEVICE ARRAY: after read_superblock, whose results it takes.
add_member() {
    MEMBERS["${REPLY}"]+="${MEMBERS[${REPLY}]:+ }$1"
    ARRAY_SIZE["${REPLY}"]="${SIZE}"
    if [[ -n "$2" ]]; then ARRAY_DEVICE["${REPLY}"]="$2"; fi
}

members_found() {
    local -a found
    read -r -a found <<<"${MEMBERS[$1]}"
    REPLY="${#found[@]}"
}

# Read all disks anew; names are not stable, so nothing is kept from an earlier look.
scan() {
    local listing line name kind mounted_at model rows=0
    local -A mounts=() models=()
    local -r row='NAME="([^"]*)" TYPE="([^"]*)" MOUNTPOINT="([^"]*)" MODEL="([^"]*)"'
    BLANK=() SINGLES=() FOREIGN=() MEMBERS=() ARRAY_SIZE=() ARRAY_DEVICE=() UNMOUNTED=0
    listing="$(timeout --kill-after=5 "${CALL_S}" lsblk --nodeps --pairs --output NAME,TYPE,MOUNTPOINT,MODEL)" ||
        cf_die "lsblk failed with exit code $?" "the disks are unknown, so none is touched" "run 'lsblk' on the node"
    while read -r line; do
        [[ "${line}" =~ ${row} ]] || continue
        rows=$((rows + 1))
        name="${BASH_REMATCH[1]}" kind="${BASH_REMATCH[2]}" mounted_at="${BASH_REMATCH[3]}"
        model="${BASH_REMATCH[4]//\\x20/ }"
        # shellcheck disable=SC2053 # REMOTE_MODEL is a pattern
        if [[ "${kind}" == disk && "${name}" =~ ^nvme[0-9]+n[0-9]+$ && "${model}" != ${REMOTE_MODEL} ]]; then
            mounts["${name}"]="${mounted_at}" models["${name}"]="${model}"
        fi
    done <<<"${listing}"
    if ((rows == 0)); then
        cf_die "lsblk lists no device, not even the system's disk" "its answer begins '${listing:0:60}'" "run 'lsblk' on the node"
    fi
    LOCAL_DISKS="${#mounts[@]}"
    while read -r name; do
        if [[ -n "${name}" ]]; then classify "${name}" "${mounts[${name}]}" "${models[${name}]}"; fi
    done < <(printf '%s\n' "${!mounts[@]}" | sort --version-sort)
}
