#!/usr/bin/env bash
# Point enroot and pyxis at the fastest local disk, at every boot as cycleforge-enroot.service, before slurmd. The slurm
# project chose a place when it was installed, before the NVMe disks were mounted; after a deallocation the place is
# empty. enroot.conf and pyxis.conf always name the same place.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR source=plugstack.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/plugstack.sh"
# shellcheck source-path=SCRIPTDIR source=check.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/check.sh"

CF_PROJECT=pyxis_enroot
readonly ENROOT_FOLDER="${CF_ROOT}/etc/enroot"
readonly ENROOT_CONF="${ENROOT_FOLDER}/enroot.conf"
readonly DEFAULT_PLUGIN=/opt/pyxis/spank_pyxis.so
# enroot makes a folder per user in these.
readonly SHARED_FOLDERS=(enroot-cache enroot-data enroot-temp enroot-run)
# pyxis makes a folder per user in this one, as root. Writable for root only: who makes another user's folder first could
# exchange the image that this user's job unpacks.
readonly RUNTIME_FOLDER=enroot-runtime
# enroot asks for its settings here when a user has no folder of his own.
readonly SITE_SETTINGS=/etc/cycleforge/enroot
# What 99-mellanox.sh of enroot mounts without asking.
# shellcheck disable=SC2016 # enroot expands it at each start
readonly RDMA_DEVICES='$(if [ -d /sys/class/infiniband ] && [ -e /sys/class/infiniband_verbs/abi_version ] && [ -e /sys/class/infiniband_mad/abi_version ] && [ -e /dev/infiniband/rdma_cm ]; then echo all; else echo void; fi)'
SCRATCH=""

# The first of: what the definition asks for, the NVMe mount, /mnt when it is a disk of its own, /tmp.
choose_scratch() {
    local path
    if [[ -n "${CF_CONF[scratch]}" ]]; then
        SCRATCH="${CF_CONF[scratch]}/enroot"
        cf_outcome "${SCRATCH} (asked for)"
        return
    fi
    for path in "${CF_CONF[nvme_mount_point]}" /nvme /mnt/nvme /mnt/resource_nvme /mnt; do
        if ! cf_mounted "${path}"; then continue; fi
        # A file system with errors turns read-only.
        if [[ ! -w "${CF_ROOT}${path}" ]]; then
            cf_warn "${path} is mounted and cannot be written: enroot goes to the next place; see 'dmesg' on the node"
            continue
        fi
        SCRATCH="${path}/enroot"
        cf_outcome "${SCRATCH}"
        return
    done
    SCRATCH=/tmp/enroot
    cf_warn "no local disk is mounted: enroot unpacks containers to ${SCRATCH} on the system disk"
    cf_outcome "${SCRATCH}"
}

