#!/usr/bin/env bash
# Installs the programs that tests run and PyPI does not have. Without root or apt nothing is installed, and the tests
# that need them say why they are skipped.
set -euo pipefail
# program=Debian package
readonly wanted=(cloud-init=cloud-init curl=curl flock=util-linux git=git perl=perl ps=procps)

missing=()
for entry in "${wanted[@]}"; do
    command -v "${entry%%=*}" >/dev/null || missing+=("${entry#*=}")
done
((${#missing[@]})) || exit 0
if [[ "$(id -u)" != 0 ]] || ! command -v apt-get >/dev/null; then
    printf 'not installed (needs root and apt): %s\n' "${missing[*]}" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
