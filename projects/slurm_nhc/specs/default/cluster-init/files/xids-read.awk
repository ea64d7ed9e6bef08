# From the kernel's log to faults of GPUs and NVSwitches: lines of one fault within near_s seconds are one event.
#
#   awk -v btime=EPOCH -v since=EPOCH -v devices="ADDRESS ..." [-v from=CURSOR] -f kernel-log.awk -f xids-read.awk
#       xids.tsv PAST - <LOG
#
# PAST: what xids-judge.awk has written earlier: lines that a job has ended with are no event with later ones. Where the log
# begins at `from`, also what the driver had said before.
# devices: PCI addresses of NVIDIA's devices. Records up to `since` do not count. Output, fields separated by tabs:
#
#   records N                                                              how many messages of the kernel were there
#   event FIRST LAST COUNT xid|sxid|unread ADDRESS CODE WORD DEVICE LINE
#   said ADDRESS TEXT                                                      what else the driver says of a GPU
#   stray N                                                                records in its form, but of no such device
#   ended, lost, mark                                                      how the reading ended: kernel-log.awk
#
# WORD: Fatal, Nonfatal, the number after "to" of an XID 154, or -. DEVICE: the number of the NVSwitch, or -.
#
# Nothing in a record says which part of the kernel wrote it: the driver uses printk. So its form counts from the begin of
# the record on. Of a record that the kernel begins with the name of a program, a user chooses 15 bytes, and every form
# below has more before its address ends. Forms: NVIDIA/open-gpu-kernel-modules src/nvidia/src/kernel/gpu/rc/kernel_rc.c
# (krcReportXid), src/nvidia/arch/nvalloc/unix/src/osinit.c and osapi.c, src/common/nvswitch/kernel/inc/common_nvswitch.h.

BEGIN {
    wanted = "NVRM: |nvidia-nvswitch"
    digit = "[0-9a-fA-F]"
    address_form = "^" digit digit digit digit "+:" digit digit ":" digit digit "(\\.[0-7])?"
    failure = "[Ff]ail|[Ff]allen|[Ll]ost"
    id_form = digit digit digit digit
    listed_devices = split(devices, list_of_devices, " ")
    for (each = 1; each <= listed_devices; each++) is_device[list_of_devices[each]] = 1
}

# pci TEXT: domain of four digits (the log has four, nvidia-smi eight), bus and device in lower case, no function.
function pci(text) {
    text = tolower(text)
    sub(/\.[0-7]$/, "", text)
    while (text ~ /^0[0-9a-f][0-9a-f][0-9a-f][0-9a-f]/) text = substr(text, 2)
    return text
}

# after BEGIN: the address behind the begin (a pattern) of the message, and in `rest` what follows; nothing where no device of
# NVIDIA has it.
function after(begin,    address) {
    if (!match(message, "^" begin)) return ""
    rest = substr(message, RLENGTH + 1)
    if (!match(rest, address_form)) return ""
    address = pci(substr(rest, 1, RLENGTH))
    rest = substr(rest, RLENGTH + 1)
    if (address in is_device) return address
    strays++
    return ""
}

function note(kind, address, code, word, device,    key, text) {
    key = kind SUBSEP address SUBSEP code
    seen[key] = 1
    if (time <= since) return
    # A recovery action that comes back is an event of its own: the last one counts.
    if (code == 154 && word != newest[key]) delete open[key SUBSEP word]
    newest[key] = word
    key = key SUBSEP word
    while (ended[key] < ends[key] && end[key, ended[key] + 1] < time) {
        ended[key]++
        if ((key in open) && end[key, ended[key]] >= last[open[key]]) delete open[key]
    }
    if (!(key in open) || time - last[open[key]] > near_s) {
        open[key] = ++events
        text = message
        gsub(/[^ -~]/, "?", text)
        first[events] = last[events] = time
        what[events] = kind "\t" address "\t" code "\t" word "\t" device "\t" substr(text, 1, 160)
    }
    count[open[key]]++
    if (time < first[open[key]]) first[open[key]] = time
    if (time > last[open[key]]) last[open[key]] = time
}

# number TEXT: the code at its start, at most six digits; -1 where there is none.
function number(text) {
    if (!match(text, /^[0-9]+/) || RLENGTH > 6 || substr(text, RLENGTH + 1) ~ /^[A-Za-z_]/) return -1
    return substr(text, 1, RLENGTH) + 0
}

