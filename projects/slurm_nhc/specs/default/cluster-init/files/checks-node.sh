#!/usr/bin/env bash
# Processors, memory, local disks, mounts, Ethernet. Sourced by checks.sh.

# threads=N sockets=N: fewer than the VM size has. One process for both, the file is long.
check_cpu() {
    local threads="" sockets=""
    read -r threads sockets < <(awk '/^processor/ { n++ } /^physical id/ { s[$4] = 1 }
        END { for (id in s) k++; print n + 0, k + 0 }' "${CF_ROOT}/proc/cpuinfo" 2>/dev/null) || true
    judge cpu_threads "${threads}" ge "${GIVEN[threads]:-}" threads
    if [[ -n "${GIVEN[sockets]:-}" ]]; then judge cpu_sockets "${sockets}" ge "${GIVEN[sockets]}" sockets; fi
}

# meminfo KEY: KiB in REPLY, empty when /proc/meminfo does not have it.
meminfo() {
    local name value
    REPLY=""
    while read -r name value _; do
        if [[ "${name}" == "$1:" ]]; then
            REPLY="${value}"
            return
        fi
    done <"${CF_ROOT}/proc/meminfo" || true
}

# expected_kib=N tolerance_percent=N: the tolerance is a share of the actual size, as in the source of the figure. More
# memory than expected is no fault.
check_memory() {
    local -r expected="${GIVEN[expected_kib]:-}" tolerance="${GIVEN[tolerance_percent]:-}"
    meminfo MemTotal
    if [[ ! "${expected}" =~ ^[0-9]+$ || ! "${tolerance}" =~ ^[0-9]+$ ]]; then
        record no_baseline memory_total "${REPLY}" "" "" KiB ""
        return
    fi
    judge memory_total "${REPLY}" ge "$((expected * 100 / (100 + tolerance)))" KiB fail "${expected} KiB less ${tolerance} %"
}

# max_kib=N: swap is somebody's decision, so more of it is a warning.
check_swap() {
    meminfo SwapTotal
    judge swap_total "${REPLY}" le "${GIVEN[max_kib]:-}" KiB warn
}

# warn_at=N: processes of jobs count too, so a high load is a warning.
check_load() {
    read_line "${CF_ROOT}/proc/loadavg"
    judge load_1min "${REPLY%% *}" lt "${GIVEN[warn_at]:-}" processes warn
}

# count=N: fewer fail. documented=N: no health source confirms this count, so fewer are reported and drain nothing.
check_nvme_disks() {
    local path count=0
    for path in "${CF_ROOT}"/sys/block/nvme*n*; do
        [[ -e "${path}" ]] || continue
        read_line "${path}/device/model"
        # Remote disks behind an NVMe controller are not the VM's local disks.
        if [[ "${REPLY}" != "MSFT NVMe Accelerator"* ]]; then count=$((count + 1)); fi
    done
    if [[ -n "${GIVEN[count]:-}" ]]; then
        judge nvme_disks "${count}" ge "${GIVEN[count]}" disks
    elif [[ -n "${GIVEN[documented]:-}" ]]; then
        judge nvme_disks "${count}" ge "${GIVEN[documented]}" disks warn
    fi
}

# mount_entry PATH: source and options of the last mount at this path in MOUNT_SOURCE and REPLY; empty when there is none.
MOUNT_SOURCE=""
mount_entry() {
    local source path options
    REPLY="" MOUNT_SOURCE=""
    while read -r source path _ options _; do
        if [[ "${path}" == "$1" ]]; then
            REPLY="${options}"
            MOUNT_SOURCE="${source}"
        fi
    done <"${CF_ROOT}/proc/mounts" || true
}

# check_one_mount CHECK PATH [write]: mounted, writable, answering; `write` also makes and removes a file.
check_one_mount() {
    local -r check="$1" path="$2" write="${3:-}"
    local code=0
    mount_entry "${path}"
    if [[ -z "${REPLY}" ]]; then
        record fail "${check}" "" "" "" "" "${path} is not mounted"
        return
    elif [[ ",${REPLY}," != *,rw,* ]]; then
        record fail "${check}" "" "" "" "" "${path} is mounted read-only"
        return
    fi
    if [[ -n "${write}" ]]; then
        # shellcheck disable=SC2016 # the inner shell expands it
        run_tool 5 bash -c 'file="$(mktemp "$1/.cycleforge.XXXXXX")" && rm -f "${file}"' write "${CF_ROOT}${path}" || code=$?
    else
        run_tool 5 stat --file-system "${CF_ROOT}${path}" || code=$?
    fi
    case "${code}" in
        0) record pass "${check}" "" "" "" "" "${path}" ;;
        124) record fail "${check}" "" "" "" "" "${path} does not answer within 5 s" ;;
        "${OUT_OF_TIME}")
            why_not "${code}" "${path}"
            not_measured "${check}" "${REPLY}"
            ;;
        *) record fail "${check}" "" "" "" "" "${path} refuses ${write:-stat}: ${OUTPUT:0:80}" ;;
    esac
}

