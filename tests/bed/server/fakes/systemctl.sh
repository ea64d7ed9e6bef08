# A systemctl that knows one unit: `restart` runs its ExecStart below the test's root, as systemd would.
set -eu
unit="${CYCLEFORGE_ROOT}/etc/systemd/system/cycleforge-bootstrap.service"
pid="${FAKE_DIR}/unit.pid"
printf 'systemctl %s\n' "$*" >>"${FAKE_DIR}/systemctl.log"
case "$1" in
restart)
    [ -f "${unit}" ] || exit 5
    command=$(sed -n 's/^ExecStart=//p' "${unit}")
    # Paths of the unit lie below the test's root; /bin/sh does not.
    command=$(printf '%s' "${command}" | sed "s# /opt/# ${CYCLEFORGE_ROOT}/opt/#")
    if [ -n "${FAKE_BROKEN_UNIT:-}" ]; then command=/nonexistent; fi
    # shellcheck disable=SC2086,SC2016 # ExecStart has arguments; the inner shell expands
    setsid sh -c 'echo $$ >"$0.pid"; exec "$@"' "${FAKE_DIR}/unit" ${command} >>"${FAKE_DIR}/journal" 2>&1 </dev/null &
    ;;
is-active)
    if [ -f "${pid}" ]; then
        # Without a second process: a deployment asks this again and again.
        read -r main <"${pid}"
        kill -0 "${main}" 2>/dev/null
    fi
    ;;
stop)
    if [ -f "${pid}" ]; then kill "$(cat "${pid}")" 2>/dev/null || :; fi
    ;;
daemon-reload | enable) ;;
# CycleCloud has no unit until its autostart.sh has run.
cat) exit 1 ;;
*) exit 1 ;;
esac
