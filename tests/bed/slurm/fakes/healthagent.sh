#!/usr/bin/env bash
# Does what healthagent's HealthCheckProgram is documented to do: drain on errors of GPU or network unless the node is
# drained or down already; resume when there are none and the reason is its own.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
node="${SLURMD_NODENAME:-$(hostname -s)}"
answer="$(health -b)"
errors=$(($(sed -E 's/.*"gpu": \{"errors": ([0-9]+)\}.*/\1/' <<<"${answer}") + $(sed -E 's/.*"network": \{"errors": ([0-9]+)\}.*/\1/' <<<"${answer}")))
shown="$(scontrol show node "${node}")"
state="$(sed -n -E 's/.*State=([^ ]+).*/\1/p' <<<"${shown}")"
reason="$(sed -n -E 's/.*Reason=(.*)/\1/p' <<<"${shown}")"
printf 'errors=%s state=%s reason=%s\n' "${errors}" "${state}" "${reason}" >>"${FAKE_STATE:-/fake/state}/healthagent.log"
if ((errors > 0)) && [[ "${state}" != *DOWN* && "${state}" != *DRAIN* ]]; then
    scontrol update NodeName="${node}" State=drain Reason="Healthcheck failures. Run 'health -s' view health report."
elif ((errors == 0)) && [[ "${reason}" == "Healthcheck failures"* ]]; then
    scontrol update NodeName="${node}" State=resume
fi
