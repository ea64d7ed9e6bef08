#!/usr/bin/env bash
# What containers need beside enroot itself: PMIx and PyTorch hooks, and NVIDIA's container tools on GPU nodes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly SHIPPED="${CF_ROOT}/usr/share/enroot/hooks.d"
readonly ACTIVE="${CF_ROOT}/etc/enroot/hooks.d"
readonly HOOKS=(50-slurm-pmi.sh 50-slurm-pytorch.sh)
readonly PROLOG=50-cycleforge-uvm.sh

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
    elif ! command -v nvidia-container-cli >/dev/null; then
        cf_warn "nvidia-container-cli is missing: containers on this node see no GPU; use an HPC image or install libnvidia-container-tools"
        cf_outcome "missing"
    elif timeout --kill-after=5 60 nvidia-container-cli info >/dev/null 2>&1; then
        cf_outcome "nvidia-container-cli works"
    else
        cf_warn "'nvidia-container-cli info' failed or did not end within 60 s: containers on this node may see no GPU; run it on the node"
        cf_outcome "does not work"
    fi
}

# The folder of job hooks is shared, so the scheduler writes it once for all nodes.
install_prolog() {
    # Slurm projects before 4.0 have no such folder.
    if [[ ! -d "${CF_ROOT}/etc/slurm/prolog.d" ]]; then
        cf_outcome "this slurm project has no prolog.d"
        return
    fi
    cf_slurm_hook prolog "${PROLOG}" "${CYCLECLOUD_SPEC_PATH}/files/prolog-uvm.sh"
    cf_outcome_file "${PROLOG}"
}

main() {
    local role
    cf_role
    role="${REPLY}"
    if [[ "${role}" == scheduler ]]; then
        cf_step "GPU device prolog" install_prolog
        cf_log "containers do not run on the scheduler, no hooks needed"
    elif [[ ! -d "${CF_ROOT}/etc/enroot" ]]; then
        cf_log "enroot is not installed, no hooks to check"
    else
        # An unknown role gets them too: a hook without a container does nothing.
        cf_step "enroot hooks" install_hooks
        cf_step "NVIDIA container tools" check_gpu_tools
    fi
}

cf_main main "$@"
