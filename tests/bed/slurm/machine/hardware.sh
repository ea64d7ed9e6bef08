#!/usr/bin/env bash
set -euo pipefail
for file in cpuinfo meminfo; do mount --bind "/fake/proc/${file}" "/proc/${file}"; done
# The classes that exist stay visible; infiniband is the one that is added.
mkdir -p /run/fake-class
mount --rbind /fake/sys/class /run/fake-class
for class in /sys/class/*; do
    mkdir -p "/run/fake-class/${class##*/}"
    mount --bind "${class}" "/run/fake-class/${class##*/}"
done
mount --rbind /run/fake-class /sys/class
mount --bind /fake/sys/block /sys/block
mount --bind /fake/sys/module /sys/module
mount --bind /fake/sys/bus/pci/devices /sys/bus/pci/devices
