#!/usr/bin/env bash
# In the virtual machine: one request a line on the second serial port (base64 of a Bash script), one answer a line
# (exit code and base64 of the output). At the first boot it unpacks the tar file on the virtio disk to /job.
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
if [[ ! -d /job ]]; then
    modprobe virtio_blk
    udevadm settle
    mkdir /job.new
    tar -C /job.new -xf /dev/vda
    mv /job.new /job
fi
printf 'ready %s\n' "$(</proc/sys/kernel/random/boot_id)" >&3
while read -r request <&3; do
    code=0
    base64 -d <<<"${request}" >/run/request
    bash /run/request >/run/output 2>&1 3<&- || code=$?
    printf '%s %s\n' "${code}" "$(base64 -w 0 /run/output)" >&3
done
