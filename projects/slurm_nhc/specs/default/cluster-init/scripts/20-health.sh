#!/usr/bin/env bash
# On nodes that run jobs: the health checks, their figures and their units.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly FILES="${CYCLECLOUD_SPEC_PATH}/files"
readonly TARGET="${CF_ROOT}/opt/cycleforge/slurm_nhc"
readonly UNITS="${CF_ROOT}/etc/systemd/system"
readonly DEEP=cycleforge-health-deep.service
readonly TIMER=cycleforge-health.timer
readonly SCRIPTS=(cycleforge.sh health.sh judge.sh drain.sh checks-node.sh checks-infiniband.sh checks-gpu.sh checks-deep.sh vm_sizes.tsv)

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

write_configuration() {
    local size mounts resume unmeasured deep_s nhc
    cf_vm_size
    size="${REPLY}"
    cf_load_figures "${FILES}/vm_sizes.tsv" "${size}"
    if [[ "${CF_SIZE_KNOWN}" == false ]]; then
        cf_warn "VM size '${size}' has no figures: only checks that need none can pass, the rest is reported"
    fi
    cf_attribute cycleforge.mounts ""
    mounts="$(tr -s ', ' ',' <<<"${REPLY}")"
    mounts="${mounts#,}"
    mounts="${mounts%,}"
    if [[ ! "${mounts}" =~ ^(/[A-Za-z0-9._/-]+(,/[A-Za-z0-9._/-]+)*)?$ ]]; then
        cf_die "attribute cycleforge.mounts is '${REPLY}', expected absolute paths separated by spaces"
    fi
    cf_attribute_bool cycleforge.health.resume true
    resume="${REPLY}"
    one_of cycleforge.health.unmeasured report report drain
    unmeasured="${REPLY}"
    one_of cycleforge.health.nhc report off report drain
    nhc="${REPLY}"
    cf_attribute_int cycleforge.health.deep_s 300 0 900
    deep_s="${REPLY}"
    cf_write "${CF_CONF_DIR}/health.conf" 0644 <<CONF
vm_size=${size}
mounts=${mounts}
resume=${resume}
unmeasured=${unmeasured}
nhc=${nhc}
deep_s=${deep_s}
CONF
    cf_outcome_file "${size}, $((${#CF_FIGURES[@]})) figures, mounts ${mounts:-none}"
}

install_units() {
    local changed interval
    cf_attribute_int cycleforge.health.interval_s 300 60 86400
    interval="${REPLY}"
    cf_install_files "${FILES}" "${TARGET}" "${SCRIPTS[@]}"
    changed="${CF_CHANGED}"
    cf_unit cycleforge-health.service <"${FILES}/cycleforge-health.service"
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
    cf_unit "${DEEP}" <"${FILES}/${DEEP}"
    cf_unit slurmd.service.d/20-cycleforge-slurm_nhc.conf <"${FILES}/slurmd-slurm_nhc.conf"
    cf_own_unit "${DEEP}" "${TARGET}/checks-deep.sh:${TARGET}/vm_sizes.tsv:${CF_CONF_DIR}/health.conf:${UNITS}/${DEEP}"
    local -r verdict="${CF_STATE_DIR}/health/deep.verdict"
    if [[ -r "${verdict}" ]]; then cf_outcome "$(<"${verdict}")"; fi
}

drop_all() {
    local changed
    cf_drop_unit "${TIMER}" "${TIMER}" cycleforge-health.service
    changed="${CF_CHANGED}"
    cf_drop_unit "${DEEP}" "${DEEP}" slurmd.service.d/20-cycleforge-slurm_nhc.conf
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
    cf_step "health configuration" write_configuration
    cf_step "health units" install_units
    cf_step "health timer" start_timer
    cf_attribute_int cycleforge.health.deep_s 300 0 900
    if ((REPLY > 0)); then
        cf_step "deep checks" run_deep
    else
        cf_step "deep checks off" cf_drop_unit "${DEEP}" "${DEEP}" slurmd.service.d/20-cycleforge-slurm_nhc.conf
    fi
}

cf_main main "$@"
