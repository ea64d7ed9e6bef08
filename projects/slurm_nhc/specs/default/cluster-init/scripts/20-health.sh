#!/usr/bin/env bash
# On nodes that run jobs: the engine, the checks of this VM size, and the units that run them.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=blobs.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/blobs.sh"
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=vm_size.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/vm_size.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/slurm_nhc"
readonly CONF="${CF_CONF_DIR}/nhc"
readonly UNITS="${CF_ROOT}/etc/systemd/system"
readonly GUARD=(guard.sh guard-rule.sh guard.tsv strikes.sh)
readonly DEEP=cycleforge-health-deep.service
readonly TIMER=cycleforge-health.timer IDLE=cycleforge-health-idle.timer
readonly DROP_IN=slurmd.service.d/20-cycleforge-slurm_nhc.conf JOIN=slurmd.service.d/25-cycleforge-join.conf
readonly SCRIPTS=(cycleforge.sh health.sh engine.sh runner.sh results.sh verdicts.sh tools.sh standing.sh drain.sh
    idle.sh settle.sh checks.sh checks-node.sh checks-infiniband.sh smi.sh checks-gpu.sh checks-gpu-fabric.sh
    checks-nvlink.sh checks-mig.sh kernel-log.sh kernel-log.awk checks-xid.sh xids-read.awk xids-judge.awk xids.tsv
    checks-deep.sh checks-fabric.sh checks-dcgm.sh checks-nccl.sh checks-topology.sh container.sh checks-amd.sh amd-read.awk
    amd-messages.tsv checks-rocm.sh checks-stream.sh join.sh)
# A check with its figures. The engine evaluates these lines, so nothing else may come out of a node attribute.
readonly CHECK_LINE="^[a-z][a-z0-9_]*( [A-Za-z0-9_]+=([A-Za-z0-9_.,:/+@=-]*|'[^'[:cntrl:]]*'))*$"
SIZE="" SIZE_KNOWN=true QUICK_CHECKS="" DEEP_CHECKS="" DEEP_S=0

# one_of KEY DEFAULT WORD...: a node attribute that is one of a few words, in REPLY.
one_of() {
    local -r key="$1" default="$2"
    local word
    shift 2
    cf_attribute "${key}" "${default}"
    for word in "$@"; do
        if [[ "${REPLY}" == "${word}" ]]; then return; fi
    done
    cf_die "attribute ${key} is '${REPLY}', expected one of: $*" "" "correct it in the definition and build again"
}

# results_folder: where a copy of each result goes, in REPLY; empty when the definition switches it off.
results_folder() {
    cf_attribute cycleforge.health.results /sched/cycleforge-health
    if [[ "${REPLY}" == off ]]; then REPLY=""; else cf_plain_path cycleforge.health.results; fi
}

# LBNL NHC of the image as it is, otherwise the pinned one of the locker. Without both the built-in runner reads the same
# configuration.
install_engine() {
    local name blob="" blob_version="" version
    if [[ -s "${CF_ROOT}/usr/sbin/nhc" && -d "${CF_ROOT}/etc/nhc/scripts" ]]; then
        cf_outcome "LBNL NHC of the image"
        return
    fi
    while IFS=$'\t' read -r name version _; do
        if [[ "${name}" == nhc-* ]]; then blob="${name}" blob_version="${version}"; fi
    done <"${FILES}/blobs.tsv"
    if cf_blob "${blob}" "${CF_STATE_DIR}/blobs"; then
        cf_unpack_blob "${REPLY}" "${TARGET}/nhc"
        cf_write "${TARGET}/nhc.version" 0644 <<<"${blob_version}"
        cf_outcome "LBNL NHC ${blob_version}"
    else
        cf_warn "LBNL NHC is not on this node: the built-in runner does our checks, site checks in NHC's format do not run"
        cf_outcome "built in"
    fi
}

# common_checks NODES: the project's own checks for every node, for those with GPUs of nvidia or amd, of an unknown size.
common_checks() {
    local nodes line source
    while IFS=$'\t' read -r nodes line source; do
        if [[ "${nodes}" == "$1" ]]; then printf '# %s\n* || cycleforge %s\n' "${source}" "${line}"; fi
    done <"${FILES}/common_checks.tsv"
}

