# shellcheck shell=bash
# The MPI of the image, with which its test programs were built. Sourced after common.sh.

# load_modules: defines `module` where the image has it, and loads MPI_MODULE. The whole of /etc/profile would replace PATH.
load_modules() {
    local file
    for file in /etc/profile.d/modules.sh /usr/share/modules/init/bash /etc/profile.d/lmod.sh; do
        if declare -F module >/dev/null || [[ ! -r "${file}" ]]; then continue; fi
        set +u
        # shellcheck source=/dev/null
        . "${file}"
        set -u
    done
    if [[ -n "${MPI_MODULE}" ]] && declare -F module >/dev/null; then module load "${MPI_MODULE}"; fi
}
