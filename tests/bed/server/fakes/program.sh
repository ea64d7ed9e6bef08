# Body of every faked program (`cyclecloud`, `cycle_server`, `jetpack`): tells the fake site how it was called and
# prints what that answers. Bash, because a run of the bootstrap calls it some twenty times.
set -eu
call="${FAKE_DIR}/call.$$"
terminal=no
if [[ -t 0 ]]; then terminal=yes; fi
printf '%s\0' "${0##*/}" "${PWD}" "${PPID}" "${terminal}" "$@" >"${call}"
env -0 >"${call}.environment"
exec 3<>"/dev/tcp/127.0.0.1/${FAKE_PORT}"
printf '%s\n' "${call}" >&3
read -r status <&3
if [[ "${status}" == hang ]]; then exec sleep 600; fi
cat "${call}.errors" >&2
cat "${call}.output"
rm -f "${call}".*
exit "${status}"
