#!/usr/bin/env bash
# The NCCL topology file and variables of this VM size, for jobs on the node and inside containers.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=vm_size.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/vm_size.sh"

readonly ENV_FILE="${CF_CONF_DIR}/nccl.env"
readonly SHELL_FILE="${CF_CONF_DIR}/nccl.sh"
readonly NCCL_CONF="${CF_ROOT}/etc/nccl.conf"
readonly ENROOT="${CF_ROOT}/etc/enroot"
readonly OWN="# Written by CycleForge (misc_ndv4) for this VM size."

declare -A VARIABLES=()

collect() {
    local key
    VARIABLES=()
    for key in "${!CF_FIGURES[@]}"; do
        if [[ "${key}" == variable.* ]]; then VARIABLES["${key#variable.}"]="${CF_FIGURES[${key}]}"; fi
    done
    use_file NCCL_TOPO_FILE topo
    use_file NCCL_GRAPH_FILE graph
    use_interface
    cf_outcome "${#VARIABLES[@]} variables"
}

# use_file VARIABLE KIND: the first of the known places where the image has the file. Without one the variable goes:
# NCCL would otherwise complain about a missing file in every job.
use_file() {
    local -r variable="$1" kind="$2"
    local path
    for path in "${VARIABLES[${variable}]:-}" "${CF_FIGURES[nccl_${kind}_file]:-}" "${CF_FIGURES[nccl_${kind}_link]:-}"; do
        if [[ -n "${path}" && -r "${CF_ROOT}${path}" ]]; then
            VARIABLES["${variable}"]="${path}"
            return
        fi
    done
    if [[ -n "${VARIABLES[${variable}]:-}${CF_FIGURES[nccl_${kind}_file]:-}" ]]; then
        cf_warn "the image has no ${CF_FIGURES[nccl_${kind}_file]:-${VARIABLES[${variable}]}}; NCCL detects the ${kind} by itself"
    fi
    unset -v 'VARIABLES[$variable]'
}

# NCCL ends a job when the interface does not exist; without the variable it looks for one.
use_interface() {
    local -r interface="${VARIABLES[NCCL_SOCKET_IFNAME]:-}"
    if [[ "${interface}" =~ ^[a-z0-9]+$ && ! -e "${CF_ROOT}/sys/class/net/${interface}" ]]; then
        cf_warn "this node has no interface ${interface}; NCCL chooses one by itself"
        unset "VARIABLES[NCCL_SOCKET_IFNAME]"
    fi
}

sorted_variables() {
    local name
    for name in "${!VARIABLES[@]}"; do printf '%s=%s\n' "${name}" "${VARIABLES[${name}]}"; done | LC_ALL=C sort
}

# KEY=VALUE lines for programs, and the same as exports for shells, with the plug-in's library path.
write_environment() {
    local changed
    cf_write "${ENV_FILE}" 0644 <<<"${OWN}"$'\n'"$(sorted_variables)"
    changed="${CF_CHANGED}"
    cf_write "${SHELL_FILE}" 0644 < <(exports)
    cf_outcome "$((changed + CF_CHANGED)) of 2 files changed"
}

exports() {
    local -r library="${CF_FIGURES[nccl_library_path]:-}"
    local line
    printf '%s\n' "${OWN} Source it in a job script."
    while read -r line; do
        if [[ -n "${line}" ]]; then printf 'export %s=%q\n' "${line%%=*}" "${line#*=}"; fi
    done < <(sorted_variables)
    if [[ -n "${library}" && -d "${CF_ROOT}${library}" ]]; then
        # shellcheck disable=SC2016 # expands in the job
        printf 'export LD_LIBRARY_PATH=%q"${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}"\n' "${library}"
    fi
}

# NCCL reads /etc/nccl.conf by itself. The HPC images bring one; that one stays.
write_nccl_conf() {
    if [[ -s "${NCCL_CONF}" ]] && ! grep -q -F "${OWN}" "${NCCL_CONF}"; then
        cf_outcome "the image's own stays"
        return
    fi
    cf_write "${NCCL_CONF}" 0644 <<<"${OWN}"$'\n'"$(sorted_variables | grep '^NCCL_' || true)"
    cf_outcome_file "/etc/nccl.conf"
}

# /etc/nccl.conf and /opt/microsoft of the host are not visible in a container; enroot can hand both in.
write_enroot() {
    local changed
    if [[ ! -d "${ENROOT}" ]]; then
        cf_remove "${ENROOT}/environ.d/50-cycleforge-nccl.env"
        cf_outcome "enroot is not installed"
        return
    fi
    cf_write "${ENROOT}/environ.d/50-cycleforge-nccl.env" 0644 < <(sorted_variables)
    changed="${CF_CHANGED}"
    cf_write "${ENROOT}/mounts.d/50-cycleforge-nccl.fstab" 0644 <<'FSTAB'
/opt/microsoft /opt/microsoft none x-create=dir,bind,ro,nosuid,nodev,nofail,silent
FSTAB
    cf_outcome "$((changed + CF_CHANGED)) of 2 files changed"
}

remove_own() {
    local file changed=0
    local -a files=("${ENV_FILE}" "${SHELL_FILE}" "${ENROOT}/environ.d/50-cycleforge-nccl.env"
        "${ENROOT}/mounts.d/50-cycleforge-nccl.fstab")
    if grep -q -s -F "${OWN}" "${NCCL_CONF}"; then files+=("${NCCL_CONF}"); fi
    for file in "${files[@]}"; do
        cf_remove "${file}"
        changed=$((changed + CF_CHANGED))
    done
    cf_outcome "${changed} own files removed"
}

main() {
    local size
    cf_vm_size
    size="${REPLY}"
    cf_size_figures cycleforge.vm_size.base "${size}"
    cf_attribute_bool cycleforge.nccl.enabled true
    if [[ "${REPLY}" == true ]]; then cf_step "NCCL variables of ${size}" collect; fi
    if ((${#VARIABLES[@]} == 0)); then
        cf_log "no NCCL variables for VM size '${size}': NCCL decides by itself"
        cf_step "NCCL files" remove_own
        return
    fi
    cf_step "NCCL environment" write_environment
    cf_step "nccl.conf" write_nccl_conf
    cf_step "NCCL in containers" write_enroot
}

cf_main main "$@"
