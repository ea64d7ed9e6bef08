#!/usr/bin/env bash
# usage: inside.sh NAME SCRIPT [ARGUMENT…]   Run Bash text on an emulated node, as its systemd starts a unit.
set -euo pipefail
readonly name="$1"
first="$(pgrep -P "$(<"/mnt/azure/vms/${name}")")"
export CYCLEFORGE_ROOT="/mnt/sick/${name}/root" FAKE_STATE="/mnt/sick/${name}/state" CYCLEFORGE_SAMPLE_S=0 CYCLEFORGE_POLL_S=0.1
exec nsenter --target "${first}" --net --uts --mount --pid --wd=/ -- bash -c "set -o pipefail; $2" bash "${@:3}"
