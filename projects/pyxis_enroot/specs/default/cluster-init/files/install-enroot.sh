#!/usr/bin/env bash
# enroot where the platform has none. cyclecloud-slurm 4.0.3 and later install it on Ubuntu and EL 8, but carry the
# packages of all systems to every node; older releases have none, so the last way is the pinned source of the locker.
# Sourced after cycleforge.sh and blobs.sh; CF_PROJECT_CACHE and FILES are set by the caller.

readonly ENROOT_VERSION=4.1.2
readonly ENROOT_BLOB="enroot-${ENROOT_VERSION}.tar"
# What the agent unpacks the slurm project's own files to; nothing removes them.
readonly SLURM_ARTIFACTS="${CF_ROOT}${CYCLECLOUD_HOME:-/opt/cycle/jetpack}/system/bootstrap/azure-slurm-install/artifacts"
readonly ENROOT_UNFINISHED="${CF_STATE_DIR}/enroot-unfinished"
# Programs that enroot calls. Source: pkg/deb/control and pkg/rpm/SPECS/enroot.spec of enroot 4.1.2.
readonly ENROOT_CALLS=(curl awk jq parallel zstd mksquashfs unsquashfs)

# cf_enroot_version: the version of an enroot that is whole, in REPLY; 1 when there is none.
cf_enroot_version() {
    REPLY=""
    if [[ -e "${ENROOT_UNFINISHED}" ]] || ! command -v enroot >/dev/null; then return 1; fi
    REPLY="$(timeout --kill-after=5 20 enroot version 2>/dev/null || true)"
    if [[ ! "${REPLY}" =~ ^[0-9]+(\.[0-9]+)+$ ]]; then
        REPLY=""
        return 1
    fi
}

# cf_packages FAMILY NAME...: install packages (names or files), with a limit, waiting for the package lock.
cf_packages() {
    local -r family="$1"
    shift
    case "${family}" in
        ubuntu)
            if apt_get 600 install --no-install-recommends "$@"; then return 0; fi
            # The lists of an image are as old as the image.
            apt_get 180 update && apt_get 600 install --no-install-recommends "$@"
            ;;
        el) timeout --kill-after=10 600 dnf --assumeyes --quiet install "$@" >&2 ;;
        *) return 1 ;;
    esac
}

# apt_get SECONDS WORDS...
apt_get() {
    timeout --kill-after=10 "$1" env DEBIAN_FRONTEND=noninteractive \
        apt-get --yes --quiet --quiet -o DPkg::Lock::Timeout=300 "${@:2}" >&2
}

# slurm_project_packages FAMILY: enroot and enroot+caps for this system among the slurm project's files, in PACKAGES.
# Exactly one of each: two versions side by side would leave the choice to the order of names.
slurm_project_packages() {
    local architecture
    local -a main caps
    PACKAGES=()
    architecture="$(uname -m)"
    shopt -s nullglob
    if [[ "$1" == el ]]; then
        main=("${SLURM_ARTIFACTS}"/enroot-[0-9]*."${architecture}".rpm)
        caps=("${SLURM_ARTIFACTS}"/enroot+caps-[0-9]*."${architecture}".rpm)
    else
        case "${architecture}" in
            x86_64) architecture=amd64 ;;
            aarch64) architecture=arm64 ;;
        esac
        main=("${SLURM_ARTIFACTS}"/enroot_[0-9]*"_${architecture}".deb)
        caps=("${SLURM_ARTIFACTS}"/enroot+caps_[0-9]*"_${architecture}".deb)
    fi
    shopt -u nullglob
    if ((${#main[@]} != 1 || ${#caps[@]} != 1)) || [[ ! -s "${main[0]}" || ! -s "${caps[0]}" ]]; then return 1; fi
    PACKAGES=("${main[0]}" "${caps[0]}")
}

# enroot_programs FAMILY: install what enroot calls, as far as it is missing; the rest is in MISSING.
enroot_programs() {
    local program
    local -a packages=()
    missing_programs
    if ((${#MISSING[@]} == 0)); then return; fi
    for program in "${MISSING[@]}"; do
        case "${program}" in
            awk) packages+=(gawk) ;;
            mksquashfs | unsquashfs) packages+=(squashfs-tools) ;;
            *) packages+=("${program}") ;;
        esac
    done
    cf_packages "$1" "${packages[@]}" || true
    missing_programs
}

missing_programs() {
    local program
    MISSING=()
    for program in "${ENROOT_CALLS[@]}"; do
        if ! command -v "${program}" >/dev/null; then MISSING+=("${program}"); fi
    done
}

# compiler FAMILY: gcc, make and the C library's headers. The slurm project installs them on every node.
compiler() {
    if command -v gcc >/dev/null && command -v make >/dev/null && [[ -e "${CF_ROOT}/usr/include/stdlib.h" ]]; then return 0; fi
    case "$1" in
        ubuntu) cf_packages ubuntu gcc make libc6-dev || true ;;
        el) cf_packages el gcc make glibc-devel || true ;;
    esac
    command -v gcc >/dev/null && command -v make >/dev/null
}

