#!/usr/bin/env bash
# MIG: every NVIDIA GPU of the node in equal slices of one profile, at every boot as cycleforge-mig.service, before slurmd.
# Slices do not survive a reboot, MIG mode survives one only on A100 and A30. Slurm is told of a fixed number of device
# files, which are links that exist only when every slice does: with anything else slurmd does not start, and no job
# gets a slice that is not there, or a whole GPU in place of one.
#   mig.sh          makes the slices            mig.sh check    whether they are there (slurmd's ExecStartPre)
# Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${BASH_SOURCE[0]%/*}/cycleforge.sh"

CF_PROJECT=misc_ndv4
# One call, and all calls together; the unit's own limit is above. To make 56 slices takes a minute.
readonly CALL_S="${CYCLEFORGE_CALL_S:-120}" TOTAL_S=540
readonly LINKS="${CF_ROOT}/dev/cycleforge"
readonly DEVICES=/dev/nvidia-caps/nvidia-cap
readonly CAPABILITIES="${CF_ROOT}/proc/driver/nvidia/capabilities"
readonly TABLE="${CF_ROOT}/run/cycleforge/mig.tsv"
# Holds the boot id of the boot that asked for a reboot, so that a node reboots once and not for ever.
readonly REBOOTED="${CF_STATE_DIR}/mig.reboot"

# Index of each GPU, and its MIG mode: current, then pending.
declare -a GPUS=()
declare -A CURRENT=() PENDING=()
# "GPU/place" of each slice to its UUID, and GPU to how many slices it has, of any profile and of the wanted one.
declare -A UUID=() ALL=() FITTING=()

smi() {
    local -r left=$((TOTAL_S - SECONDS))
    if ((left <= 0)); then return 124; fi
    timeout --kill-after=5 $((left < CALL_S ? left : CALL_S)) nvidia-smi "$@"
}

# answer WORD...: what nvidia-smi prints, in REPLY; without an answer the node gets no slices.
answer() {
    local code=0
    REPLY="$(smi "$@" 2>&1)" || code=$?
    if ((code != 0)); then
        cf_die "nvidia-smi $* ended with exit code ${code}: ${REPLY:0:200}" "this node gets no MIG slices and no jobs" \
            "read 'nvidia-smi -q' on the node; replace it if a GPU is broken"
    fi
}

