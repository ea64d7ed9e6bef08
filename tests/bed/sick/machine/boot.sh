# shellcheck shell=bash
# Before slurmd of an emulated node starts: its disk and its programs in place of the host's, and the deep checks of its boot.
# Sourced by node.sh, which has set `name`.
# shellcheck disable=SC2154 # node.sh has set it
readonly disk="/mnt/sick/${name}"
export CYCLEFORGE_ROOT="${disk}/root" FAKE_STATE="${disk}/state" CYCLEFORGE_SAMPLE_S=0 CYCLEFORGE_POLL_S=0.1
# Nothing has asked for this boot: these nodes are static.
# shellcheck disable=SC2034
settle_s=0

mount --bind "${disk}/bin" /usr/local/sbin
mount --bind "${disk}/root/opt/cycleforge" /opt/cycleforge
rm -rf "${disk}/root/run"
mkdir "${disk}/root/run"
rm -f "${FAKE_STATE}/active/slurmd.service"
if [[ -e "${disk}/root/etc/systemd/system/cycleforge-health-deep.service" ]]; then
    bash /opt/cycleforge/slurm_nhc/health.sh deep boot || echo "the unit has failed"
fi
echo active >"${FAKE_STATE}/active/slurmd.service"
# slurmd does not pass its environment on to hooks, and on a node it has none of these.
unset CYCLEFORGE_ROOT FAKE_STATE CYCLEFORGE_SAMPLE_S CYCLEFORGE_POLL_S
