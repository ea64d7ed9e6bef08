#!/usr/bin/env bash
# CycleForge (slurm_nhc): a job that starts ends a deep run on the idle node, and a node whose deep checks failed takes no
# job. Only a clear verdict refuses the job: Slurm drains the node and starts it elsewhere. Nodes without our health layer
# pass. Slurm gives hooks no PATH.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
readonly HEALTH=/opt/cycleforge/slurm_nhc/health.sh
[[ -r "${HEALTH}" ]] || exit 0
timeout --kill-after=1 6 bash "${HEALTH}" gate
[[ $? -ne 3 ]]
