#!/bin/bash
# An installer of the CLI, as far as options, places and questions go. What it knows is in ./kind: `zip` or `tar`.
#
# zip, before 8.5: --system puts the CLI in /usr/local/cyclecloud-cli/bin with a link in /usr/local/bin, without it
# everything is below ~/.cycle/cli and ~/bin (Azure/cyclecloud-marketplace-image scripts/install_cli.py).
# tar, from 8.5 on: brings its own Python; the image's builder runs it with -y alone and the CLI is then in
# /usr/local/cyclecloud-cli/embedded/bin (setup_cyclecloud.sh). Whether it knows --system is not published: FAKE_DIR has a
# file `no-system` where it does not.
set -eu
cd "$(dirname "$0")"
read -r kind <kind
printf '%s %s\n' "${kind}" "$*" >>"${FAKE_DIR}/installer.log"
# Fails with "Permission denied" where modes or links of the archive were lost.
./embedded/bin/python3
system=no yes=no
for option; do
    case "${option}" in
    --system) system=yes ;;
    -y) yes=yes ;;
    *) exit 2 ;;
    esac
done
if [[ "${system}" == yes && -e "${FAKE_DIR}/no-system" ]]; then
    echo "install.py: error: unrecognized arguments: --system" >&2
    exit 2
fi
if [[ "${kind}" == tar ]]; then
    place="${CYCLEFORGE_ROOT}/usr/local/cyclecloud-cli/embedded/bin" link="${CYCLEFORGE_ROOT}/usr/local/bin"
elif [[ "${system}" == yes ]]; then
    place="${CYCLEFORGE_ROOT}/usr/local/cyclecloud-cli/bin" link="${CYCLEFORGE_ROOT}/usr/local/bin"
else
    place="${HOME}/.cycle/cli/bin" link="${HOME}/bin"
fi
if [[ -e "${place}" && "${yes}" == no ]]; then
    printf 'Are you sure you want to replace it? [Y/n]' | tee -a "${FAKE_DIR}/dialogue"
    read -r
fi
mkdir -p "${place}" "${link}"
cp -p "${FAKE_DIR}"/cli/* "${place}"
ln -sfn "${place}/cyclecloud" "${link}/cyclecloud"
echo "Installation Complete"
