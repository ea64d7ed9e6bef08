#!/usr/bin/env bash
# The ResumeProgram, as `azslurm resume` of 4.0.9 behaves (slurmcc/allocation.py, resume): nodes that exist are left alone,
# and when one cannot be allocated the program fails before it starts any of the call.
set -euo pipefail
# shellcheck source=tests/bed/cloud/machine/azure.sh
source /mnt/machine/azure.sh
asked resume "$@"
mapfile -t names < <(scontrol show hostnames "$*")
for name in "${names[@]}"; do
    if [[ -e "${azure}/refuse/${name}" ]]; then
        echo "Failed to allocate node ${name}" >&2
        exit 1
    fi
done
for name in "${names[@]}"; do vm_start "${name}"; done
