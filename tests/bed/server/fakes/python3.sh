# The Python beside the CLI: `python3 -I -B -c CODE`, with the CLI's own packages and nothing of the caller's.
set -eu
printf 'python3 %s\n' "$*" >>"${FAKE_DIR}/recorded.log"
[[ "$1 $2 $3" == "-I -B -c" ]]
exec "${FAKE_PYTHON}" -I -B -c "import sys; sys.path.insert(0, '${FAKE_DIR}/packages'); exec(sys.argv.pop(1))" "$4"
