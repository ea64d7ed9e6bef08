# A real program whose arguments are written down first, one line per call, so that a test can look for secrets.
printf '%s %s\n' "${0##*/}" "$*" >>"${FAKE_DIR}/recorded.log"
PATH="${FAKE_REAL_PATH}" exec "${0##*/}" "$@"
