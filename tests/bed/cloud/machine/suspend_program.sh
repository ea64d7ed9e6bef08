#!/usr/bin/env bash
# The SuspendProgram and the ResumeFailProgram, which are both `azslurm suspend` in 4.0.9 (slurmcc/cli.py, _shutdown): VMs
# that do not exist are skipped, one with KeepAlive is not deleted but set down, then every node gets its own name as address.
set -euo pipefail
# shellcheck source=tests/bed/cloud/machine/azure.sh
source /mnt/machine/azure.sh
asked "$(basename "$0" _program.sh)" "$@"
mapfile -t names < <(scontrol show hostnames "$*")
for name in "${names[@]}"; do
    if [[ -e "${azure}/keep_alive/${name}" ]] && vm_runs "${name}"; then
        scontrol update "nodename=${name}" state=down reason=keep_alive
    else
        vm_stop "${name}"
    fi
    scontrol update "NodeName=${name}" "NodeAddr=${name}" "NodeHostName=${name}"
done
