# The kernel's log as records. Loaded before a reader, which sets `wanted` and declares record():
#
#   awk -v btime=EPOCH -f kernel-log.awk -f READER [FILE]... -
#
# Standard input: `journalctl --output=json`, or /dev/kmsg, whose times count from btime. The reader gets each record of the
# kernel's own (facility 0, which no program can write) that contains one of the words `wanted`, with a bar between them: its
# whole text with its line breaks in `message`, its epoch second in `time`, and in `device` what the kernel says which device
# it is about. The number of records of the kernel is in `records`.
#
# Where -v from=CURSOR is given the log begins with this record, which an earlier run has read. how_it_ended() prints what the
# caller needs of it:
#
#   ended CODE      how the program that wrote the log has ended; 124: it was cut off, and the rest is for the next run
#   lost            /dev/kmsg has lost records while it was read
#   mark CURSOR     where the next run can begin
#
# A reader that makes one thing of a few records in a row calls together() at the first one, so that no run begins within.
#
# Any user can put text into a record: the kernel prints the name of a program that crashes (15 bytes, also line breaks)
# and of its file (255 bytes). So what follows a line break is never the begin of a record. In JSON a quote within a text
# stands behind a backslash, so `"KEY":` without one is a key. In /dev/kmsg a line break within a text is written \x0a.
# Where net.netfilter.nf_log_all_netns is 1 (it is 0 unless somebody sets it), a user's own namespace begins records with up to
# 127 bytes that the user chooses. Behind them stands the packet, by which such a record is known and left out.
# Sources: Linux arch/x86/mm/fault.c (show_signal_msg), kernel/printk/printk.c, net/netfilter/nf_log_syslog.c,
# net/bridge/netfilter/ebt_log.c; systemd src/shared/logs-show.c.

BEGIN {
    # So many records are quickly read again, and then a node that is at rest writes nothing.
    mark_after = 2000
    # Longer than the 15 bytes of a program's name, which stands in messages of the driver.
    packet = "IN=[^ ]* OUT=[^ ]* (.*(SRC=[^ ]* DST=|MACPROTO=|ARP HTYPE=|MAC source = |TRUNCATED)|(PHYS(IN|OUT)=[^ ]* )*(MAC=[0-9a-f:]* *)?$)"
}

function hexadecimal(text) {
    text = tolower(text)
    return (index("0123456789abcdef", substr(text, 1, 1)) - 1) * 16 + index("0123456789abcdef", substr(text, 2, 1)) - 1
}

function character(number) {
    if (number == 10) return "\n"
    return number < 32 || number > 126 ? "?" : sprintf("%c", number)
}

# plain TEXT: without the escapes of JSON and of /dev/kmsg; what is no ASCII is "?".
function plain(text,    out, at, kind) {
    while ((at = index(text, "\\")) > 0) {
        kind = substr(text, at + 1, 1)
        out = out substr(text, 1, at - 1)
        if (kind == "x") out = out character(hexadecimal(substr(text, at + 2, 2)))
        else if (kind == "u") out = out (substr(text, at + 2, 2) == "00" ? character(hexadecimal(substr(text, at + 4, 2))) : "?")
        else out = out (kind == "n" ? "\n" : kind ~ /["\\\/]/ ? kind : "?")
        text = substr(text, at + (kind == "x" ? 4 : kind == "u" ? 6 : 2))
    }
    out = out text
    gsub(/[^ -~\n]/, "?", out)
    return out
}

# from_bytes TEXT: what journalctl writes as a list of numbers, because it is not all printable.
function from_bytes(text,    out, bytes, each, count_of) {
    gsub(/[^0-9,]/, "", text)
    count_of = split(text, bytes, ",")
    for (each = 1; each <= count_of; each++) out = out character(bytes[each] + 0)
    return out
}

# as_bytes WORDS: a pattern for them in a list of numbers.
function as_bytes(words,    out, each, at, code) {
    for (code = 32; code < 127; code++) code_of[sprintf("%c", code)] = code
    for (each = 1; each <= length(words); each++) {
        at = substr(words, each, 1)
        if (at == "|") out = out "|"
        else out = out (out == "" || out ~ /\|$/ ? "" : ", ?") code_of[at]
    }
    return out
}

# value KEY: its text in a record of JSON. By index(), which is ten times as fast as gawk's match().
function value(key,    rest, at, within, text) {
    rest = $0
    key = "\"" key "\""
    do {
        if (!(at = index(rest, key))) return ""
        within = at > 1 && substr(rest, at - 1, 1) == "\\"
        rest = substr(rest, at + length(key))
    } while (within || !sub(/^ ?: ?/, "", rest))
    if (substr(rest, 1, 1) == "[" && match(rest, /^\[[0-9, ]*\]/)) return from_bytes(substr(rest, 1, RLENGTH))
    if (substr(rest, 1, 1) != "\"") return ""
    text = substr(rest, 2, index(substr(rest, 2), "\"") - 1)
    if (index(text, "\\")) text = match(rest, /^"([^"\\]|\\.)*"/) ? substr(rest, 2, RLENGTH - 2) : ""
    return plain(text)
}

function kernels_own() {
    if (message !~ packet) record()
}

function end_of_record() {
    if (!open_record) return
    open_record = 0
    kernels_own()
}

function together() {
    last_line = line_before
    whole_at = entries + 10
}

# how_it_ended: a program that was cut off has perhaps not written its last record whole, so that is read again.
function how_it_ended() {
    if (end_code != "") print "ended\t" end_code
    if (lost) print "lost"
    if (end_code == "124") last_line = line_before
    else if (end_code != "0" || entries <= mark_after) return
    if (last_line == "") return
    $0 = last_line
    last_line = value("__CURSOR")
    if (last_line != "") print "mark\t" last_line
}

/^\{/ {
    entries++
    if (entries > whole_at) { line_before = last_line; last_line = $0 }
    if (value("SYSLOG_FACILITY") != "0") next
    records++
    if (entries == 1 && from != "" && value("__CURSOR") == from) next
    if ($0 !~ wanted) {
        if (!index($0, ":[") && !index($0, ": [")) next
        if (wanted_bytes == "") wanted_bytes = as_bytes(wanted)
        if ($0 !~ wanted_bytes) next
    }
    time = value("__REALTIME_TIMESTAMP")
    time = substr(time, 1, length(time) - 6) + 0
    message = value("MESSAGE")
    device = value("_KERNEL_DEVICE")
    kernels_own()
    next
}

# `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT`, and behind it ` KEY=VALUE`. The facility is PRIORITY / 8.
/^[0-9]+,[0-9]+,[0-9]+,[^;]*;/ {
    end_of_record()
    if ($0 !~ /^[0-7],/) next
    records++
    if ($0 !~ wanted) next
    split($0, head, ",")
    time = int(btime + head[3] / 1000000)
    message = plain(substr($0, index($0, ";") + 1))
    device = ""
    open_record = 1
    next
}
open_record && /^ DEVICE=/ { device = plain(substr($0, 9)); next }

/^lost$/ { lost = 1; next }
/^end [0-9]+$/ { end_code = $2; next }
# A program that failed says nothing of the log.
END { end_of_record(); if (end_code != "" && end_code != 0 && end_code != 124) records = 0 }
