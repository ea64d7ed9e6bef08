#!/usr/bin/env bash
# CycleForge (slurm_nhc): a job that starts ends a deep run on the idle node, and a node that is known to be sick takes no
# job. Only a clear verdict refuses the job: Slurm drains the node and starts it elsewhere. Nodes without our health layer
# pass. Slurm gives hooks no PATH.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
readonly HEALTH=/opt/cycleforge/slurm_nhc/health.sh
readonly KEPT="${CYCLEFORGE_ROOT:-}/var/lib/cycleforge/health/standing" NEWEST="${CYCLEFORGE_ROOT:-}/run/cycleforge/standing"
[[ -r "${HEALTH}" ]] || exit 0
timeout --kill-after=1 6 bash "${HEALTH}" gate
case $? in
    0) exit 0 ;;
    3) exit 1 ;;
esac
# The gate itself has failed, or did not answer: what earlier runs have found stands all the same (standing.sh).
file="${KEPT}"
if [[ -s "${NEWEST}" ]]; then file="${NEWEST}"; fi
if timeout --kill-after=1 2 grep -q -s -x 'state=sick' "${file}"; then
    echo "CycleForge: the gate of this node has failed, and ${file} says that the node is sick" >&2
    exit 1
fi
exit 0
