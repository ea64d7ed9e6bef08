#!/usr/bin/env bash
# Mount blob containers with the node's managed identity. CycleCloud's own blobfuse mount type has no documented keys.
# Cache settings: https://github.com/Azure/ai-infrastructure-on-azure (examples/llm-foundry), made to fit small nodes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly CONFIGS="${CF_CONF_DIR}/blobfuse"
readonly BLOCK_MIB=32
declare -a NAMES=()

# attribute_of MOUNT KEY EXPRESSION [DEFAULT]: one value of one mount, in REPLY.
attribute_of() {
    local -r key="cycleforge.blobfuse.$1.$2" expression="$3"
    cf_attribute "${key}" "${4:-}"
    if [[ ! "${REPLY}" =~ ${expression} ]]; then
        cf_die "attribute ${key} is '${REPLY}'" "it does not match ${expression}" "correct the blob mount in the definition and build again"
    fi
}

install_blobfuse() {
    if command -v blobfuse2 >/dev/null; then
        cf_outcome "installed already"
        return
    fi
    cf_os
    case "${REPLY}" in
        ubuntu*) timeout 900 env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends blobfuse2 || true ;;
        el*) timeout 900 dnf install --assumeyes blobfuse2 || true ;;
    esac
    command -v blobfuse2 >/dev/null || cf_die "blobfuse2 is not installed and could not be" \
        "the image lacks it and no package repository has it" "use an image with blobfuse2 or add packages.microsoft.com to it"
    cf_outcome "installed"
}

# A tenth of the memory for the block cache, at most 64 GiB; blocks read ahead must fit into it.
cache_size() {
    local name value=0
    while read -r name value _; do
        if [[ "${name}" == MemTotal: ]]; then break; fi
        value=0
    done <"${CF_ROOT}/proc/meminfo"
    cf_number "${value}" || REPLY=0
    CACHE_MIB=$((REPLY / 1024 / 10))
    if ((CACHE_MIB > 65536)); then CACHE_MIB=65536; fi
    if ((CACHE_MIB < 256)); then CACHE_MIB=256; fi
    PREFETCH=$((CACHE_MIB / BLOCK_MIB))
    if ((PREFETCH > 80)); then PREFETCH=80; fi
}

mount_container() {
    local -r name="$1" config="${CONFIGS}/$1.yaml" unit="cycleforge-blob-$1.service"
    local path account container options identity endpoint
    attribute_of "${name}" path '^(/[A-Za-z0-9._-]+)+$'
    path="${REPLY}"
    attribute_of "${name}" storage_account '^[a-z0-9]{3,24}$'
    account="${REPLY}"
    attribute_of "${name}" container '^[a-z0-9$][a-z0-9-]{1,62}$'
    container="${REPLY}"
    attribute_of "${name}" options '^[A-Za-z0-9_=,.-]*$'
    options="${REPLY}"
    attribute_of "${name}" identity_client_id '^[0-9a-fA-F-]*$'
    identity="${REPLY}"
    attribute_of "${name}" endpoint '^(https://[a-z0-9.-]+)?$'
    endpoint="${REPLY}"
    cache_size
    cf_write "${config}" 0600 <<CONF
# Written by CycleForge (misc_ubuntu).
logging:
  type: syslog
  level: log_warning
components: [libfuse, block_cache, attr_cache, azstorage]
libfuse:
  attribute-expiration-sec: 120
  entry-expiration-sec: 120
  negative-entry-expiration-sec: 240
block_cache:
  block-size-mb: ${BLOCK_MIB}
  mem-size-mb: ${CACHE_MIB}
  prefetch: ${PREFETCH}
  parallelism: 128
attr_cache:
  timeout-sec: 7200
azstorage:
  type: block
  account-name: ${account}
  container: "${container}"
  mode: msi
${identity:+  appid: ${identity}
}${endpoint:+  endpoint: ${endpoint}
}
CONF
    cf_unit "${unit}" <<CONF
# CycleForge (misc_ubuntu): container ${container} of ${account} at ${path}.
[Unit]
Description=CycleForge blob container at ${path}
Wants=network-online.target
After=network-online.target
Before=slurmd.service

[Service]
ExecStartPre=/bin/mkdir -p ${path}
ExecStart=/usr/bin/env blobfuse2 mount ${path} --config-file=/etc/cycleforge/blobfuse/${name}.yaml --foreground -o allow_other${options:+,${options}}
ExecStartPost=/bin/bash -c 'for second in {1..60}; do mountpoint -q ${path} && exit 0; sleep 1; done; exit 1'
ExecStop=/usr/bin/env blobfuse2 unmount ${path}
Restart=on-failure
RestartSec=10
TimeoutStartSec=90

[Install]
WantedBy=multi-user.target
CONF
    cf_own_unit "${unit}" "${config}:${CF_ROOT}/etc/systemd/system/${unit}"
    cf_outcome_file "${account}/${container}, cache ${CACHE_MIB} MiB"
}

# Containers that the definition no longer names.
drop_others() {
    local file name dropped=0
    for file in "${CF_ROOT}"/etc/systemd/system/cycleforge-blob-*.service; do
        [[ -e "${file}" ]] || continue
        name="${file##*/cycleforge-blob-}"
        name="${name%.service}"
        if [[ " ${NAMES[*]} " != *" ${name} "* ]]; then
            cf_drop_unit "cycleforge-blob-${name}.service" "cycleforge-blob-${name}.service"
            cf_remove "${CONFIGS}/${name}.yaml"
            dropped=$((dropped + 1))
        fi
    done
    cf_outcome "${dropped} dropped"
}

main() {
    local name
    cf_attribute cycleforge.blobfuse.mounts ""
    if [[ ! "${REPLY}" =~ ^[a-z0-9\ -]*$ ]]; then
        cf_die "attribute cycleforge.blobfuse.mounts is '${REPLY}', expected names separated by spaces"
    fi
    read -r -a NAMES <<<"${REPLY}"
    cf_step "former blob mounts" drop_others
    if ((${#NAMES[@]} == 0)); then return; fi
    cf_step "blobfuse2" install_blobfuse
    for name in "${NAMES[@]}"; do cf_step "blob mount ${name}" mount_container "${name}"; done
}

cf_main main "$@"
