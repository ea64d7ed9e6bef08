#!/usr/bin/env bash
# pyxis where the slurm project built none, or built it for another Slurm: a plug-in works only with the release of Slurm
# whose headers it was compiled with. Sourced after plugstack.sh and
# install-enroot.sh.

readonly PYXIS_VERSION=0.24.0
readonly PYXIS_BLOB="pyxis-${PYXIS_VERSION}.tar"
readonly PYXIS_PLUGIN=/opt/pyxis/spank_pyxis.so
readonly SPANK_HEADER="${CF_ROOT}/usr/include/slurm/spank.h"

# pyxis_source: a folder with the sources in REPLY. The slurm project's own release first, so that all nodes have one.
pyxis_source() {
    local -a archives
    shopt -s nullglob
    archives=("${SLURM_ARTIFACTS}"/pyxis-[0-9]*.tar.gz)
    shopt -u nullglob
    if ((${#archives[@]} == 1)) && [[ -s "${archives[0]}" ]]; then
        REPLY="${archives[0]##*/}"
        cf_unpack_blob "${archives[0]}" "${CF_PROJECT_CACHE}/${REPLY%.tar.gz}"
        REPLY="${CF_PROJECT_CACHE}/${REPLY%.tar.gz}/${REPLY%.tar.gz}"
        return
    fi
    cf_blob "${PYXIS_BLOB}" "${CF_PROJECT_CACHE}" || return 1
    cf_unpack_blob "${REPLY}" "${CF_PROJECT_CACHE}/pyxis-${PYXIS_VERSION}"
    REPLY="${CF_PROJECT_CACHE}/pyxis-${PYXIS_VERSION}"
}

build_pyxis() {
    local folder source
    if [[ ! -r "${SPANK_HEADER}" ]]; then
        cf_warn "pyxis cannot be built: ${SPANK_HEADER} is missing; install slurm-devel (EL) or slurm-smd-dev (Ubuntu)" \
            "of the running Slurm release"
        return 1
    fi
    pyxis_source || return 1
    source="${REPLY}"
    if ! compiler "$1"; then
        cf_warn "pyxis cannot be built: gcc and make are missing and were not installed"
        return 1
    fi
    rm -rf "${CF_PROJECT_CACHE}"/.build.*
    folder="$(mktemp -d "${CF_PROJECT_CACHE}/.build.XXXXXX")"
    cp -r "${source}" "${folder}/source"
    if ! timeout --kill-after=10 300 make --silent --directory "${folder}/source" spank_pyxis.so >"${folder}/log" 2>&1; then
        tail -n 20 "${folder}/log" >&2
        rm -rf "${folder}"
        cf_warn "pyxis was not built: the compiler's last lines are above"
        return 1
    fi
    cf_copy "${folder}/source/spank_pyxis.so" "${CF_ROOT}${PYXIS_PLUGIN}" 0755
    rm -rf "${folder}"
}

install_pyxis() {
    local library state=missing
    cf_plugin_lines
    library="${PLUGIN_LIBRARY:-${PYXIS_PLUGIN}}"
    if [[ -e "${CF_ROOT}${library}" ]]; then
        cf_try_plugin "${CF_ROOT}${library}"
        state="${REPLY}"
        if [[ "${state}" == loads ]]; then
            cf_outcome "${library} is there"
            return
        elif [[ "${state}" == unknown ]]; then
            cf_warn "whether Slurm loads ${library} is not known: ${PLUGIN_SAYS}"
            cf_outcome "${library}, not tried"
            return
        elif [[ "${library}" != "${PYXIS_PLUGIN}" ]]; then
            cf_warn "Slurm does not load ${library}: ${PLUGIN_SAYS:-no reason given}. Build it again for this Slurm release"
            cf_outcome "${library} does not load"
            return
        fi
        cf_log "Slurm does not load ${library} (${PLUGIN_SAYS:-no reason given}): it is built again"
    elif [[ "${library}" != "${PYXIS_PLUGIN}" ]]; then
        # enroot.sh stops for a required one and says so.
        cf_outcome "${library} of plugstack.conf does not exist"
        return
    fi
    if ! build_pyxis "$1"; then
        cf_warn "pyxis is not installed: srun has no --container-image here." \
            "If other nodes have it, jobs that ask for a container run on this node outside of any." \
            "cyclecloud-slurm 4.0.3 and later bring it; for others: cycleforge blobs fetch, then build and deploy again"
        cf_outcome "${state}"
        return
    fi
    cf_try_plugin "${CF_ROOT}${PYXIS_PLUGIN}"
    if [[ "${REPLY}" == refused ]]; then
        cf_warn "pyxis was built and Slurm does not load it: ${PLUGIN_SAYS:-no reason given}"
        cf_outcome "built, does not load"
        return
    fi
    cf_outcome "${PYXIS_PLUGIN} built for this Slurm release"
}
