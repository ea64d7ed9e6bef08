#!/usr/bin/env bash
# Persistence mode, clocks and device files of NVIDIA GPUs, at every boot as cycleforge-gpu.service, before slurmd.
# What a GPU does not support is logged and is no failure; a GPU that is broken is for the health checks to judge.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

CF_PROJECT=misc_ndv4
# A driver that hangs must not hold the boot.
smi() { timeout 60 nvidia-smi "$@"; }

# The driver creates nvidia-uvm on first use by root; a container without root cannot, and CUDA fails in it.
make_device_files() {
    if [[ -e "${CF_ROOT}/dev/nvidia-uvm" ]]; then
        cf_outcome "/dev/nvidia-uvm is there"
    elif command -v nvidia-modprobe >/dev/null && timeout 60 nvidia-modprobe -u -c=0; then
        cf_outcome "/dev/nvidia-uvm created"
    else
        cf_warn "/dev/nvidia-uvm is missing and nvidia-modprobe did not create it; CUDA in containers will fail"
        cf_outcome "failed"
    fi
}

set_persistence() {
    local listing index mode off=0 total=0
    if ! listing="$(smi --query-gpu=index,persistence_mode --format=csv,noheader)"; then
        cf_warn "nvidia-smi does not report the persistence mode"
        cf_outcome "not done"
        return
    fi
    while IFS=', ' read -r index mode; do
        [[ "${index}" =~ ^[0-9]+$ ]] || continue
        total=$((total + 1))
        if [[ "${mode}" == Disabled ]]; then off=$((off + 1)); fi
    done <<<"${listing}"
    if ((off == 0)); then
        cf_outcome "on for ${total} GPUs"
    elif smi -pm 1 >/dev/null; then
        cf_outcome "switched on for ${off} of ${total} GPUs"
    else
        cf_warn "nvidia-smi -pm 1 failed, persistence mode stays off for ${off} of ${total} GPUs"
        cf_outcome "failed"
    fi
}

# The maximum that each GPU itself reports; nothing is hard-coded. Newer drivers no longer have application clocks and
# answer with an error or "N/A"; such GPUs run at their maximum by themselves.
maximise_clocks() {
    local listing index max_memory now_memory max_graphics now_graphics
    local changed=0 kept=0 unsupported=0
    local -r fields=index,clocks.max.memory,clocks.applications.memory,clocks.max.graphics,clocks.applications.graphics
    if ! listing="$(smi --query-gpu="${fields}" --format=csv,noheader,nounits)"; then
        cf_outcome "this driver has no application clocks"
        return
    fi
    while IFS=', ' read -r index max_memory now_memory max_graphics now_graphics; do
        [[ "${index}" =~ ^[0-9]+$ ]] || continue
        if [[ ! "${max_memory} ${now_memory} ${max_graphics} ${now_graphics}" =~ ^[0-9]+\ [0-9]+\ [0-9]+\ [0-9]+$ ]]; then
            unsupported=$((unsupported + 1))
        elif ((now_memory >= max_memory && now_graphics >= max_graphics)); then
            kept=$((kept + 1))
        elif smi -i "${index}" -ac "${max_memory},${max_graphics}" >/dev/null; then
            changed=$((changed + 1))
        else
            unsupported=$((unsupported + 1))
        fi
    done <<<"${listing}"
    cf_outcome "maximum: ${changed} set, ${kept} were set, ${unsupported} do not support it"
}

set_clocks() {
    case "${CF_CONF[clocks]}" in
        max) maximise_clocks ;;
        default) cf_outcome "left as the driver sets them" ;;
        lock:*)
            if smi -lgc "${CF_CONF[clocks]#lock:},${CF_CONF[clocks]#lock:}" >/dev/null; then
                cf_outcome "graphics clock locked at ${CF_CONF[clocks]#lock:} MHz"
            else
                cf_warn "nvidia-smi -lgc ${CF_CONF[clocks]#lock:} failed; the clock is not locked"
                cf_outcome "failed"
            fi
            ;;
        *) cf_die "clocks '${CF_CONF[clocks]}' in gpu.conf, expected max, default or lock:<MHz>" ;;
    esac
}

main() {
    cf_load_conf "${CF_CONF_DIR}/gpu.conf"
    if [[ "${CF_CONF[vendor]}" == AMD ]]; then
        cf_log "AMD GPUs: nothing to set, ROCm's driver manages clocks and power states"
        return
    fi
    if ! command -v nvidia-smi >/dev/null; then
        if ((CF_CONF[expected_gpus] > 0)); then
            cf_warn "nvidia-smi is missing on a VM size with ${CF_CONF[expected_gpus]} GPUs: the image has no driver"
        else
            cf_log "no NVIDIA driver, nothing to do"
        fi
        return
    fi
    cf_step "device files" make_device_files
    if [[ "${CF_CONF[persistence]}" == true ]]; then cf_step "persistence mode" set_persistence; fi
    cf_step "GPU clocks" set_clocks
}

cf_main main "$@"
