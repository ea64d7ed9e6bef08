# From the kernel's log to messages of amdgpu about GPUs that the bus has.
#
#   awk -v btime=EPOCH -v since=EPOCH -v devices="ADDRESS ..." -f kernel-log.awk -f amd-read.awk - <LOG
#
# Output, fields separated by tabs:
#
#   records N                 how many messages of the kernel were there
#   message ADDRESS TEXT      TEXT without what stands before every message; ADDRESS - where the driver names none
#   ended, lost, mark         how the reading ended: kernel-log.awk
#
# The kernel says of a message of dev_err() and its like which device it is about. One of DRM_ERROR() names only the function,
# and the module where amdgpu is one; drm_err() has both. Like the address this is longer than the 15 bytes of its own that
# a program can put at the begin of a record. RAS messages count events in braces, with a blank behind them or without one.
# Source: Linux include/drm/drm_print.h, drivers/base/core.c (dev_printk_emit), drivers/gpu/drm/amd/ras.
BEGIN {
    wanted = "amdgpu"
    listed_devices = split(devices, list_of_devices, " ")
    for (each = 1; each <= listed_devices; each++) is_device[list_of_devices[each]] = 1
}

function record(    address, text) {
    if (time <= since) return
    text = message
    gsub(/[^ -~]/, "?", text)
    if (match(text, /^amdgpu [0-9a-f]+:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f]\.[0-7]: /)) {
        address = substr(text, 8, RLENGTH - 9)
        if (!(address in is_device) || (device != "" && device != "+pci:" address)) return
        text = substr(text, RLENGTH + 1)
    } else if (listed_devices && match(text, /^\[drm:([a-zA-Z0-9_.]+ \[amdgpu\]|amdgpu_[a-z0-9_.][a-z0-9_.]+)\] /)) {
        address = "-"
        text = substr(text, RLENGTH + 1)
    } else return
    sub(/^(amdgpu: |\[drm\] |\[drm:[a-zA-Z0-9_.]+( \[amdgpu\])?\] |\*ERROR\* |[{][0-9]+[}] ?)+/, "", text)
    kept[++count] = "message\t" address "\t" substr(text, 1, 200)
}

END {
    printf "records\t%d\n", records
    for (each = 1; each <= count; each++) print kept[each]
    how_it_ended()
}
