#!/usr/bin/env bash
# In the virtual machine: disks come and go. Unbinding a controller from its driver takes the disk away, binding it lets
# the kernel find it anew, with udev's events and md's assembly, as at a boot. Sourced by each scenario.
set -euo pipefail
readonly MAP=/run/disks DRIVER=/sys/bus/pci/drivers/nvme

# serial and PCI address of every controller but the system's, written once while all are bound
if [[ ! -e "${MAP}" ]]; then
    for controller in /sys/class/nvme/nvme*; do
        read -r serial <"${controller}/serial"
        [[ "${serial}" == ROOT ]] || echo "${serial} $(<"${controller}/address")"
    done >"${MAP}"
fi

# only SERIAL...: exactly these disks are there.
only() {
    local serial address
    local -a found
    while read -r serial address; do
        if [[ " $* " == *" ${serial} "* ]]; then
            [[ -e "${DRIVER}/${address}" ]] || echo "${address}" >"${DRIVER}/bind"
        elif [[ -e "${DRIVER}/${address}" ]]; then
            echo "${address}" >"${DRIVER}/unbind"
        fi
    done <"${MAP}"
    # The system's disk is the one more.
    until
        found=(/sys/class/nvme/nvme*/nvme*n1)
        ((${#found[@]} == $# + 1))
    do
        sleep 0.1
    done
    udevadm settle
}

# again: what a reboot does to the disks that are there.
again() {
    local -a there=()
    release
    while read -r serial address; do
        if [[ -e "${DRIVER}/${address}" ]]; then there+=("${serial}"); fi
    done <"${MAP}"
    only
    only "${there[@]}"
}

# device SERIAL: today's name of a disk.
device() {
    local controller serial
    for controller in /sys/class/nvme/nvme*; do
        read -r serial <"${controller}/serial"
        if [[ "${serial}" == "$1" ]]; then
            basename "${controller}"/nvme*n1
            return
        fi
    done
    return 1
}

# release: nothing is mounted or assembled any more.
release() {
    local path
    for path in /nvme /mnt/resource_nvme /opt/db; do
        while mountpoint -q "${path}"; do umount "${path}"; done
    done
    mdadm --stop --scan 2>/dev/null || true
    udevadm settle
}

# fresh SERIAL...: exactly these disks are there, and blank.
fresh() {
    local serial
    release
    only "$@"
    release
    for serial in "$@"; do
        # A broken disk cannot be discarded; it stays as it is.
        blkdiscard --force "/dev/$(device "${serial}")" 2>/dev/null || true
    done
    rm -rf /nvme /var/lib/cycleforge
}

# nvme [EXPECTED [WAIT_S]]: our program, as its unit runs it.
nvme() {
    mkdir -p /etc/cycleforge
    printf 'mount_point=/nvme\nexpected_disks=%s\nwait_s=%s\n' "${1:-0}" "${2:-0}" >/etc/cycleforge/nvme.conf
    bash /opt/cycleforge/misc_ndv4/nvme.sh 2>&1
}

shown() {
    echo "shown: $(findmnt -n -o SOURCE,FSTYPE --mountpoint /nvme | tr -s ' ' || echo nothing) $(stat -c %a /nvme 2>/dev/null)" \
        "$(cat /nvme/marker 2>/dev/null)"
}
