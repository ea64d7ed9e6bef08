# `cycle_server` of a machine: start and stop are real processes, everything else is answered by the stand-in.
# `await_startup` without a started server fails with "CycleServer is not running" (Azure/cyclecloud-slurm-workspace
# cyclecloud_install.py waits for the start first); `start` works without systemd and leaves a daemon behind
# (Azure/cyclecloud-container scripts/run.sh).
set -eu
alive() { [[ -e "${FAKE_DIR}/webserver.pid" ]] && kill -0 "$(<"${FAKE_DIR}/webserver.pid")" 2>/dev/null; }
case "$1" in
start) if ! alive; then python3 "${FAKE_DIR}/webserver.py" "${FAKE_DIR}"; fi ;;
stop)
    if alive; then kill "$(<"${FAKE_DIR}/webserver.pid")"; fi
    while alive; do sleep 0.05; done
    ;;
await_startup | status)
    for ((i = 0; i < 20; i++)); do if alive; then break; fi; sleep 0.05; done
    if ! alive; then
        echo "CycleServer is not running" >&2
        exit 1
    fi
    ;;
esac
