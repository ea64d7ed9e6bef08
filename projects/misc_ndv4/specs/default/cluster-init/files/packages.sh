#!/usr/bin/env bash
# A distribution's package where the image lacks it. Sourced by the scripts, never run. Nothing is ever compiled.

# install_package NAME...: install the first of these names that a repository of this system has; 1 when none was.
# Every wait ends: for another package transaction after cycleforge.apt.wait_s, for a download after 600 s.
install_package() {
    local name attempt
    local -a install refresh
    cf_attribute_int cycleforge.apt.wait_s 300 0 3600
    local -r wait_s="${REPLY}"
    cf_os
    case "${REPLY}" in
        ubuntu*)
            install=(env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get
                -o "DPkg::Lock::Timeout=${wait_s}" install --yes --no-install-recommends)
            refresh=(apt-get -o "DPkg::Lock::Timeout=${wait_s}" update)
            ;;
        el*)
            install=(dnf --assumeyes --setopt=install_weak_deps=False install)
            refresh=(dnf --assumeyes makecache)
            ;;
        *)
            cf_warn "operating system '${REPLY}' is not known here, so no package is installed: $*"
            return 1
            ;;
    esac
    # The lists of an image may be empty or old, so a second attempt follows their renewal.
    for attempt in 1 2; do
        for name in "$@"; do
            if timeout --kill-after=10 $((wait_s + 600)) "${install[@]}" "${name}" >&2; then
                REPLY="${name}"
                return 0
            fi
        done
        if ((attempt == 1)); then timeout --kill-after=10 $((wait_s + 300)) "${refresh[@]}" >&2 || return 1; fi
    done
    return 1
}
