#!/usr/bin/env bash
# CycleForge (slurm_nhc): look at the counters after every job. Reads only, so jobs of others on the node go on.
# A sick node is drained with a reason by the checks themselves; only if that was impossible, Slurm does it.
# Slurm gives hooks no PATH.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
readonly HEALTH=/opt/cycleforge/slurm_nhc/health.sh
[[ -r "${HEALTH}" ]] || exit 0
timeout --kill-after=2 25 bash "${HEALTH}" epilog
[[ $? -ne 3 ]]
