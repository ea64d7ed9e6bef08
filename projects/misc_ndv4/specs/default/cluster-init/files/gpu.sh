#!/usr/bin/env bash
# Persistence mode, clocks and device files of NVIDIA GPUs, at every boot as cycleforge-gpu.service, before slurmd, and
# again whenever the driver is loaded anew. What a GPU does not support is logged and is no failure; a GPU that is
# broken is for the health checks to judge.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

CF_PROJECT=misc_ndv4
# A driver that hangs must not hold the boot: one call, and all calls together. The unit's own limit is above.
readonly CALL_S="${CYCLEFORGE_CALL_S:-60}" TOTAL_S=240
# Clocks survive until a reboot or a reload of the driver; the record of what was set goes with the former.
readonly APPLIED="${CF_ROOT}/run/cycleforge/gpu.clocks"
# nvidia-smi's exit code for "not available on this GPU".
readonly NOT_SUPPORTED=3

# Index of each GPU that answers, and those whose persistence mode is off.
declare -a GPUS=() OFF=()

smi() {
    local -r left=$((TOTAL_S - SECONDS))
    if ((left <= 0)); then return 124; fi
    timeout --kill-after=5 $((left < CALL_S ? left : CALL_S)) nvidia-smi "$@"
}

# read_gpus: 1 when the driver does not answer or knows no GPU; what is wrong with it is in REPLY.
read_gpus() {
    local listing index mode code=0
    GPUS=() OFF=()
    listing="$(smi --query-gpu=index,persistence_mode --format=csv,noheader)" || code=$?
    case "${code}" in
        0) ;;
        124 | 137) REPLY="nvidia-smi does not answer within ${CALL_S} s" ;;
        *) REPLY="nvidia-smi ends with exit code ${code}: ${listing:0:100}" ;;
    esac
    if ((code != 0)); then return 1; fi
    while IFS=', ' read -r index mode; do
        [[ "${index}" =~ ^[0-9]+$ ]] || continue
        GPUS+=("${index}")
        if [[ "${mode}" == Disabled ]]; then OFF+=("${index}"); fi
    done <<<"${listing}"
    REPLY="nvidia-smi lists no GPU, it says '${listing:0:100}'"
    ((${#GPUS[@]} > 0))
}

look() {
    if ! read_gpus; then
        cf_warn "${REPLY}; nothing is set on this node"
        cf_outcome "not usable"
        return
    fi
    if ((CF_CONF[expected_gpus] > 0 && ${#GPUS[@]} < CF_CONF[expected_gpus])); then
        cf_warn "${#GPUS[@]} GPUs answer, the VM size has ${CF_CONF[expected_gpus]}"
    fi
    cf_outcome "${#GPUS[@]} answer"
}

# The driver creates nvidia-uvm on first use by root; a container without root cannot, and CUDA fails in it.
make_device_files() {
    if [[ -e "${CF_ROOT}/dev/nvidia-uvm" ]]; then
        cf_outcome "/dev/nvidia-uvm is there"
    elif command -v nvidia-modprobe >/dev/null && timeout --kill-after=5 "${CALL_S}" nvidia-modprobe -u -c=0; then
        cf_outcome "/dev/nvidia-uvm created"
    else
        cf_warn "/dev/nvidia-uvm is missing and nvidia-modprobe did not create it; CUDA in containers will fail"
        cf_outcome "failed"
    fi
}

# nvidia-smi asks the persistence daemon where it runs and sets the driver's own switch where not. Ubuntu's unit starts
# the daemon with the mode off, so its running alone proves nothing.
set_persistence() {
    local gpu daemon="without a daemon"
    local -r wanted="${#OFF[@]}"
    if systemctl is-active nvidia-persistenced.service >/dev/null; then daemon="by nvidia-persistenced"; fi
    for gpu in "${OFF[@]}"; do smi -i "${gpu}" -pm 1 >/dev/null || true; done
    if ((wanted > 0)) && ! read_gpus; then
        cf_warn "${REPLY}; whether persistence mode is on is not known"
        cf_outcome "not known"
    elif ((${#OFF[@]} > 0)); then
        cf_warn "persistence mode stays off for GPU ${OFF[*]}"
        cf_outcome "off for ${#OFF[@]} of ${#GPUS[@]} GPUs, ${daemon}"
    else
        cf_outcome "on for ${#GPUS[@]} GPUs, ${wanted} switched, ${daemon}"
    fi
}

# The maximum that each GPU itself reports; nothing is hard-coded. Newer drivers no longer have application clocks and
# answer with an error or "N/A"; such GPUs run at their maximum by themselves.
readonly MHZ='(0|[1-9][0-9]{0,5})'
maximise_clocks() {
    local listing index max_memory now_memory max_graphics now_graphics code=0
    local changed=0 kept=0 unsupported=0
    local -a refused=()
    local -r fields=index,clocks.max.memory,clocks.applications.memory,clocks.max.graphics,clocks.applications.graphics
    listing="$(smi --query-gpu="${fields}" --format=csv,noheader,nounits)" || code=$?
    if ((code != 0)) && [[ "${listing}" == *"not a valid field"* ]]; then
        cf_outcome "this driver has no application clocks, GPUs run at their maximum by themselves"
        return
    elif ((code != 0)); then
        cf_warn "nvidia-smi does not report clocks (exit code ${code}); they stay as they are"
        cf_outcome "not known"
        return
    fi
    while IFS=', ' read -r index max_memory now_memory max_graphics now_graphics; do
        [[ "${index}" =~ ^[0-9]+$ ]] || continue
        code=0
        if [[ ! "${max_memory} ${now_memory} ${max_graphics} ${now_graphics}" =~ ^${MHZ}\ ${MHZ}\ ${MHZ}\ ${MHZ}$ ]]; then
            code="${NOT_SUPPORTED}"
        elif ((now_memory >= max_memory && now_graphics >= max_graphics)); then
            kept=$((kept + 1))
            continue
        else
            smi -i "${index}" -ac "${max_memory},${max_graphics}" >/dev/null || code=$?
        fi
        case "${code}" in
            0) changed=$((changed + 1)) ;;
            "${NOT_SUPPORTED}") unsupported=$((unsupported + 1)) ;;
            *) refused+=("${index}") ;;
        esac
    done <<<"${listing}"
    if ((${#refused[@]} > 0)); then cf_warn "application clocks were refused by GPU ${refused[*]}; the others are set"; fi
    cf_outcome "maximum: ${changed} set, ${kept} were set, ${unsupported} do not support it, ${#refused[@]} refused"
}

lock_clocks() {
    local -r mhz="$1"
    local gpu
    local -a refused=()
    for gpu in "${GPUS[@]}"; do
        smi -i "${gpu}" -lgc "${mhz},${mhz}" >/dev/null || refused+=("${gpu}")
    done
    if ((${#refused[@]} > 0)); then cf_warn "the clock of ${mhz} MHz was refused by GPU ${refused[*]}"; fi
    cf_outcome "graphics clock locked at ${mhz} MHz on $((${#GPUS[@]} - ${#refused[@]})) of ${#GPUS[@]} GPUs"
}

# What a former policy of this boot has set goes before the new one is applied.
undo_former_policy() {
    local former
    former="$(cat "${APPLIED}" 2>/dev/null || true)"
    if [[ "${former}" == "${CF_CONF[clocks]}" ]]; then return; fi
    case "${former}" in
        lock:*) smi -rgc >/dev/null || cf_warn "nvidia-smi -rgc failed; the clock of ${former#lock:} MHz stays locked until a reboot" ;;
        max) if [[ "${CF_CONF[clocks]}" == default ]]; then smi -rac >/dev/null || cf_warn "nvidia-smi -rac failed"; fi ;;
    esac
}

set_clocks() {
    undo_former_policy
    case "${CF_CONF[clocks]}" in
        max) maximise_clocks ;;
        default) cf_outcome "left as the driver sets them" ;;
        lock:*) lock_clocks "${CF_CONF[clocks]#lock:}" ;;
        *) cf_die "clocks '${CF_CONF[clocks]}' in gpu.conf, expected max, default or lock:<MHz>" ;;
    esac
    cf_write "${APPLIED}" 0644 <<<"${CF_CONF[clocks]}"
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
    cf_step "GPUs" look
    if ((${#GPUS[@]} == 0)); then return; fi
    cf_step "device files" make_device_files
    if [[ "${CF_CONF[persistence]}" == true ]]; then cf_step "persistence mode" set_persistence; fi
    cf_step "GPU clocks" set_clocks
}

cf_main main "$@"
