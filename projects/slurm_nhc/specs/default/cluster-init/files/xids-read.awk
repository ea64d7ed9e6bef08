# From the kernel's log to faults of GPUs and NVSwitches: lines of one fault within near_s seconds are one event.
#
#   awk -v btime=EPOCH -v since=EPOCH -f xids-read.awk xids.tsv PAST LOG
#
# PAST: what xids-judge.awk has written earlier: lines that a job has ended with are no event with later ones.
# LOG: `journalctl --dmesg --output=short-unix` or `dmesg --kernel`, whose times count from btime. Only what the kernel
# itself says is read: journalctl names it `kernel:`, and what a program wrote to /dev/kmsg otherwise. Lines up to `since` do
# not count. Output, fields separated by tabs:
#
#   lines N                                                                how many lines of kernel messages were there
#   event FIRST LAST COUNT xid|sxid|unread ADDRESS CODE WORD DEVICE LINE
#
# WORD: Fatal, Nonfatal, the number after "to" of an XID 154, or -. DEVICE: the number of the NVSwitch, or -.

# pci TEXT: domain of four digits (the log has four, nvidia-smi eight), bus and device in lower case, no function.
function pci(text) {
    text = tolower(text)
    sub(/\.[0-9a-f]*$/, "", text)
    if (text ~ /^[0-9a-f]+:[0-9a-f]+$/) text = "0000:" text
    while (text ~ /^0[0-9a-f][0-9a-f][0-9a-f][0-9a-f]/) text = substr(text, 2)
    return text
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

# `Xid (PCI:0000:9b:00): 119, ...`, `Xid (0000:03:00): 14, ...`, with MIG `Xid (PCI:0000:9b:00 GPU-I:05): 31, ...`.
function xid(rest,    address, code, word) {
    sub(/^NVRM: Xid \((PCI:)?/, "", rest)
    if (!match(rest, /^[0-9a-fA-F:.]+/)) return note("unread", "-", 0, "-", "-")
    address = pci(substr(rest, 1, RLENGTH))
    rest = substr(rest, RLENGTH + 1)
    if (!match(rest, /^[^)]*\): */)) return note("unread", address, 0, "-", "-")
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
    } else if (rest ~ /, [A-Z][A-Z0-9_]* +Fatal( |$)/) {
        word = "Fatal"
    } else if (rest ~ /, [A-Z][A-Z0-9_]* +Nonfatal( |$)/) {
        word = "Nonfatal"
    }
    note("xid", address, code, word, "-")
}

# `nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 ...`; a line `..., Data {...` goes on with the one before.
function sxid(rest,    address, code, word, device) {
    device = rest
    sub(/^nvidia-nvswitch/, "", device)
    sub(/:.*/, "", device)
    sub(/^[^(]*\((PCI:)?/, "", rest)
    if (!match(rest, /^[0-9a-fA-F:.]+/)) return note("unread", "-", 0, "-", device)
    address = pci(substr(rest, 1, RLENGTH))
    rest = substr(rest, RLENGTH + 1)
    if (!match(rest, /^[^)]*\): */)) return note("unread", address, 0, "-", device)
    rest = substr(rest, RLENGTH + 1)
    code = number(rest)
    if (code < 0) return note("unread", address, 0, "-", device)
    word = "-"
    if (rest ~ /^[0-9]+, Fatal/) word = "Fatal"
    else if (rest ~ /^[0-9]+, Non-fatal/) word = "Nonfatal"
    else if (rest ~ /^[0-9]+, Data / && (("sxid" SUBSEP address SUBSEP code) in seen)) return
    note("sxid", address, code, word, device)
}

/^set\tnear_s\t/ { near_s = substr($0, 12) + 0 }
/^past\t/ {
    split($0, past, "\t")
    key = past[7] SUBSEP past[8] SUBSEP past[9] SUBSEP past[10]
    if (past[3] != "-") end[key, ++ends[key]] = past[5] + 0
    next
}
/^[0-9[]/ { lines++ }
!/NVRM: |nvidia-nvswitch/ { next }
{
    if (match($0, /^[0-9]+\.[0-9]+ [^ ]+ kernel: /)) {
        time = int(substr($0, 1, index($0, ".") - 1) + 0)
    } else if (match($0, /^\[ *[0-9]+\.[0-9]+\](\[[^]]*\])? /)) {
        time = int(btime + substr($0, 2, index($0, "]") - 2))
    } else {
        next
    }
    message = substr($0, RLENGTH + 1)
    if (message ~ /^NVRM: Xid \(/) xid(message)
    else if (message ~ /^NVRM: GPU (at )?(PCI:)?[0-9a-fA-F:.]+ .*fallen off the bus/) {
        address = message
        sub(/^NVRM: GPU (at )?(PCI:)?/, "", address)
        sub(/:? .*/, "", address)
        note("xid", pci(address), 79, "-", "-")
    } else if (message ~ /^nvidia-nvswitch[0-9]+: SXid \(/) sxid(message)
}
END {
    printf "lines\t%d\n", lines
    for (each = 1; each <= events; each++) {
        printf "event\t%d\t%d\t%d\t%s\n", first[each], last[each], count[each], what[each]
    }
}