# Shared by all users, so sticky. The place may be /tmp, where anybody can put a folder or a link of that name first. A
# link that root made where nobody else can (the slurm project before 4.0.3: /mnt/enroot) is followed.
make_folder() {
    local -r folder="$1" mode="$2"
    local owner has parent
    local -a follow=()
    if [[ -L "${folder}" ]]; then
        follow=(-L)
        owner="$(stat -c %u "${folder}")" parent="$(stat -c %a "${folder%/*}")"
        if [[ "${owner}" != "${EUID}" ]] || (((8#${parent} & 8#022) != 0)) || [[ ! -d "${folder}" ]]; then
            cf_die "${folder} is a symbolic link" "another user may have put it there" "remove it and run the script again"
        fi
    fi
    if [[ ! -d "${folder}" ]]; then
        mkdir -p "${folder}"
        MADE=$((MADE + 1))
    fi
    # Until it is ours, whoever owns it can put a link in its place: what counts is the folder that was entered.
    cd -P "${folder}"
    is_entered "${folder}" "${follow[@]+"${follow[@]}"}"
    read -r owner has < <(stat -c '%u %a' .)
    if [[ "${owner}" != "${EUID}" ]]; then
        chown "${EUID}" .
        is_entered "${folder}" "${follow[@]+"${follow[@]}"}"
    fi
    if [[ "${has}" != "${mode}" ]]; then chmod "${mode}" .; fi
    cd /
}

# is_entered FOLDER [-L]: stop unless the present folder is the one of that name, without -L through no link.
is_entered() {
    if [[ "$(stat "${@:2}" -c %d:%i "$1")" != "$(stat -c %d:%i .)" ]]; then
        cf_die "$1 became a symbolic link" "another user has put it there" "remove it and run the script again"
    fi
}

make_folders() {
    local folder
    MADE=0
    make_folder "${CF_ROOT}${SCRATCH}" 1777
    for folder in "${SHARED_FOLDERS[@]}"; do make_folder "${CF_ROOT}${SCRATCH}/${folder}" 1777; done
    make_folder "${CF_ROOT}${SCRATCH}/${RUNTIME_FOLDER}" 755
    cf_outcome "${MADE} of $((${#SHARED_FOLDERS[@]} + 2)) created"
}

# The folder that holds the site's credentials is a link to their file, so that rights and rotation stay with that file.
link_credentials() {
    local -r file="${CF_CONF[credentials]}" folder="${CF_ROOT}${SITE_SETTINGS}"
    local -r link="${folder}/.credentials"
    local mode
    SITE_CREDENTIALS=false
    if [[ -z "${file}" ]]; then
        cf_remove "${link}"
        cf_outcome "each user's own"
        return
    fi
    mode="$(stat -L -c %a "${CF_ROOT}${file}" 2>/dev/null || true)"
    if [[ -z "${mode}" ]]; then
        cf_warn "${file} does not exist: images of registries that ask for a password fail." \
            "Write it, one line 'machine REGISTRY login USER password PASSWORD' per registry, and reboot or run the unit again"
    elif (((8#${mode} & 8#022) != 0)); then
        # enroot runs commands that stand in this file, with the rights of whoever imports an image.
        cf_warn "${file} can be written by others than its owner (mode ${mode}): it is not used. chmod go-w ${file}"
        cf_remove "${link}"
        cf_outcome "refused"
        return
    elif (((8#${mode} & 8#044) == 0)); then
        cf_warn "${file} can be read by its owner only (mode ${mode}): let its users read it, for example with a group"
    fi
    mkdir -p "${folder}"
    if [[ "$(readlink "${link}" || true)" != "${file}" ]]; then
        rm -f "${folder}/.link.cycleforge"
        ln -s "${file}" "${folder}/.link.cycleforge"
        mv -fT "${folder}/.link.cycleforge" "${link}"
    fi
    SITE_CREDENTIALS=true
    cf_outcome "${file}"
}

# Lines are "KEY value"; ours are replaced where they stand or added, all others stay. The ids expand when enroot runs.
# enroot takes the first line of a key, drop-ins cannot overrule it, and a last line without an end is not read.
write_enroot_conf() {
    local line key content="" active=false
    # shellcheck disable=SC2016 # enroot expands it for each user
    local -r user='user-$(id -u)'
    local -A wanted=(
        [ENROOT_SCRATCH_PATH]="${SCRATCH}"
        [ENROOT_RUNTIME_PATH]="${SCRATCH}/enroot-run/${user}"
        # Per user: enroot makes the folder with mode 700, so one per group serves only the first user of the group.
        [ENROOT_CACHE_PATH]="${SCRATCH}/enroot-cache/${user}"
        [ENROOT_DATA_PATH]="${SCRATCH}/enroot-data/${user}"
        [ENROOT_TEMP_PATH]="${SCRATCH}/enroot-temp"
    )
    # What cyclecloud-slurm 4.0.9 writes where it configures enroot. No compression: a local disk is faster than a CPU.
    local -Ar defaults=(
        [ENROOT_SQUASH_OPTIONS]="-noI -noD -noF -noX -no-duplicates"
        [ENROOT_MOUNT_HOME]=y
        [ENROOT_RESTRICT_DEV]=y
        [ENROOT_ROOTFS_WRITABLE]=y
    )
    local -r order=(
        ENROOT_SCRATCH_PATH ENROOT_RUNTIME_PATH ENROOT_CACHE_PATH ENROOT_DATA_PATH ENROOT_TEMP_PATH ENROOT_CONFIG_PATH
        ENROOT_SQUASH_OPTIONS ENROOT_MOUNT_HOME ENROOT_RESTRICT_DEV ENROOT_ROOTFS_WRITABLE MELLANOX_VISIBLE_DEVICES
    )
    local -A seen=()
    if [[ "${SITE_CREDENTIALS}" == true ]]; then
        # A user's own folder counts as a whole; it may hold hooks and mounts beside credentials.
        # shellcheck disable=SC2016 # enroot expands it for each user
        wanted[ENROOT_CONFIG_PATH]='$(own="${XDG_CONFIG_HOME:-${HOME:-$(echo ~)}/.config}/enroot"; if [ -d "$own" ]; then echo "$own"; else echo '"${SITE_SETTINGS}"'; fi)'
    fi
    if [[ -r "${ENROOT_CONF}" ]] && grep -q -E '^[[:space:]]*(ENROOT|MELLANOX|NVIDIA)_' "${ENROOT_CONF}"; then active=true; fi
    # With "all" and no InfiniBand driver enroot's own hook fails, and with it every container. Asked at each start.
    if [[ "${active}" == false ]] || grep -q -E '^[[:space:]]*MELLANOX_VISIBLE_DEVICES[[:space:]]+(all[[:space:]]*$|.*/sys/class/infiniband)' "${ENROOT_CONF}"; then
        wanted[MELLANOX_VISIBLE_DEVICES]="${RDMA_DEVICES}"
    fi
    case "${CF_CONF[mount_home]}" in
        true) wanted[ENROOT_MOUNT_HOME]=y ;;
        false) wanted[ENROOT_MOUNT_HOME]=n ;;
    esac
    # The package's file has comments only: the slurm project has not configured enroot on this system.
    if [[ "${active}" == false ]]; then
        for key in "${!defaults[@]}"; do wanted["${key}"]="${wanted[${key}]:-${defaults[${key}]}}"; done
    fi
    # The last line may lack its line end; it is a line all the same.
    while IFS= read -r line || [[ -n "${line}" ]]; do
        read -r key _ <<<"${line}" || true
        if [[ "${key}" == ENROOT_CONFIG_PATH && "${SITE_CREDENTIALS}" == false && "${line}" == *"${SITE_SETTINGS}"* ]]; then
            continue
        elif [[ -z "${key}" || -z "${wanted[${key}]:-}" ]]; then
            content+="${line}"$'\n'
        elif [[ -z "${seen[${key}]:-}" ]]; then
            content+="${key} ${wanted[${key}]}"$'\n'
            seen["${key}"]=1
        fi
    done < <(cat "${ENROOT_CONF}" 2>/dev/null || true)
    for key in "${order[@]}"; do
        if [[ -n "${wanted[${key}]:-}" && -z "${seen[${key}]:-}" ]]; then content+="${key} ${wanted[${key}]}"$'\n'; fi
    done
    cf_write "${ENROOT_CONF}" 0644 <<<"${content%$'\n'}"
    cf_outcome_file "enroot.conf"
}

