#!/usr/bin/env bash
# What containers need beside enroot itself: PMIx and PyTorch hooks, and NVIDIA's container tools on GPU nodes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly SHIPPED="${CF_ROOT}/usr/share/enroot/hooks.d"
readonly ACTIVE="${CF_ROOT}/etc/enroot/hooks.d"
readonly HOOKS=(50-slurm-pmi.sh 50-slurm-pytorch.sh)

# enroot ships them switched off; the slurm project copies them on execute nodes. An existing one is left as it is.
install_hooks() {
    local hook installed=0 missing=0
    for hook in "${HOOKS[@]}"; do
        if [[ -x "${ACTIVE}/${hook}" ]]; then
            continue
        elif [[ -r "${SHIPPED}/${hook}" ]]; then
            cf_write "${ACTIVE}/${hook}" 0755 <"${SHIPPED}/${hook}"
            installed=$((installed + 1))
        else
            cf_warn "enroot does not ship ${hook}; multi-node jobs in containers need it"
            missing=$((missing + 1))
        fi
    done
    cf_outcome "${installed} installed, ${missing} missing, $((${#HOOKS[@]} - installed - missing)) were there"
}

check_gpu_tools() {
    if [[ ! -e "${CF_ROOT}/dev/nvidia0" ]]; then
        cf_outcome "no NVIDIA GPU"
    elif command -v nvidia-container-cli >/dev/null; then
        cf_outcome "nvidia-container-cli is there"
    else
        cf_warn "nvidia-container-cli is missing: containers on this node see no GPU; use an HPC image or install libnvidia-container-tools"
        cf_outcome "missing"
    fi
}

main() {
    local role
    if [[ ! -d "${CF_ROOT}/etc/enroot" ]]; then
        cf_log "enroot is not installed, no hooks to check"
        return
    fi
    cf_role
    role="${REPLY}"
    # An unknown role gets them too: a hook without a container does nothing.
    if [[ "${role}" != scheduler ]]; then
        cf_step "enroot hooks" install_hooks
        cf_step "NVIDIA container tools" check_gpu_tools
    else
        cf_log "containers do not run on the scheduler, no hooks needed"
    fi
}

cf_main main "$@"
