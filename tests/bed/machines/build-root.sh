#!/usr/bin/env bash
# build-root.sh ROOT LISTS SUITE PACKAGE...: a Debian root that starts no daemon, and beside it apt's lists of packages,
# by which more can be installed above it. Runs in mount and process namespaces of its own, so that a kill leaves no mount
# behind. mmdebstrap unpacks and configures everything in one go, which takes about half the work of debootstrap and a
# second round of apt.
set -euo pipefail
readonly root="$1" lists="$2" suite="$3"
shift 3
packages="$(IFS=','; printf '%s' "$*")"
readonly keys=/usr/share/keyrings/debian-archive-keyring.gpg
# Where the packages' scripts find stand-ins before the programs of the same names: what these would do again and again,
# a tenth of the work of the build, is done below, once.
readonly instead=/usr/local/instead
# After the essential packages and before all others; mmdebstrap gives it the root as $1.
# shellcheck disable=SC2016
readonly settings='
printf "force-unsafe-io\n" >"$1/etc/dpkg/dpkg.cfg.d/unsafe-io"
printf "path-exclude=/usr/share/%s/*\n" doc man locale info >"$1/etc/dpkg/dpkg.cfg.d/small"
mkdir "$1'"${instead}"'"
cd "$1'"${instead}"'"
cat >deb-systemd-helper <<"END"
#!/bin/sh
# A unit that is new was never masked, and is enabled.
case "$*" in
    "enable "*) shift; printf "%s\n" "$@" >>'"${instead}"'/enabled ;;
    "unmask "* | "--quiet was-enabled "*) ;;
    *) exec /usr/bin/deb-systemd-helper "$@" ;;
esac
END
printf "#!/bin/sh\n" >update-ca-certificates
chmod 755 *'

LC_ALL=C.UTF-8 mmdebstrap --mode=root --variant=minbase --format=directory --include="usr-is-merged,${packages}" \
    --setup-hook=/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh --essential-hook="${settings}" \
    --customize-hook="cp -r \"\$1/var/lib/apt/lists\" '${lists}'" \
    --aptopt="DPkg::Path \"${instead}:/usr/sbin:/usr/bin\"" \
    --aptopt='Apt::Install-Recommends "false"' --keyring="${keys}" "${suite}" "${root}"
mapfile -t units <"${root}${instead}/enabled"
DPKG_MAINTSCRIPT_PACKAGE=all chroot "${root}" deb-systemd-helper enable "${units[@]}"
rm -r "${root}${instead}"
# As update-ca-certificates leaves it, which starts six programs for each; awk ends a last line that has no end.
mapfile -t certificates < <(grep '^[^#!]' "${root}/etc/ca-certificates.conf")
(cd "${root}/usr/share/ca-certificates" && awk 1 "${certificates[@]}") >"${root}/etc/ssl/certs/ca-certificates.crt"
for file in "${certificates[@]}"; do
    name="${file##*/}"
    ln -s "/usr/share/ca-certificates/${file}" "${root}/etc/ssl/certs/${name%.crt}.pem"
done
chroot "${root}" openssl rehash /etc/ssl/certs
# No daemon starts because a package is installed, neither then nor in a machine made of this root.
printf '#!/bin/sh\nexit 101\n' >"${root}/usr/sbin/policy-rc.d"
chmod 755 "${root}/usr/sbin/policy-rc.d"
cp -L --remove-destination /etc/resolv.conf "${root}/etc/resolv.conf"
# As on a node whose converge has not ended; and the image belongs to no particular machine.
chroot "${root}" systemctl disable slurmd slurmctld munge
rm -f "${root}/etc/apt/apt.conf.d/99mmdebstrap" "${root}/var/lib/dbus/machine-id" "${root}/etc/hostname"
: >"${root}/etc/machine-id"
chmod 444 "${root}/etc/machine-id"
