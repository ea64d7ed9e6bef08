#!/usr/bin/env bash
# CycleForge (slurm_nhc): no first job for a node whose deep health checks failed. Reads one file; only a clear verdict
# refuses the job (Slurm drains the node and starts the job elsewhere). Nodes without our health layer pass.
# Slurm gives hooks no PATH.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
readonly HEALTH=/opt/cycleforge/slurm_nhc/health.sh
[[ -r "${HEALTH}" ]] || exit 0
timeout --kill-after=1 5 bash "${HEALTH}" gate
[[ $? -ne 3 ]]