read_mode() {
    local index current pending
    GPUS=() CURRENT=() PENDING=()
    answer --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv,noheader
    while IFS=', ' read -r index current pending; do
        [[ "${index}" =~ ^[0-9]+$ ]] || continue
        GPUS+=("${index}")
        CURRENT["${index}"]="${current}" PENDING["${index}"]="${pending}"
    done <<<"${REPLY}"
    if ((${#GPUS[@]} != CF_CONF[gpus])); then
        cf_die "${#GPUS[@]} GPUs answer, the VM size has ${CF_CONF[gpus]}" "Slurm was told of the slices of all of them" \
            "look at the health report of the node, then replace it"
    fi
}

# GPUs whose mode is not on, in REPLY.
without_mode() {
    local gpu
    REPLY=""
    for gpu in "${GPUS[@]}"; do
        if [[ "${CURRENT[${gpu}]}" != Enabled ]]; then REPLY+="${REPLY:+ }${gpu}"; fi
    done
}

# A100 and A30 need a reset of the GPU before the mode counts, which a virtual machine often cannot do by itself: the mode
# stays "pending" and a reboot makes it count. Later GPUs need neither. What nvidia-smi says of it differs by driver, so
# only the mode that it then reports decides.
enable_mode() {
    local gpu wanted said=""
    read_mode
    without_mode
    wanted="${REPLY}"
    for gpu in ${wanted}; do
        if [[ "${CURRENT[${gpu}]}" != Disabled ]]; then
            cf_die "GPU ${gpu} has no MIG mode, nvidia-smi says '${CURRENT[${gpu}]}'" "" \
                "remove mig_profile from the partition, or choose a VM size whose GPUs have MIG"
        fi
        if [[ "${PENDING[${gpu}]}" != Enabled ]]; then said="$(smi -i "${gpu}" -mig 1 2>&1)" || true; fi
    done
    if [[ -n "${wanted}" ]]; then read_mode; fi
    without_mode
    for gpu in ${REPLY}; do
        if [[ "${PENDING[${gpu}]}" != Enabled ]]; then
            cf_die "MIG mode of GPU ${gpu} cannot be switched on: ${said:0:200}" "this node gets no MIG slices and no jobs" \
                "read 'nvidia-smi -q -d MIG' on the node"
        fi
        smi -i "${gpu}" --gpu-reset >/dev/null 2>&1 || true
    done
    if [[ -n "${REPLY}" ]]; then read_mode; fi
    without_mode
    if [[ -n "${REPLY}" ]]; then reboot_once "${REPLY}"; fi
    cf_remove "${REBOOTED}"
    cf_outcome "on for ${#GPUS[@]} GPUs, $(wc -w <<<"${wanted}") switched"
}

# reboot_once GPUS: the first boot that needs it asks for a reboot; a second one says what is wrong instead.
reboot_once() {
    local boot
    boot="$(cat "${CF_ROOT}/proc/sys/kernel/random/boot_id" 2>/dev/null || true)"
    if [[ -r "${REBOOTED}" && "$(<"${REBOOTED}")" != "${boot:-unknown}" ]]; then
        cf_die "MIG mode of GPU $1 is still pending after a reboot" "this node gets no MIG slices and no jobs" \
            "read 'nvidia-smi -q -d MIG' on the node; another program may hold the GPU"
    fi
    if [[ ! -r "${REBOOTED}" ]]; then
        cf_write "${REBOOTED}" 0644 <<<"${boot:-unknown}"
        systemctl --no-block reboot || cf_remove "${REBOOTED}"
    fi
    cf_die "MIG mode of GPU $1 is pending until a reboot" "the node reboots now, once" \
        "wait; if it does not come back by itself, restart the node"
}

# The rows of `nvidia-smi -L`; a slice is a line below its GPU.
read_slices() {
    local line gpu=""
    UUID=() ALL=() FITTING=()
    answer -L
    while IFS= read -r line; do
        if [[ "${line}" =~ ^GPU\ ([0-9]+): ]]; then
            gpu="${BASH_REMATCH[1]}" ALL["${BASH_REMATCH[1]}"]=0 FITTING["${BASH_REMATCH[1]}"]=0
        elif [[ -n "${gpu}" && "${line}" =~ ^[[:space:]]+MIG[[:space:]]+([^[:space:]]+)[[:space:]]+Device[[:space:]]+([0-9]+):[[:space:]]+\(UUID:[[:space:]]+([^\)]+)\) ]]; then
            ALL["${gpu}"]=$((${ALL["${gpu}"]} + 1))
            if [[ "${BASH_REMATCH[1]}" == "${CF_CONF[profile]}" ]]; then
                FITTING["${gpu}"]=$((${FITTING["${gpu}"]} + 1)) UUID["${gpu}/${BASH_REMATCH[2]}"]="${BASH_REMATCH[3]}"
            fi
        fi
    done <<<"${REPLY}"
}

is_divided() { [[ "${ALL[$1]:-0}" == "${CF_CONF[per_gpu]}" && "${FITTING[$1]:-0}" == "${CF_CONF[per_gpu]}" ]]; }

# Only a GPU whose slices are not exactly the wanted ones is touched: jobs may be running when a converge repeats this.
make_slices() {
    local gpu profiles made=0
    printf -v profiles "%*s" "${CF_CONF[per_gpu]}" ""
    profiles="${profiles// /${CF_CONF[profile]},}"
    read_slices
    for gpu in "${GPUS[@]}"; do
        if is_divided "${gpu}"; then continue; fi
        # Each fails where there is nothing to remove; what is in use stays, and then nothing can be made.
        smi mig -i "${gpu}" -dci >/dev/null 2>&1 || true
        smi mig -i "${gpu}" -dgi >/dev/null 2>&1 || true
        answer mig -i "${gpu}" -cgi "${profiles%,}" -C
        made=$((made + 1))
    done
    if ((made > 0)); then read_slices; fi
    for gpu in "${GPUS[@]}"; do
        if ! is_divided "${gpu}"; then
            cf_die "GPU ${gpu} has ${FITTING[${gpu}]:-0} slices of ${CF_CONF[profile]} and ${ALL[${gpu}]:-0} in all, expected ${CF_CONF[per_gpu]}" \
                "this node gets no MIG slices and no jobs" "read 'nvidia-smi -L' and 'nvidia-smi mig -lgi' on the node"
        fi
    done
    cf_outcome "${CF_CONF[per_gpu]} of ${CF_CONF[profile]} on ${#GPUS[@]} GPUs, ${made} divided anew"
}

# places: one line per slice, "GPU PLACE MINOR INSTANCE COMPUTE", from nvidia-smi's XML, where the number of the device
# file comes after the slices.
places() {
    awk '
        function value(line) { sub(/^[^>]*>/, "", line); sub(/<.*/, "", line); return line }
        /<gpu id=/ { gpu++; count = 0; minor = "" }
        /<mig_device>/ { inside = 1; index_of = instance = compute = "" }
        inside && /<index>/ { index_of = value($0) }
        inside && /<gpu_instance_id>/ { instance = value($0) }
        inside && /<compute_instance_id>/ { compute = value($0) }
        /<\/mig_device>/ { inside = 0; rows[count++] = index_of " MINOR " instance " " compute }
        /<minor_number>/ { minor = value($0) }
        /<\/gpu>/ {
            for (number = 0; number < count; number++) {
                row = rows[number]; sub(/MINOR/, minor, row); print gpu - 1, row
            }
        }'
}

# A job may use a slice when it may open the device file of its compute instance, so that is what Slurm hands out.
link_slices() {
    local gpu place minor instance compute number access cap rows="" next=0 places
    answer -q -x
    places="$(places <<<"${REPLY}" | sort -n -k1,1 -k2,2)"
    while read -r gpu place minor instance compute; do
        [[ -n "${UUID[${gpu}/${place}]:-}" ]] || continue
        access="${CAPABILITIES}/gpu${minor}/mig/gi${instance}/ci${compute}/access"
        number="$(sed -n 's/^DeviceFileMinor:[[:space:]]*//p' "${access}" 2>/dev/null || true)"
        if [[ ! "${number}" =~ ^[0-9]+$ ]]; then
            cf_die "the driver names no device file for slice ${place} of GPU ${gpu}" "${access} does not say it" \
                "read that file on the node"
        fi
        cap="${DEVICES}${number}"
        if [[ ! -e "${CF_ROOT}${cap}" ]]; then
            timeout --kill-after=5 60 nvidia-modprobe -f "${access#"${CF_ROOT}"}" >/dev/null 2>&1 || true
        fi
        if [[ ! -e "${CF_ROOT}${cap}" ]]; then
            cf_die "${cap} is missing" "nvidia-modprobe did not create it, so no job could use the slice" \
                "run 'nvidia-modprobe -f ${access#"${CF_ROOT}"}' on the node"
        fi
        ln -sfn "${cap}" "${LINKS}/mig${next}"
        rows+="${next}"$'\t'"${UUID[${gpu}/${place}]}"$'\t'"${gpu}"$'\n'
        next=$((next + 1))
    done <<<"${places}"
    if ((next != CF_CONF[gpus] * CF_CONF[per_gpu])); then
        cf_die "${next} slices have a device file, expected $((CF_CONF[gpus] * CF_CONF[per_gpu]))" "" \
            "read 'nvidia-smi -q -x' on the node"
    fi
    cf_write "${TABLE}" 0644 <<<"${rows%$'\n'}"
    cf_outcome "${next} device files"
}

# Without it a job could open the slices of others, and the numbers that Slurm gives jobs would count all slices.
demand_confinement() {
    if ! grep -q -i -E '^[[:space:]]*ConstrainDevices[[:space:]]*=[[:space:]]*yes' "${CF_ROOT}/etc/slurm/cgroup.conf"; then
        cf_die "cgroup.conf has no ConstrainDevices=yes" "jobs would share each other's slices" \
            "set it in /sched/<cluster>/cgroup.conf on the scheduler"
    fi
    cf_outcome "ConstrainDevices=yes"
}

check() {
    local number
    for ((number = 0; number < CF_CONF[gpus] * CF_CONF[per_gpu]; number++)); do
        if [[ ! -e "${CF_ROOT}$(readlink "${LINKS}/mig${number}" || echo /nowhere)" ]]; then
            cf_die "MIG slice ${number} of $((CF_CONF[gpus] * CF_CONF[per_gpu])) is missing, so slurmd does not start" \
                "'journalctl -u cycleforge-mig.service' has the reason" "correct it, then 'systemctl restart cycleforge-mig.service'"
        fi
    done
}

main() {
    cf_load_conf "${CF_CONF_DIR}/mig.conf"
    if [[ "${1:-}" == check ]]; then
        check
        return
    fi
    rm -rf "${LINKS}" "${TABLE}"
    mkdir -p "${LINKS}"
    cf_step "confinement of jobs" demand_confinement
    cf_step "MIG mode" enable_mode
    cf_step "MIG slices" make_slices
    cf_step "device files" link_slices
}

cf_main main "$@"
