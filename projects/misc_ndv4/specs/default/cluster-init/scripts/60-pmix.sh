#!/usr/bin/env bash
# PMIx for `srun --mpi=pmix`: the library that Slurm's plug-in loads, from the image or from a package. A node without it
# runs every other job, so nothing here fails a node.
#
# Slurm's plug-in loads <folder of its build>/libpmix.so, some distributions' libpmix.so.2 (mpi_pmix.c, _libpmix_open).
# Microsoft's packages, which cyclecloud-slurm 4.x installs, bring PMIx 4.2.9 as package "pmix" below /opt/pmix; the HPC
# images have it. Source: github.com/Azure/azhpc-images, components/install_pmix.sh
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
# shellcheck source-path=SCRIPTDIR/../files source=packages.sh
. "${CYCLECLOUD_SPEC_PATH}/files/packages.sh"

readonly LINKER_CONF="${CF_ROOT}/etc/ld.so.conf.d/90-cycleforge-pmix.conf"
# The plug-in, the folder that its build names (may be empty) and the file that it loads.
PLUGIN="" FOLDER="" NAME=""

find_plugin() {
    local path
    for path in "${CF_ROOT}"/usr/lib/*/slurm*/mpi_pmix*.so "${CF_ROOT}"/usr/lib64/slurm/mpi_pmix*.so \
        "${CF_ROOT}"/usr/lib/slurm/mpi_pmix*.so "${CF_ROOT}"/opt/slurm/lib*/slurm/mpi_pmix*.so; do
        if [[ -r "${path}" ]]; then PLUGIN="${path}"; fi
    done
    if [[ -z "${PLUGIN}" ]]; then return; fi
    FOLDER="$(grep --text --only-matching --extended-regexp '/[A-Za-z0-9._/+-]*pmix[A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*/lib(64)?' \
        "${PLUGIN}" | grep --invert-match --fixed-strings '..' | head -n 1 || true)"
    NAME="$(grep --text --only-matching --max-count=1 --extended-regexp 'libpmix\.so(\.[0-9]+)?' "${PLUGIN}" | head -n 1 || true)"
    NAME="${NAME:-libpmix.so.2}"
}

# find_library: the file that the plug-in would load, in REPLY; 1 when there is none.
find_library() {
    REPLY=""
    if [[ -n "${FOLDER}" ]]; then
        REPLY="${FOLDER}/${NAME}"
        [[ -e "${CF_ROOT}${REPLY}" ]]
        return
    fi
    if command -v ldconfig >/dev/null; then
        REPLY="$(timeout 60 ldconfig -p | sed -n "s|^[[:space:]]*${NAME//./\\.} .*=> ||p" | head -n 1 || true)"
    fi
    [[ -n "${REPLY}" ]]
}

# version_of LIBRARY: the version of PMIx in REPLY, by its folder below /opt/pmix or by the package that owns the file.
version_of() {
    local file package
    file="$(readlink -f "${CF_ROOT}$1" || true)"
    file="${file#"${CF_ROOT}"}"
    REPLY=""
    if [[ "${file}" =~ ^/opt/pmix/v?([0-9][0-9.]*)/ ]]; then
        REPLY="${BASH_REMATCH[1]}"
    elif command -v dpkg-query >/dev/null; then
        package="$(timeout 60 dpkg-query --search "${file}" 2>/dev/null | sed -n '1s/[:,].*//p' || true)"
        if [[ -n "${package}" ]]; then
            # shellcheck disable=SC2016 # dpkg-query's own notation
            REPLY="$(timeout 60 dpkg-query --show --showformat='${Version}\n' "${package}" 2>/dev/null | head -n 1 || true)"
        fi
    elif command -v rpm >/dev/null; then
        REPLY="$(timeout 60 rpm --query --queryformat '%{VERSION}\n' --file "${file}" 2>/dev/null | head -n 1 || true)"
    fi
    REPLY="${REPLY:-of unknown version}"
}

# A plug-in without a folder of its own asks the linker, which does not look below /opt/pmix by itself.
show_to_linker() {
    local path
    if [[ -n "${FOLDER}" ]]; then return 1; fi
    for path in "${CF_ROOT}"/opt/pmix/*/lib/"${NAME}"; do
        if [[ -e "${path}" ]] && command -v ldconfig >/dev/null; then
            path="${path%/*}"
            cf_write "${LINKER_CONF}" 0644 <<<"${path#"${CF_ROOT}"}"
            timeout 120 ldconfig || return 1
            find_library
            return
        fi
    done
    return 1
}

provide() {
    local -a names=(pmix libpmix2)
    local how="in the image"
    # A distribution's own Slurm has its PMIx elsewhere, and the name without a number in the development package.
    if [[ -n "${FOLDER}" && "${FOLDER}" != /opt/* ]]; then
        names=(libpmix2 pmix)
        if [[ "${NAME}" == libpmix.so ]]; then names=(libpmix-dev pmix); fi
    fi
    if ! find_library && ! show_to_linker; then
        how="installed"
        if ! install_package "${names[@]}"; then
            how="no repository offers any of: ${names[*]}"
        elif ! find_library && ! show_to_linker; then
            how="the package ${names[*]} did not bring it"
        fi
    fi
    if ! find_library; then
        cf_warn "Slurm's plug-in ${PLUGIN##*/} finds no ${FOLDER:+${FOLDER}/}${NAME}: ${how}; 'srun --mpi=pmix' will fail here"
        cf_warn "  do:  use an HPC image, or give the node network access to packages.microsoft.com and converge again"
        cf_outcome "missing"
        return
    fi
    local -r library="${REPLY}"
    version_of "${library}"
    cf_outcome "PMIx ${REPLY} (${library}), ${how}"
}

main() {
    find_plugin
    if [[ -n "${PLUGIN}" ]]; then
        cf_step "PMIx" provide
    elif command -v slurmd >/dev/null || command -v srun >/dev/null; then
        cf_warn "this Slurm has no PMIx plug-in, so 'srun --mpi=pmix' does not exist; the packages of packages.microsoft.com have it"
    else
        cf_log "Slurm is not installed, so there is nothing that needs PMIx"
    fi
}

cf_main main "$@"
