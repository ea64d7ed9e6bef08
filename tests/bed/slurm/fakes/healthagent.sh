#!/bin/bash
# Does what healthagent's HealthCheckProgram is documented to do: drain on errors of GPU or network unless the node is
# drained or down already; resume when there are none and the reason is its own.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
node="${SLURMD_NODENAME:-${HOSTNAME%%.*}}"
answer="$(health -b)" errors=0 state="" reason=""
for part in gpu network; do
    if [[ "${answer}" =~ \"${part}\":\ \{\"errors\":\ ([0-9]+)\} ]]; then errors=$((errors + BASH_REMATCH[1])); fi
done
shown="$(scontrol show node "${node}")"
if [[ "${shown}" =~ State=([^ ]+) ]]; then state="${BASH_REMATCH[1]}"; fi
if [[ "${shown}" =~ Reason=([^$'\n']*) ]]; then reason="${BASH_REMATCH[1]}"; fi
printf 'errors=%s state=%s reason=%s\n' "${errors}" "${state}" "${reason}" >>"${FAKE_STATE:-/fake/state}/healthagent.log"
if ((errors > 0)) && [[ "${state}" != *DOWN* && "${state}" != *DRAIN* ]]; then
    scontrol update NodeName="${node}" State=drain Reason="Healthcheck failures. Run 'health -s' view health report."
elif ((errors == 0)) && [[ "${reason}" == "Healthcheck failures"* ]]; then
    scontrol update NodeName="${node}" State=resume
fi
