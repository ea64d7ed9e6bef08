#!/usr/bin/env bash
# Slurm's list of plug-ins as cyclecloud-slurm 4.x lays it out: plugstack.conf includes everything in plugstack.conf.d.
# Sourced after cycleforge.sh.
# shellcheck disable=SC2034 # results for the scripts that source this

readonly PLUGSTACK="${CF_ROOT}/etc/slurm/plugstack.conf"
readonly PYXIS_CONF="${PLUGSTACK}.d/pyxis.conf"

# cf_plugin_files: the lines of all files. The slurm project writes files without a last line end, so each gets one.
cf_plugin_files() {
    local file
    for file in "${PLUGSTACK}" "${PLUGSTACK}.d"/*; do
        if [[ -f "${file}" && -r "${file}" ]]; then printf '%s\n' "$(<"${file}")"; fi
    done
}

# cf_plugin_lines: the lines that load pyxis in PLUGIN_LINES, the library of the first in PLUGIN_LIBRARY, and whether it
# is required in PLUGIN_VERB.
cf_plugin_lines() {
    local verb library rest
    PLUGIN_LINES=() PLUGIN_LIBRARY="" PLUGIN_VERB=""
    while read -r verb library rest; do
        if [[ "${verb}" != @(required|optional) || "${library}" != *spank_pyxis.so ]]; then continue; fi
        if ((${#PLUGIN_LINES[@]} == 0)); then PLUGIN_VERB="${verb}" PLUGIN_LIBRARY="${library}"; fi
        PLUGIN_LINES+=("${verb} ${library}${rest:+ ${rest}}")
    done < <(cf_plugin_files)
}

# Whether plugstack.conf makes Slurm read the folder.
cf_plugin_folder_included() {
    [[ -r "${PLUGSTACK}" ]] && grep -q -E '^[[:space:]]*include[[:space:]]+([^#]*/)?plugstack\.conf\.d/' "${PLUGSTACK}"
}

# cf_try_plugin LIBRARY: loads, refused or unknown in REPLY, with Slurm's words in PLUGIN_SAYS. srun reads a plug-in's
# options before it talks to anybody, so a configuration of three lines is enough and the cluster's own is not touched.
# Refused only where Slurm names the plug-in; anything else that goes wrong says nothing about it.
cf_try_plugin() {
    local folder output code=0
    REPLY=unknown PLUGIN_SAYS=""
    if ! command -v srun >/dev/null; then
        PLUGIN_SAYS="srun is not installed"
        return
    fi
    folder="$(mktemp -d)"
    printf 'required %s\n' "$1" >"${folder}/plugins"
    printf '%s\n' ClusterName=probe SlurmctldHost=localhost "PlugStackConfig=${folder}/plugins" >"${folder}/probe"
    output="$(SLURM_CONF="${folder}/probe" timeout --kill-after=5 20 srun --help 2>&1)" || code=$?
    rm -rf "${folder}"
    if ((code == 124 || code == 137)); then
        PLUGIN_SAYS="srun --help did not end within 20 s"
    elif ((code == 0)) && [[ "${output}" == *--container-image* ]]; then
        REPLY=loads
    elif PLUGIN_SAYS="$(grep -m 1 -E '^srun: .*(spank|[Pp]lug-?in)' <<<"${output}")"; then
        REPLY=refused
    else
        PLUGIN_SAYS="$(grep -m 1 '^srun: ' <<<"${output}" || echo "srun --help ended with ${code}")"
    fi
}
