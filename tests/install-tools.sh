#!/usr/bin/env bash
# Installs the programs that tests run and PyPI does not have. Without root or apt nothing is installed, and the tests
# that need them say why they are skipped.
set -euo pipefail
readonly packages=(cloud-init)

missing=()
for package in "${packages[@]}"; do
    command -v "${package}" >/dev/null || missing+=("${package}")
done
((${#missing[@]})) || exit 0
if [[ "$(id -u)" != 0 ]] || ! command -v apt-get >/dev/null; then
    printf 'not installed (needs root and apt): %s\n' "${missing[*]}" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
