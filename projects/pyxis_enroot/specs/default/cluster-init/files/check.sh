#!/usr/bin/env bash
# Would a container start here? Found out without a job and without a change, as an ordinary user where it matters. What
# is wrong becomes a warning with what to do: a node that runs other jobs well is not failed for its containers.
# Sourced after cycleforge.sh and plugstack.sh.

readonly CHECK_LIMIT_S=20
# Source: the packages' dependencies in pkg/deb/control of enroot 4.1.2.
readonly IMPORT_CALLS=(curl jq parallel zstd mksquashfs unsquashfs)
PROBLEMS=0
FACTS=()

problem() {
    cf_warn "$@"
    PROBLEMS=$((PROBLEMS + 1))
}

# limited COMMAND...: exit code of a bounded command, what it printed in REPLY.
limited() {
    local code=0
    REPLY="$(timeout --kill-after=5 "${CHECK_LIMIT_S}" "$@" 2>&1 </dev/null)" || code=$?
    return "${code}"
}

first_line_of() { head -n 1 <<<"$1"; }

slurm_says() { grep -m 1 '^srun: ' <<<"$1" || echo "Slurm gives no reason"; }

# srun reads the plug-ins and their options before it talks to the controller.
check_plugin() {
    local code=0
    if ! command -v srun >/dev/null; then
        problem "srun is not installed: whether Slurm loads pyxis is not known"
        return
    fi
    limited srun --help || code=$?
    if ((code == 0)) && [[ "${REPLY}" == *--container-image* ]]; then
        FACTS+=("srun has --container-image")
    elif ((code == 124 || code == 137)); then
        problem "'srun --help' did not end within ${CHECK_LIMIT_S} s: whether Slurm loads pyxis is not known"
    elif ((code != 0)); then
        problem "'srun --help' failed: $(slurm_says "${REPLY}"). Slurm's files in /etc/slurm or its plug-ins are broken"
    elif ((${#PLUGIN_LINES[@]})); then
        problem "srun has no --container-image although a line names ${PLUGIN_LIBRARY}: $(slurm_says "${REPLY}")"
    else
        problem "srun has no --container-image: pyxis is not installed on this node"
    fi
}

check_enroot() {
    if ! limited enroot version || [[ ! "${REPLY}" =~ ^[0-9]+(\.[0-9]+)+$ ]]; then
        problem "'enroot version' failed: $(first_line_of "${REPLY:-no answer within ${CHECK_LIMIT_S} s}")." \
            "Install the enroot package again"
        return
    fi
    FACTS+=("enroot ${REPLY}")
}

setting() { cat "${CF_ROOT}/proc/sys/$1" 2>/dev/null || true; }

# What every container start does first, as a user without rights; the kernel's settings say why it failed.
check_namespaces() {
    local said why
    if limited setpriv --reuid=65534 --regid=65534 --clear-groups enroot-nsenter --user --mount true; then
        FACTS+=("user namespaces work")
        return
    fi
    said="$(first_line_of "${REPLY}")"
    if [[ "$(setting user/max_user_namespaces)" =~ ^[01]$ ]]; then
        why="user.max_user_namespaces is $(setting user/max_user_namespaces); write 'user.max_user_namespaces = 15000' to a file in /etc/sysctl.d"
    elif [[ "$(setting kernel/unprivileged_userns_clone)" == 0 ]]; then
        why="kernel.unprivileged_userns_clone is 0; write 'kernel.unprivileged_userns_clone = 1' to a file in /etc/sysctl.d"
    elif [[ "$(setting kernel/apparmor_restrict_unprivileged_userns)" == 1 ]]; then
        why="AppArmor restricts user namespaces; load enroot's profile: apparmor_parser --replace /etc/apparmor.d/enroot"
    else
        why="run 'enroot-nsenter --user --mount true' as an ordinary user"
    fi
    problem "ordinary users cannot start containers (${said:-no reason given}): ${why}"
}

# Only `enroot import docker://...` needs these; an image file (.sqsh) on a shared disk starts without.
check_import() {
    local program
    local -a missing=()
    for program in "${IMPORT_CALLS[@]}"; do
        if ! command -v "${program}" >/dev/null; then missing+=("${program}"); fi
    done
    if ((${#missing[@]})); then problem "enroot needs ${missing[*]} (unsquashfs for every image): install the packages"; fi
    if command -v getcap >/dev/null && command -v enroot-aufs2ovlfs >/dev/null &&
        [[ "$(getcap "$(command -v enroot-aufs2ovlfs)")" != *cap_sys_admin* ]]; then
        problem "enroot-aufs2ovlfs lacks its capability: ordinary users cannot import images of a registry." \
            "Install enroot+caps"
    fi
    if ! grep -q -w overlay "${CF_ROOT}/proc/filesystems" 2>/dev/null && ! limited modprobe --dry-run --quiet overlay; then
        problem "the kernel has no overlay file system: images of a registry cannot be imported"
    fi
}

# An import holds the image three times: layers in temp, image in runtime, container in data.
check_space() {
    local -r folder="$1" min_gib="$2"
    local free_kib
    free_kib="$(timeout "${CHECK_LIMIT_S}" df -P -k "${CF_ROOT}${folder}" | awk 'NR == 2 { print $4 }' || true)"
    if [[ ! "${free_kib}" =~ ^[0-9]+$ ]]; then
        problem "free space of ${folder} is not known"
        return
    fi
    FACTS+=("$((free_kib / 1048576)) GiB free")
    if ((free_kib / 1048576 < min_gib)); then
        problem "${folder} has $((free_kib / 1048576)) GiB free, expected at least ${min_gib} GiB: importing a large image" \
            "may fail with 'No space left on device'. Choose a VM size with local NVMe, or set cycleforge.enroot.scratch"
    fi
}

cf_container_check() {
    local -r scratch="$1" min_gib="$2" role="$3"
    local facts=""
    check_plugin
    if [[ "${role}" != scheduler ]]; then
        if command -v enroot >/dev/null; then
            check_enroot
            check_namespaces
            check_import
        else
            problem "enroot is not installed: srun --container-image fails on this node; the lines of 05-install.sh say why"
        fi
        check_space "${scratch}" "${min_gib}"
    fi
    if ((${#FACTS[@]})); then printf -v facts '%s, ' "${FACTS[@]}"; fi
    if ((PROBLEMS == 1)); then facts+="1 problem"; else facts+="${PROBLEMS} problems"; fi
    cf_outcome "${facts}"
}