# The scratch file system of misc_ndv4, and the RAID array below it. Only on nodes where that project mounts the disks.
check_nvme_scratch() {
    local -r state="${CF_STATE_DIR}/nvme.state"
    local key value path="" expected=0 mounted=false
    if [[ ! -r "${state}" ]]; then return 0; fi
    while IFS='=' read -r key value; do
        case "${key}" in
            mount_point) path="${value}" ;;
            expected_disks) expected="${value}" ;;
            mounted) mounted="${value}" ;;
        esac
    done <"${state}"
    if [[ "${expected}" == 0 && "${mounted}" != true ]]; then return 0; fi
    check_one_mount nvme_mount "${path}" write
    if [[ "${MOUNT_SOURCE}" == /dev/md* ]]; then check_array "${MOUNT_SOURCE}" "${expected}"; fi
}

# check_array DEVICE DISKS: state and member count from sysfs; `/dev/md/name` is a link to the number that counts.
check_array() {
    local array
    array="$(readlink -f "${CF_ROOT}$1" || true)"
    array="${array##*/}"
    local -r folder="${CF_ROOT}/sys/block/${array}/md"
    read_line "${folder}/array_state"
    case "${REPLY}" in
        clean | active | active-idle | write-pending) record pass nvme_array_state "" "" "" "" "${array} ${REPLY}" ;;
        "") not_measured nvme_array_state "${array} has no md/array_state" ;;
        *) record fail nvme_array_state "" "" "" "" "${array} is ${REPLY}" ;;
    esac
    if [[ "$2" != 0 ]]; then
        read_line "${folder}/raid_disks"
        judge nvme_array_disks "${REPLY}" ge "$2" disks fail "${array}"
    fi
}

# paths=/a,/b: the shared file systems that the definition mounts, never a list that some other image or cluster had.
check_mounts() {
    local path
    local -a paths=()
    IFS=',' read -r -a paths <<<"${GIVEN[paths]:-}"
    for path in "${paths[@]}"; do check_one_mount mount "${path}"; done
}

# used_percent_max=N inodes_percent_max=N: a full disk is mostly somebody's files, so it is a warning.
check_disk_space() {
    local used="" inodes="" code=0
    run_tool 5 df --output=pcent,ipcent "${CF_ROOT}/" || code=$?
    if ((code != 0)); then
        why_not "${code}" df
        not_measured system_disk "${REPLY}"
        return
    fi
    read -r used inodes <<<"${OUTPUT##*$'\n'}" || true
    judge system_disk_used "${used%\%}" le "${GIVEN[used_percent_max]:-}" % warn
    # A file system without a table of inodes prints "-".
    if [[ "${inodes}" == *% ]]; then judge system_disk_inodes "${inodes%\%}" le "${GIVEN[inodes_percent_max]:-}" % warn; fi
}

# device=NAME carrier_losses_max=N: the node is reached through it, so what is wrong here is a warning.
check_ethernet() {
    local -r device="${GIVEN[device]:-eth0}"
    local -r folder="${CF_ROOT}/sys/class/net/${device}"
    read_line "${folder}/operstate"
    if [[ "${REPLY}" == up ]]; then
        record pass ethernet "" "" "" "" "${device} up"
    else
        record warn ethernet "" "" "" "" "${device} is ${REPLY:-missing}"
        return
    fi
    read_line "${folder}/carrier_down_count"
    if [[ -n "${REPLY}" ]]; then judge ethernet_carrier_losses "${REPLY}" le "${GIVEN[carrier_losses_max]:-}" losses warn "${device}"; fi
}

# file=PATH policy=report|drain: further checks of the site, in the format of LBNL NHC, run by it as they stand.
check_site() {
    run_nhc_file site_checks "${GIVEN[file]:-}" "${GIVEN[policy]:-report}" 20
}

# run_nhc_file CHECK CONF POLICY SECONDS: another configuration as a run of its own, because NHC tells a check that does
# not exist from one that passes only when it stops at the first failure. MARK_OFFLINE=0: draining is done here.
run_nhc_file() {
    local -r check="$1" conf="$2" policy="$3" limit_s="$4"
    local code=0 finding severity=warn
    if [[ -z "${conf}" ]]; then return 0; fi
    if [[ ! -s "${CF_ROOT}${conf}" ]]; then
        not_measured "${check}" "${conf} is missing or empty"
        return
    fi
    if [[ -z "${CYCLEFORGE_NHC:-}" ]]; then
        not_measured "${check}" "${conf} needs LBNL NHC, which is not on this node"
        return
    fi
    run_tool "${limit_s}" env --unset=NHC_DETACHED bash "${CYCLEFORGE_NHC}" -n "cycleforge_${check}" -c "${CF_ROOT}${conf}" \
        "INCDIR=${CYCLEFORGE_NHC_SCRIPTS}" "HELPERDIR=${CYCLEFORGE_NHC_SCRIPTS}" MARK_OFFLINE=0 DETACHED_MODE=0 FORCE_SETSID=0 \
        TIMEOUT=0 LOGFILE=- NHC_RM=slurm || code=$?
    if ((code == 0)); then
        record pass "${check}" "" "" "" "" "${conf}"
        return
    elif ((code == 124 || code == OUT_OF_TIME)); then
        why_not "${code}" nhc
        not_measured "${check}" "${REPLY}"
        return
    fi
    finding="${OUTPUT##*Health check failed:  }"
    finding="${finding%%$'\n'*}"
    if [[ "${policy}" == drain ]]; then severity=fail; fi
    record "${severity}" "${check}" "" "" "" "" "${finding:-exit code ${code}}"
}
