# Body of every faked program (`cyclecloud`, `cycle_server`, `jetpack`): tells the fake site how it was called and
# prints what that answers. Nothing but Bash itself, because a run of the bootstrap calls it some twenty times; the site
# reads our environment from /proc, as it was when we were started.
set -eu
terminal=no
if [[ -t 0 ]]; then terminal=yes; fi
exec 3<>"/dev/tcp/127.0.0.1/${FAKE_PORT}"
printf '%s\0' "$(($# + 5))" "${0##*/}" "${PWD}" "$$" "${PPID}" "${terminal}" "$@" >&3
for answer in status output errors; do IFS= read -r -d '' "${answer?}" <&3; done
if [[ "${status}" == hang ]]; then exec sleep 600; fi
printf '%s' "${errors}" >&2
printf '%s' "${output}"
exit "${status}"
