#!/usr/bin/env bash
# Point enroot and pyxis of cyclecloud-slurm 4.x at the fastest local disk, at every boot as cycleforge-enroot.service,
# before slurmd. The slurm project chose a place when it was installed, before the NVMe disks were mounted; after a
# deallocation the place is empty. enroot.conf and pyxis.conf always name the same place.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

CF_PROJECT=pyxis_enroot
readonly ENROOT_CONF="${CF_ROOT}/etc/enroot/enroot.conf"
readonly PLUGSTACK="${CF_ROOT}/etc/slurm/plugstack.conf"
readonly PYXIS_CONF="${CF_ROOT}/etc/slurm/plugstack.conf.d/pyxis.conf"
readonly FOLDERS=(enroot-cache enroot-data enroot-temp enroot-runtime enroot-run)
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
        if cf_mounted "${path}"; then
            SCRATCH="${path}/enroot"
            cf_outcome "${SCRATCH}"
            return
        fi
    done
    SCRATCH=/tmp/enroot
    cf_warn "no local disk is mounted: enroot unpacks containers to ${SCRATCH} on the system disk"
    cf_outcome "${SCRATCH}"
}

# Shared by all users, so sticky. The place may be /tmp: a link there could lead anywhere.
make_folders() {
    local folder made=0
    for folder in "" "${FOLDERS[@]/#//}"; do
        folder="${CF_ROOT}${SCRATCH}${folder}"
        if [[ -L "${folder}" ]]; then
            cf_die "${folder} is a symbolic link" "another user may have put it there" "remove it and run the script again"
        fi
        if [[ ! -d "${folder}" ]]; then
            mkdir -p "${folder}"
            made=$((made + 1))
        fi
        if [[ "$(stat -c %a "${folder}")" != 1777 ]]; then chmod 1777 "${folder}"; fi
    done
    cf_outcome "${made} of $((${#FOLDERS[@]} + 1)) created"
}

# Lines are "KEY value"; ours are replaced where they stand or added, all others stay. The ids expand when enroot runs.
write_enroot_conf() {
    local line key content=""
    # shellcheck disable=SC2016 # enroot expands it for each user
    local -r user='user-$(id -u)' group='group-$(id -g)'
    local -A wanted=(
        [ENROOT_SCRATCH_PATH]="${SCRATCH}"
        [ENROOT_RUNTIME_PATH]="${SCRATCH}/enroot-run/${user}"
        [ENROOT_CACHE_PATH]="${SCRATCH}/enroot-cache/${group}"
        [ENROOT_DATA_PATH]="${SCRATCH}/enroot-data/${user}"
        [ENROOT_TEMP_PATH]="${SCRATCH}/enroot-temp"
    )
    local -r order=(ENROOT_SCRATCH_PATH ENROOT_RUNTIME_PATH ENROOT_CACHE_PATH ENROOT_DATA_PATH ENROOT_TEMP_PATH ENROOT_MOUNT_HOME)
    local -A seen=()
    case "${CF_CONF[mount_home]}" in
        true) wanted[ENROOT_MOUNT_HOME]=y ;;
        false) wanted[ENROOT_MOUNT_HOME]=n ;;
    esac
    # The last line may lack its line end; it is a line all the same.
    while IFS= read -r line || [[ -n "${line}" ]]; do
        read -r key _ <<<"${line}" || true
        if [[ -z "${key}" || -z "${wanted[${key}]:-}" ]]; then
            content+="${line}"$'\n'
        elif [[ -z "${seen[${key}]:-}" ]]; then
            content+="${key} ${wanted[${key}]}"$'\n'
            seen["${key}"]=1
        fi
    done <"${ENROOT_CONF}"
    for key in "${order[@]}"; do
        if [[ -n "${wanted[${key}]:-}" && -z "${seen[${key}]:-}" ]]; then content+="${key} ${wanted[${key}]}"$'\n'; fi
    done
    cf_write "${ENROOT_CONF}" 0644 <<<"${content%$'\n'}"
    cf_outcome_file "enroot.conf"
}

# One line in one file loads the plug-in. Two would make every srun fail, so a second one stops us instead of the jobs.
check_plugin_lines() {
    local lines library
    lines="$(cat "${PLUGSTACK}" "${PLUGSTACK}.d"/*.conf 2>/dev/null | grep -E '^[[:space:]]*(required|optional)[[:space:]]+[^[:space:]]*spank_pyxis\.so' || true)"
    if [[ -z "${lines}" ]]; then
        cf_outcome "no line"
        return
    fi
    if [[ "$(wc -l <<<"${lines}")" != 1 ]]; then
        cf_die "plugstack.conf loads spank_pyxis.so $(wc -l <<<"${lines}") times" "Slurm refuses a plug-in that is loaded twice" \
            "remove the other pyxis project from this node; cyclecloud-slurm 4.x brings pyxis itself"
    fi
    read -r _ library _ <<<"${lines}"
    if [[ "${lines}" =~ ^[[:space:]]*required && ! -e "${CF_ROOT}${library}" ]]; then
        cf_die "plugstack.conf requires ${library}, which does not exist" "every job would fail" \
            "see /var/log/azure-slurm-install.log: building pyxis failed"
    fi
    cf_outcome "one line, ${library}"
}

write_pyxis_conf() {
    local content wanted="runtime_path=${SCRATCH}/enroot-runtime"
    if [[ ! -r "${PYXIS_CONF}" ]]; then
        cf_outcome "no pyxis.conf"
        return
    fi
    content="$(sed -E "/spank_pyxis\.so/ {
        /[[:space:]]runtime_path=/! s|[[:space:]]*\$| ${wanted}|
        s|runtime_path=[^[:space:]]+|${wanted}|
    }" "${PYXIS_CONF}")"
    cf_write "${PYXIS_CONF}" 0644 <<<"${content}"
    cf_outcome_file "${wanted}"
}

main() {
    cf_load_conf "${CF_CONF_DIR}/enroot.conf"
    if [[ ! -r "${ENROOT_CONF}" ]]; then
        cf_os
        cf_warn "enroot is not configured on this node (${REPLY}): srun --container-image does not work here." \
            "cyclecloud-slurm 4.x installs enroot on Ubuntu and EL 8 only"
        return
    fi
    cf_step "enroot scratch" choose_scratch
    cf_step "enroot folders" make_folders
    cf_step "enroot.conf" write_enroot_conf
    cf_step "pyxis plug-in" check_plugin_lines
    cf_step "pyxis.conf" write_pyxis_conf
}

cf_main main "$@"
