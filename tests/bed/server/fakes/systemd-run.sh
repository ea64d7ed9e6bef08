# A systemd-run that only starts the command; real scopes are in tests/bootstrap/test_booted.py.
set -eu
printf 'systemd-run %s\n' "$*" >>"${FAKE_DIR}/systemctl.log"
[ "$1 $2 $3" = "--quiet --scope --collect" ]
shift 3
exec "$@"