# checks_of_size KEY: what an attribute has for this VM size, each check below its source, in REPLY; 1 if it has nothing.
checks_of_size() {
    local -r key="$1"
    local place record text=""
    cf_size_records "${key}" "${SIZE}"
    if [[ "${CF_SIZE_KNOWN}" == false ]]; then return 1; fi
    for place in "${!CF_RECORDS[@]}"; do
        record="${CF_RECORDS[${place}]}"
        if [[ "${record}" == "use "@(nvidia|amd) ]]; then
            text+="$(common_checks "${record#use }")"$'\n'
        elif [[ "${record}" =~ ${CHECK_LINE} && ! "${CF_SOURCES[${place}]}" =~ [[:cntrl:]] ]]; then
            text+="# ${CF_SOURCES[${place}]}"$'\n'"* || cycleforge ${record}"$'\n'
        else
            cf_warn "attribute ${key} holds what is no check, '${record:0:60}': its figures are not used"
            return 1
        fi
    done
    REPLY="${text}"
}

read_figures() {
    cf_vm_size
    SIZE="${REPLY}" SIZE_KNOWN=true QUICK_CHECKS="" DEEP_CHECKS=""
    if checks_of_size cycleforge.vm_size.quick; then QUICK_CHECKS="${REPLY}"; else SIZE_KNOWN=false; fi
    if checks_of_size cycleforge.vm_size.deep; then DEEP_CHECKS="${REPLY}"; else SIZE_KNOWN=false; fi
    if [[ "${SIZE_KNOWN}" == false ]]; then
        cf_warn "VM size '${SIZE}' has no figures: only checks that need none can pass, the rest is reported"
        QUICK_CHECKS="$(common_checks unknown)"$'\n' DEEP_CHECKS=""
    fi
    cf_outcome "${SIZE}, known: ${SIZE_KNOWN}"
}

write_settings() {
    local resume unmeasured idle_deep_h results guard strikes strikes_h
    cf_attribute_bool cycleforge.health.resume true
    resume="${REPLY}"
    one_of cycleforge.health.unmeasured report report drain
    unmeasured="${REPLY}"
    cf_attribute_int cycleforge.health.deep_s 600 0 900
    DEEP_S="${REPLY}"
    cf_attribute_int cycleforge.health.idle_deep_h 24 0 8760
    idle_deep_h="${REPLY}"
    results_folder
    results="${REPLY}"
    cf_attribute_bool cycleforge.health.guard true
    guard="${REPLY}"
    cf_attribute_int cycleforge.health.strikes 3 0 100
    strikes="${REPLY}"
    cf_attribute_int cycleforge.health.strikes_h 24 1 8760
    strikes_h="${REPLY}"
    cf_write "${CF_CONF_DIR}/health.conf" 0644 <<CONF
vm_size=${SIZE}
size_known=${SIZE_KNOWN}
resume=${resume}
unmeasured=${unmeasured}
deep_s=${DEEP_S}
idle_deep_h=${idle_deep_h}
results=${results}
guard=${guard}
strikes=${strikes}
strikes_h=${strikes_h}
CONF
    cf_outcome_file "${SIZE}"
}

# What the engine reads first.
start_of_checks() {
    # shellcheck disable=SC2016 # the engine expands it
    printf '%s\n' "# Written by CycleForge (slurm_nhc) for ${SIZE}. Figures have their unit in the name; null: nobody published one." \
        '* || . "${CYCLEFORGE_CHECKS:-/opt/cycleforge/slurm_nhc/checks.sh}"'
}

write_checks() {
    local mounts site site_policy image_policy quick deep changed
    cf_attribute cycleforge.mounts ""
    mounts="$(tr -s ', ' ',' <<<"${REPLY}")"
    mounts="${mounts#,}"
    mounts="${mounts%,}"
    if [[ ! "${mounts}" =~ ^(/[A-Za-z0-9._/-]+(,/[A-Za-z0-9._/-]+)*)?$ ]]; then
        cf_die "attribute cycleforge.mounts is '${REPLY}', expected absolute paths separated by spaces"
    fi
    cf_attribute_path cycleforge.health.site_checks ""
    site="${REPLY}"
    one_of cycleforge.health.site_policy report report drain
    site_policy="${REPLY}"
    one_of cycleforge.health.nhc report off report drain
    image_policy="${REPLY}"
    # The mounts come before what may use up the time of a run.
    quick="$(start_of_checks)"$'\n'
    if [[ -n "${mounts}" ]]; then quick+="# of this cluster"$'\n'"* || cycleforge mounts paths=${mounts}"$'\n'; fi
    quick+="$(common_checks every)"$'\n'"${QUICK_CHECKS%$'\n'}"
    if [[ -n "${site}" ]]; then quick+=$'\n'"* || cycleforge site file=${site} policy=${site_policy}"; fi
    deep="$(start_of_checks)"$'\n'"${DEEP_CHECKS}* || cycleforge image_nhc policy=${image_policy}"
    cf_write "${CONF}/quick.conf" 0644 <<<"${quick}"
    changed="${CF_CHANGED}"
    cf_write "${CONF}/deep.conf" 0644 <<<"${deep}"
    cf_outcome "$(grep -c cycleforge\  <<<"${quick}") quick, $(grep -c cycleforge\  <<<"${deep}") deep," \
        "mounts ${mounts:-none}, $((changed + CF_CHANGED)) of 2 files changed"
}

install_units() {
    local changed interval
    cf_attribute_int cycleforge.health.interval_s 300 60 86400
    interval="${REPLY}"
    cf_install_files "${FILES}" "${TARGET}" "${SCRIPTS[@]}" "${GUARD[@]}"
    changed="${CF_CHANGED}"
    cf_unit cycleforge-health.service <"${FILES}/cycleforge-health.service"
    changed=$((changed + CF_CHANGED))
    cf_unit "${JOIN}" <"${FILES}/slurmd-join.conf"
    changed=$((changed + CF_CHANGED))
    cf_unit "${TIMER}" <<CONF
# CycleForge (slurm_nhc): quick health checks every ${interval} s, on nodes of one cluster not at the same moment.
[Unit]
Description=CycleForge quick health checks

[Timer]
OnActiveSec=90
OnUnitActiveSec=${interval}
RandomizedDelaySec=30

[Install]
WantedBy=timers.target
CONF
    cf_outcome "every ${interval} s, $((changed + CF_CHANGED)) files changed"
}

start_timer() {
    cf_own_unit "${TIMER}" "${UNITS}/${TIMER}"
    cf_outcome_file "${TIMER}"
}

# The deep checks run here, while slurmd is not started yet, and at later boots before it. A failed verdict does not
# fail the converge: the node joins, takes no job, and shows its reason in Slurm.
run_deep() {
    local -r result="${CF_STATE_DIR}/health/deep.json"
    cf_unit "${DEEP}" <"${FILES}/${DEEP}"
    cf_unit "${DROP_IN}" <"${FILES}/slurmd-slurm_nhc.conf"
    cf_own_unit "${DEEP}" "${TARGET}/checks-deep.sh:${TARGET}/checks-nccl.sh:${TARGET}/checks-fabric.sh:${TARGET}/checks-rocm.sh:${TARGET}/checks-stream.sh:${CONF}/deep.conf:${CF_CONF_DIR}/health.conf:${UNITS}/${DEEP}"
    if [[ -r "${result}" && "$(<"${result}")" =~ \"verdict\":\ \"([a-z]+)\",$'\n' ]]; then cf_outcome "${BASH_REMATCH[1]}"; fi
}

# Asks every ten minutes whether the node is idle and its last deep run is old enough.
watch_idle() {
    cf_unit cycleforge-health-idle.service <"${FILES}/cycleforge-health-idle.service"
    cf_unit "${IDLE}" <"${FILES}/${IDLE}"
    cf_own_unit "${IDLE}" "${UNITS}/${IDLE}"
    cf_outcome_file "${IDLE}"
}

drop_deep() {
    local changed
    cf_drop_unit "${DEEP}" "${DEEP}" "${DROP_IN}"
    changed="${CF_CHANGED}"
    cf_drop_unit "${IDLE}" "${IDLE}" cycleforge-health-idle.service
    CF_CHANGED=$((changed + CF_CHANGED))
    cf_outcome "${CF_CHANGED} files removed"
}

drop_all() {
    local changed
    cf_drop_unit "${TIMER}" "${TIMER}" cycleforge-health.service "${JOIN}"
    changed="${CF_CHANGED}"
    drop_deep
    changed=$((changed + CF_CHANGED))
    # The job hooks of the scheduler look for this file.
    cf_remove "${TARGET}/health.sh"
    cf_outcome "$((changed + CF_CHANGED)) files removed"
}

main() {
    cf_role
    if [[ "${REPLY}" == scheduler || "${REPLY}" == login ]]; then
        cf_log "no jobs run on a ${REPLY} node, no health checks"
        return
    fi
    cf_attribute_bool cycleforge.health.enabled true
    if [[ "${REPLY}" == false ]]; then
        cf_step "health checks off" drop_all
        return
    fi
    cf_step "health engine" install_engine
    cf_step "figures of the VM size" read_figures
    cf_step "health settings" write_settings
    cf_step "health checks" write_checks
    cf_step "health units" install_units
    cf_step "health timer" start_timer
    if ((DEEP_S > 0)); then
        cf_step "deep checks" run_deep
        cf_step "deep checks on idle nodes" watch_idle
    else
        cf_step "deep checks off" drop_deep
    fi
}

cf_main main "$@"
