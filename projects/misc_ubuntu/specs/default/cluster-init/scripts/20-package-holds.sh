#!/usr/bin/env bash
# Kernel and drivers belong together: a lone update of one takes the GPUs, InfiniBand or Lustre of a node away.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../files source-path=SCRIPTDIR/../../../../../_lib source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"

readonly KERNEL_DEB='^linux-(image|headers|modules|modules-extra|azure|tools|cloud-tools)([.-].*)?$'
readonly DRIVER_DEB='^(nvidia-(driver|dkms|kernel|utils|fabricmanager|imex).*|libnvidia-.*|cuda-drivers.*|mlnx-ofed-.*|doca-ofed.*|amlfs-lustre-client-.*)$'
readonly EL_PATTERNS=(kernel kernel-core 'kernel-modules*' 'nvidia-driver*' 'kmod-nvidia*' 'mlnx-ofa_kernel*' 'amlfs-lustre-client*')

# Package names that the attribute adds, in EXTRA.
declare -a EXTRA=()
read_extra() {
    cf_attribute cycleforge.packages.hold ""
    if [[ ! "${REPLY}" =~ ^[A-Za-z0-9\ ,.+_:*-]*$ ]]; then
        cf_die "attribute cycleforge.packages.hold is '${REPLY}', expected package names separated by spaces or commas" "" \
            "correct it in the definition and build again"
    fi
    read -r -a EXTRA <<<"${REPLY//,/ }"
}

# EXTRA as one anchored expression in REPLY; empty when there is none.
extra_expression() {
    local names="${EXTRA[*]}"
    names="${names//./\\.}"
    names="${names//+/\\+}"
    names="${names//\*/.*}"
    REPLY="${names:+^(${names// /|})\$}"
}

# Holding needs the package lock; somebody else's transaction may run for a while.
hold_packages() { apt-mark hold "$@" >/dev/null; }

hold_deb() {
    local name status extra marked installed
    local -a wanted=()
    local -A held=()
    extra_expression
    extra="${REPLY}"
    # Read completely first: a list that could not be had must not look like an empty one.
    marked="$(apt-mark showhold)"
    installed="$(dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n')"
    while read -r name; do
        if [[ -n "${name}" ]]; then held["${name%%:*}"]=1; fi
    done <<<"${marked}"
    while read -r status name; do
        if [[ "${status}" == ?i* && -z "${held[${name}]:-}" ]] &&
            [[ "${name}" =~ ${KERNEL_DEB} || "${name}" =~ ${DRIVER_DEB} || (-n "${extra}" && "${name}" =~ ${extra}) ]]; then
            wanted+=("${name}")
        fi
    done <<<"${installed}"
    if ((${#wanted[@]} > 0)); then
        cf_attribute_int cycleforge.apt.wait_s 300 0 3600
        cf_wait_for "${REPLY}" hold_packages "${wanted[@]}" ||
            cf_die "apt-mark hold did not succeed within ${REPLY} s" "another program holds the package lock" \
                "see 'ps aux | grep -E \"apt|dpkg\"' on the node; raise cycleforge.apt.wait_s if it only needs longer"
    fi
    cf_outcome "${#wanted[@]} newly held: ${wanted[*]:-none}"
}

# dnf has no drop-in folder, so the one line of dnf.conf is extended: the file is written whole, other lines stay.
exclude_el() {
    local -r conf="${CF_ROOT}/etc/dnf/dnf.conf"
    local present pattern line content
    local -a missing=()
    if [[ ! -r "${conf}" ]]; then
        cf_outcome "no dnf.conf"
        return
    fi
    present=" $(sed -n -E 's/^(exclude|excludepkgs)[[:space:]]*=[[:space:]]*//p' "${conf}" | tr ',\n' '  ') "
    for pattern in "${EL_PATTERNS[@]}" "${EXTRA[@]}"; do
        if [[ "${present}" != *" ${pattern} "* ]]; then missing+=("${pattern}"); fi
    done
    if ((${#missing[@]} > 0)); then
        line="excludepkgs=$(tr -s ' ' <<<"${present# } ${missing[*]}" | sed -E 's/^ +| +$//g')"
        # Read completely before the file is replaced: a failing awk must not leave an empty dnf.conf.
        content="$(awk -v line="${line}" '
            /^(exclude|excludepkgs)[[:space:]]*=/ { next }
            { print }
            /^\[main\]/ && !done { print line; done = 1 }
            END { if (!done) print "[main]\n" line }' "${conf}")"
        cf_write "${conf}" 0644 <<<"${content}"
    fi
    cf_outcome "${#missing[@]} newly excluded: ${missing[*]:-none}"
}

main() {
    cf_attribute_bool cycleforge.packages.hold_kernel true
    if [[ "${REPLY}" == false ]]; then
        cf_log "package holds: off by cycleforge.packages.hold_kernel"
        return
    fi
    read_extra
    cf_os
    case "${REPLY}" in
        ubuntu*) cf_step "package holds" hold_deb ;;
        el*) cf_step "package excludes" exclude_el ;;
        *) cf_warn "operating system '${REPLY#unknown }' is not known to this project; no package is held" ;;
    esac
}

cf_main main "$@"