# Built in a fresh copy: a compiler that was killed leaves half an object file that looks complete to make.
# glibc before 2.38 lacks two functions that musl, enroot's own choice, has. makeself (enroot bundle) is left out.
build_enroot() {
    local folder
    cf_blob "${ENROOT_BLOB}" "${CF_PROJECT_CACHE}" || return 1
    cf_unpack_blob "${REPLY}" "${CF_PROJECT_CACHE}/enroot-${ENROOT_VERSION}"
    if ! compiler "$1"; then
        cf_warn "enroot cannot be built: gcc and make are missing and were not installed"
        return 1
    fi
    rm -rf "${CF_PROJECT_CACHE}"/.build.*
    folder="$(mktemp -d "${CF_PROJECT_CACHE}/.build.XXXXXX")"
    cp -r "${CF_PROJECT_CACHE}/enroot-${ENROOT_VERSION}" "${folder}/source"
    if ! enroot_make "${folder}/source" "${folder}/made" >"${folder}/log" 2>&1; then
        tail -n 20 "${folder}/log" >&2
        rm -rf "${folder}"
        cf_warn "enroot ${ENROOT_VERSION} was not built: the compiler's last lines are above"
        return 1
    fi
    place_enroot "${folder}/made"
    rm -rf "${folder}"
}

enroot_make() {
    local -ra make=(timeout --kill-after=10 300 make --silent --directory)
    local -ra settings=(
        FORCE_GLIBC=1 DEPS= prefix= exec_prefix=/usr datarootdir=/usr/share --assume-old=deps
        "CC=gcc -D_GNU_SOURCE= -include ${FILES}/strings.h"
    )
    "${make[@]}" "$1/deps" libbsd FORCE_GLIBC=1 CC=gcc || return
    "${make[@]}" "$1" "${settings[@]}" all || return
    "${make[@]}" "$1" "${settings[@]}" DESTDIR="$2" install
}

# Settings that are there stay. The mark keeps a half copied enroot from being taken for a whole one.
place_enroot() {
    local -r made="$1"
    local file mode
    cf_write "${ENROOT_UNFINISHED}" 0644 <<<"${ENROOT_VERSION}"
    mkdir -p "${CF_ROOT}/usr" "${CF_ROOT}/etc/enroot"
    cp -a --remove-destination "${made}/usr/." "${CF_ROOT}/usr/"
    for file in "${made}"/etc/enroot/* "${made}"/etc/enroot/*/*; do
        file="${file#"${made}"}"
        if [[ -d "${made}${file}" ]]; then
            mkdir -p "${CF_ROOT}${file}"
        elif [[ -f "${made}${file}" && ! -e "${CF_ROOT}${file}" ]]; then
            mode="$(stat -c %a "${made}${file}")"
            cf_copy "${made}${file}" "${CF_ROOT}${file}" "${mode}"
        fi
    done
    # As the package enroot+caps: ordinary users may convert images of a registry.
    if command -v setcap >/dev/null; then
        setcap cap_sys_admin+pe "${CF_ROOT}/usr/bin/enroot-mksquashovlfs" || true
        setcap cap_sys_admin,cap_mknod+pe "${CF_ROOT}/usr/bin/enroot-aufs2ovlfs" || true
    fi
    # As the Debian package: where AppArmor keeps user namespaces from programs, enroot's own profile permits them.
    if [[ -e "${CF_ROOT}/proc/sys/kernel/apparmor_restrict_unprivileged_userns" ]]; then
        cf_write "${CF_ROOT}/etc/apparmor.d/enroot" 0644 <"${made}/usr/share/enroot/apparmor.profile"
        timeout 30 apparmor_parser --replace "${CF_ROOT}/etc/apparmor.d/enroot" || true
    fi
    rm -f "${ENROOT_UNFINISHED}"
}

# install_enroot FAMILY: what the node has, then the slurm project's package, then the pinned source.
install_enroot() {
    local -r family="$1"
    if cf_enroot_version; then
        cf_outcome "enroot ${REPLY} is there"
        return
    fi
    if slurm_project_packages "${family}" && cf_packages "${family}" "${PACKAGES[@]}" && cf_enroot_version; then
        cf_outcome "enroot ${REPLY} installed from the slurm project's packages"
        return
    fi
    if ! build_enroot "${family}"; then
        cf_warn "enroot is not installed: srun --container-image fails on this node." \
            "cyclecloud-slurm 4.0.3 and later bring it; for others: cycleforge blobs fetch, then build and deploy again"
        cf_outcome "missing"
        return
    fi
    enroot_programs "${family}"
    if ((${#MISSING[@]})); then
        cf_warn "enroot needs ${MISSING[*]}: install the packages, or use an image that has them"
    fi
    if ! cf_enroot_version; then
        cf_warn "enroot ${ENROOT_VERSION} was built and does not run: try 'enroot version' on the node"
        cf_outcome "does not run"
        return
    fi
    cf_outcome "enroot ${REPLY} built from the pinned source"
}