# One line in one file loads the plug-in. With two srun crashes, and a required one that does not load makes every job
# hang, so both stop us instead of the jobs.
check_plugin_lines() {
    local library
    cf_plugin_lines
    library="${PLUGIN_LIBRARY:-${DEFAULT_PLUGIN}}"
    PLUGIN_STATE=missing
    if ((${#PLUGIN_LINES[@]} > 1)); then
        cf_die "plugstack.conf loads spank_pyxis.so ${#PLUGIN_LINES[@]} times" "srun crashes when pyxis is loaded twice" \
            "remove the other pyxis project from this node; cyclecloud-slurm 4.x brings pyxis itself"
    fi
    if [[ "${library}" != /* || -e "${CF_ROOT}${library}" ]]; then
        cf_try_plugin "${library/#\//"${CF_ROOT}"/}"
        PLUGIN_STATE="${REPLY}"
    fi
    if [[ "${PLUGIN_VERB}" == required && "${PLUGIN_STATE}" == missing ]]; then
        cf_die "plugstack.conf requires ${library}, which does not exist" "every job would fail" \
            "see /var/log/azure-slurm-install.log: building pyxis failed"
    elif [[ "${PLUGIN_VERB}" == required && "${PLUGIN_STATE}" == refused ]]; then
        cf_die "plugstack.conf requires ${library}, which Slurm does not load: ${PLUGIN_SAYS:-no reason given}" \
            "every job would fail" "remove the file and converge again: it is built for this Slurm release"
    fi
    cf_outcome "${PLUGIN_VERB:-no} line, ${library}: ${PLUGIN_STATE}${PLUGIN_SAYS:+ (${PLUGIN_SAYS})}"
}

# Required, never optional: with an optional plug-in a container that does not start is no error to Slurm, and the job
# runs outside of it. A plug-in without a line (EL 9, older slurm projects) gets one on every role, so that srun knows
# the option on login nodes and a node without enroot says so in the job.
write_pyxis_conf() {
    local content
    local -r wanted="runtime_path=${SCRATCH}/${RUNTIME_FOLDER}" line='^[[:space:]]*(required|optional)[[:space:]].*spank_pyxis\.so'
    if [[ -r "${PYXIS_CONF}" ]] && grep -q -E "${line}" "${PYXIS_CONF}"; then
        content="$(sed -E "/${line}/ {
            /[[:space:]]runtime_path=/! s|[[:space:]]*\$| ${wanted}|
            s|runtime_path=[^[:space:]]+|${wanted}|
        }" "${PYXIS_CONF}")"
        if [[ "${PLUGIN_STATE}" == loads ]]; then content="$(sed -E "/${line}/ s/^[[:space:]]*optional/required/" <<<"${content}")"; fi
    elif ((${#PLUGIN_LINES[@]} == 1)); then
        cf_warn "another file than pyxis.conf loads pyxis: its line must be required and end with ${wanted}"
        cf_outcome "not ours"
        return
    elif [[ "${PLUGIN_STATE}" == @(missing|refused) ]]; then
        cf_outcome "no plug-in that Slurm loads"
        return
    else
        content="$(cat "${PYXIS_CONF}" 2>/dev/null || true)"
        content+="${content:+$'\n'}required ${DEFAULT_PLUGIN} ${wanted}"
    fi
    cf_write "${PYXIS_CONF}" 0644 <<<"${content}"
    cf_outcome_file "${wanted}"
}

# Older slurm projects have no plugstack.conf. One that is there is the slurm project's or the site's.
include_plugins() {
    if [[ ! -e "${PYXIS_CONF}" ]]; then
        cf_outcome "nothing to include"
    elif [[ ! -e "${PLUGSTACK}" && ! -L "${PLUGSTACK}" ]]; then
        cf_write "${PLUGSTACK}" 0644 <<<"include /etc/slurm/plugstack.conf.d/*"
        cf_outcome_file "plugstack.conf"
    elif cf_plugin_folder_included; then
        cf_outcome "included"
    else
        cf_warn "${PLUGSTACK#"${CF_ROOT}"} does not make Slurm read pyxis.conf: add the line 'include /etc/slurm/plugstack.conf.d/*' to it"
        cf_outcome "not included"
    fi
}

main() {
    cf_load_conf "${CF_CONF_DIR}/enroot.conf"
    cf_step "enroot scratch" choose_scratch
    cf_step "enroot folders" make_folders
    cf_step "registry credentials" link_credentials
    if [[ -d "${ENROOT_FOLDER}" ]] || command -v enroot >/dev/null; then
        cf_step "enroot.conf" write_enroot_conf
    fi
    cf_step "pyxis plug-in" check_plugin_lines
    cf_step "pyxis.conf" write_pyxis_conf
    cf_step "plugstack.conf" include_plugins
    cf_step "container check" cf_container_check "${SCRATCH}" "${CF_CONF[min_free_gib]}" "${CF_CONF[role]}"
}

cf_main main "$@"