# `NVRM: Xid (PCI:0000:9b:00): 119, ...`, `NVRM: Xid (0000:03:00): 14, ...`, with MIG `(PCI:0000:9b:00 GPU-I:05): 31, ...`. Behind
# `name=` stands the name of a program, so of the words of the driver the last ones count, which follow it.
function xid(address,    code, word, found) {
    if (!match(rest, /^( [^()]*)?\): */)) return note("unread", address, 0, "-", "-")
    rest = substr(rest, RLENGTH + 1)
    code = number(rest)
    if (code < 0) return note("unread", address, 0, "-", "-")
    word = "-"
    if (code == 154) {
        if (!match(rest, /GPU recovery action changed from 0x[0-9a-fA-F]+ [^)]*\)? *to 0x[0-9a-fA-F]+/)) {
            return note("unread", address, code, "-", "-")
        }
        word = tolower(substr(rest, RSTART, RLENGTH))
        sub(/^.*to 0x0*/, "0x", word)
        if (word == "0x") word = "0x0"
    } else {
        while (match(rest, /, [A-Z][A-Z0-9_]* +(Fatal|Nonfatal)( |$)/)) {
            found = substr(rest, RSTART, RLENGTH)
            word = found ~ /Nonfatal/ ? "Nonfatal" : "Fatal"
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
    note("xid", address, code, word, "-")
    speaks(address, "XID " code)
}

# `nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 ...`; a line `..., Data {...` goes on with the one before.
function sxid(address,    code, word, device) {
    device = substr(message, length("nvidia-nvswitch") + 1)
    sub(/:.*/, "", device)
    if (!match(rest, /^\): */)) return note("unread", address, 0, "-", device)
    rest = substr(rest, RLENGTH + 1)
    code = number(rest)
    if (code < 0) return note("unread", address, 0, "-", device)
    word = "-"
    if (rest ~ /^[0-9]+, Fatal/) word = "Fatal"
    else if (rest ~ /^[0-9]+, Non-fatal/) word = "Nonfatal"
    else if (rest ~ /^[0-9]+, Data / && (("sxid" SUBSEP address SUBSEP code) in seen)) return
    note("sxid", address, code, word, device)
}

# probed TEXT: a GPU that does not answer when the driver first sees it has no XID, but three lines: in one record, or in
# three where a log of lines was read in.
function probed(text,    lines, count_of, each, address, whole) {
    whole = message
    count_of = split(text, lines, "\n")
    for (each = 1; each <= count_of; each++) {
        message = lines[each]
        if (message ~ /^NVRM: The NVIDIA GPU /) {
            address = after("NVRM: The NVIDIA GPU ")
            probe = (rest == "") ? address : ""
            probe_lines = 1
            together()
        } else if (probe_lines == 1 && message ~ "^NVRM: \\(PCI ID: " id_form ":" id_form "\\) installed in this system has$") {
            probe_lines = 2
        } else if (probe_lines == 2 && probe != "" && message ~ /^NVRM: fallen off the bus and is not responding to commands\.?$/) {
            probe_lines = 0
            message = whole
            note("xid", probe, 79, "-", "-")
            speaks(probe, "fallen off the bus and is not responding to commands")
        }
    }
}

# speaks ADDRESS TEXT: what the driver says of a GPU; the first words about a failure, otherwise the first ones.
function speaks(address, text) {
    if (time <= since || text ~ /^GPU-/) return
    gsub(/[^ -~]/, "?", text)
    if (text ~ failure && !(address in complained)) complained[address] = 1
    else if (address in said) return
    said[address] = substr(text, 1, 100)
}

function record(    address) {
    rest = ""
    if (message ~ /^NVRM: Xid \(/) {
        if ((address = after("NVRM: Xid \\((PCI:)?")) != "") xid(address)
    } else if (message ~ /^NVRM: GPU /) {
        if ((address = after("NVRM: GPU (at )?(PCI:)?")) == "") return
        sub(/^:? /, "", rest)
        if (rest ~ /^(GPU )?has fallen off the bus/) note("xid", address, 79, "-", "-")
        speaks(address, rest)
    } else if (message ~ /^NVRM: (The NVIDIA GPU|\(PCI ID: |fallen off )/) {
        probed(message)
    } else if (message ~ /^nvidia-nvswitch[0-9]+: SXid \(/) {
        if ((address = after("nvidia-nvswitch[0-9]+: SXid \\((PCI:)?")) != "") sxid(address)
    }
}

/^set\tnear_s\t/ { near_s = substr($0, 12) + 0 }
/^past\t/ {
    split($0, past, "\t")
    key = past[7] SUBSEP past[8] SUBSEP past[9] SUBSEP past[10]
    if (past[3] != "-") end[key, ++ends[key]] = past[5] + 0
    if (from != "") seen[past[7] SUBSEP past[8] SUBSEP past[9]] = 1
    next
}
from != "" && /^said\t/ {
    split($0, past, "\t")
    said[past[2]] = past[3]
    if (past[3] ~ failure) complained[past[2]] = 1
    next
}
END {
    printf "records\t%d\n", records
    for (each = 1; each <= events; each++) {
        printf "event\t%d\t%d\t%d\t%s\n", first[each], last[each], count[each], what[each]
    }
    for (address in said) printf "said\t%s\t%s\n", address, said[address]
    if (strays) printf "stray\t%d\n", strays
    how_it_ended()
}
