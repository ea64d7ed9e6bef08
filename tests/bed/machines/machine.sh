#!/usr/bin/env bash
# machine.sh KIND FOLDER LOWER NAME [SOURCE TARGET ro|rw]...: mount a throw-away overlay and hold it. KIND is overlay, or
# booted: then systemd runs in it. First process of mount, UTS, IPC, process and perhaps network namespaces: when it
# ends, the kernel ends everything in them and drops the mounts.
#
# FOLDER becomes a tmpfs that only these namespaces see: upper layer u, work folder w, merged root m. It is removed at the
# end. LOOPBACK=yes brings lo up, CGROUPS are the control groups below which to work, MASKED are units that do not start.
set -euo pipefail
readonly kind="$1" folder="$2" lower="$3" name="$4"
readonly root="${folder}/m"
shift 4
nspawn=""

mount_overlay() {
    mount -t proc proc /proc
    mount -t tmpfs -o size=4g,mode=755 tmpfs "${folder}"
    mkdir "${folder}/u" "${folder}/w" "${root}"
    mount -t overlay overlay -o "lowerdir=${lower},upperdir=${folder}/u,workdir=${folder}/w" "${root}"
    hostname "${name}"
    if [[ "${LOOPBACK:-no}" == yes ]]; then ip link set lo up; fi
}

mount_kernel() {
    # One process for all of them. A script that sets a kernel parameter must not set the host's.
    printf '%s\n' "proc ${root}/proc proc defaults" "${root}/proc/sys ${root}/proc/sys none bind,ro" "sysfs ${root}/sys sysfs ro" \
        "tmpfs ${root}/dev tmpfs mode=755" "tmpfs ${root}/run tmpfs mode=755" "tmpfs ${root}/tmp tmpfs mode=1777" \
        "devpts ${root}/dev/pts devpts X-mount.mkdir,newinstance,ptmxmode=0666" >"${folder}/fstab"
    mount --all --fstab "${folder}/fstab"
    install -d -m 1777 "${root}/dev/shm" "${root}/run/lock"
    ln -s pts/ptmx "${root}/dev/ptmx"
}

# Those of the host, by one process: there are hundreds of machines.
make_devices() {
    cp -a /dev/{null,zero,full,random,urandom,tty,fd,stdin,stdout,stderr} "${root}/dev"
}

bind_all() {
    while (($# > 0)); do
        if [[ -d "$1" ]]; then
            mkdir -p "${root}$2"
        elif [[ ! -e "${root}$2" ]]; then
            install -D -m 644 /dev/null "${root}$2"
        fi
        mount --bind "$1" "${root}$2"
        if [[ "$3" == ro ]]; then mount -o remount,bind,ro "${root}$2"; fi
        shift 3
    done
}

# Generators that find nothing in a container: encrypted disks, partitions, a hibernated image, boot options, an update in
# progress, file systems, consoles, services that have an old init script alone. systemd would start each at every boot
# and at every daemon-reload.
IDLE_GENERATORS=(cryptsetup debug fstab getty gpt-auto hibernate-resume integritysetup rc-local run system-update sysv veritysetup)
readonly IDLE_GENERATORS

boot() {
    local parent generator unit
    local -a options=()
    while (($# > 0)); do
        if [[ "$3" == ro ]]; then options+=("--bind-ro=$1:$2"); else options+=("--bind=$1:$2"); fi
        shift 3
    done
    # Two machines in one control group would count each other's processes as their own.
    for parent in ${CGROUPS}; do
        mkdir "${parent}/${folder##*/}"
        echo 0 >"${parent}/${folder##*/}/cgroup.procs"
    done
    # What nspawn keeps there carries the machine's name, which another machine may have too.
    mkdir -p /run/systemd
    mount -t tmpfs -o mode=755 tmpfs /run/systemd
    printf '%s\n' "${name}" >"${root}/etc/hostname"
    mkdir -p "${root}/etc/systemd/system-generators"
    for generator in "${IDLE_GENERATORS[@]}"; do
        ln -sfn /dev/null "${root}/etc/systemd/system-generators/systemd-${generator}-generator"
    done
    for unit in ${MASKED:-}; do ln -sfn /dev/null "${root}/etc/systemd/system/${unit}"; done
    systemd-nspawn --quiet --register=no --keep-unit --resolv-conf=off --link-journal=no --timezone=off \
        --machine="${name}" "${options[@]}" \
        --directory="${root}" --boot </dev/null >&2 &
    nspawn="$!"
}

remove_control_groups() {
    local parent group tries
    for parent in ${CGROUPS}; do
        group="${parent}/${folder##*/}"
        if [[ ! -d "${group}" ]]; then continue; fi
        echo 0 >"${parent}/cgroup.procs"
        # The kernel may still be taking dead processes out of their groups.
        tries=500
        until find "${group}" -depth -type d -exec rmdir {} + 2>/dev/null || ((--tries == 0)); do sleep 0.02; done
    done
}

finish() {
    trap - EXIT
    if [[ -n "${nspawn}" ]]; then
        # The container's first process; with it the kernel ends all others in it.
        xargs --no-run-if-empty kill -KILL <"/proc/${nspawn}/task/${nspawn}/children" || true
        kill -KILL "${nspawn}" || true
        wait "${nspawn}" || true
    fi
    if [[ "${kind}" == booted ]]; then remove_control_groups; fi
    umount --lazy "${folder}" || true
    rmdir "${folder}"
}

trap finish EXIT

mount_overlay
if [[ "${kind}" == booted ]]; then
    boot "$@"
else
    mount_kernel
    make_devices
    bind_all "$@"
fi
printf 'ready\n'
# A test that is killed closes this pipe.
read -r _ || true
