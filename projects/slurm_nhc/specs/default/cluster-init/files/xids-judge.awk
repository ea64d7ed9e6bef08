# What the faults of a GPU node ask for, by the table of codes, the generation of its GPUs, and what it had before.
#
#   awk -v generation=h100 -v boot=ID -v now=EPOCH -v since=EPOCH -v look_back_h=N [-v job=ID -v job_gpus=0,1 -v job_start=EPOCH]
#       -f xids-judge.awk xids.tsv [FILE of what is below]... [events of xids-read.awk]
#
# Input, fields separated by tabs:
#   gpu INDEX ADDRESS                            the GPUs as nvidia-smi numbers them
#   rows ADDRESS PENDING FAILURE                 their row remaps, Yes, No or a number
#   past BOOT JOB FIRST LAST COUNT KIND ADDRESS CODE WORD DEVICE LINE     events that earlier runs have noted
# Output:
#   find CURE KIND CODE NAME ADDRESS DEVICE INDEX COUNT FIRST NOTE        worst first; CURE: service, reboot, reset, warn
#   app CODE ADDRESS INDEX COUNT                 programs' own faults
#   need names, need rows                        run again with them, where nvidia-smi gives them
#   past ...                                       what later runs need
BEGIN {
    FS = OFS = "\t"
    rank["warn"] = 1; rank["reset"] = 2; rank["reboot"] = 3; rank["service"] = 4
    split("v100 a100 h100 gb200 other", generations, " ")
    for (each = 1; each <= 5; each++) if (generations[each] == generation) column = 3 + each
    if (!column) column = 8
    kept_h = look_back_h + 0
}
$1 == "xid" {
    listed[$2] = 1; name[$2] = $3; take[$2] = $column; again_h[$2] = $9; remap[$2] = $10
    as[$2] = ($11 == "-" ? $2 : $11)
    if ($9 + 0 > kept_h) kept_h = $9 + 0
    next
}
$1 == "action" { action_name["0x" $2] = $3; action_take["0x" $2] = $4; next }
$1 == "sxid" { list[$2] = $3; next }
$1 == "set" { setting[$2] = $3; if ($2 ~ /_again_h$/ && $3 + 0 > kept_h) kept_h = $3 + 0; next }
$1 == "gpu" { index_of[$3] = $2; next }
$1 == "rows" { rows[$2] = 1; pending[$2] = $3; failure[$2] = $4; next }
$1 == "event" { if (!known($2, $3, $4, $5, $6, $7, $8)) add(boot, "-", $2, $3, $4, $5, $6, $7, $8, $9, $10); next }
# The address is whole: before records were read, a program with the name of a driver could leave a part of one here.
$1 == "past" && NF == 12 && ($4 $5 $6 $9) ~ /^[0-9]+$/ && $8 ~ /^[0-9a-f][0-9a-f][0-9a-f][0-9a-f]+:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f]$/ {
    if ($5 > since) add($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
}

function same(its_boot, its_kind, its_address, its_code, its_word) {
    return its_boot SUBSEP its_kind SUBSEP its_address SUBSEP its_code SUBSEP its_word
}

function add(its_boot, its_job, its_first, its_last, its_count, its_kind, its_address, its_code, its_word, its_device, its_line,    key) {
    at[++n] = its_boot; jobs[n] = its_job; first[n] = its_first + 0; last[n] = its_last + 0; count[n] = its_count + 0
    kind[n] = its_kind; address[n] = its_address; code[n] = its_code; word[n] = its_word; device[n] = its_device; line[n] = its_line
    of[its_boot SUBSEP its_kind SUBSEP its_address] = of[its_boot SUBSEP its_kind SUBSEP its_address] " " n
    key = same(its_boot, its_kind, its_address, its_code, its_word)
    earlier[n] = newest[key]
    newest[key] = n
    exactly[key, first[n]] = n
}

# known ...: whether an earlier run of this boot has noted the event of the journal; it may have grown since, and the journal
# may have lost its beginning.
function known(its_first, its_last, its_count, its_kind, its_address, its_code, its_word,    key, each) {
    key = same(boot, its_kind, its_address, its_code, its_word)
    each = ((key, its_first + 0) in exactly) ? exactly[key, its_first + 0] : newest[key]
    # What a job has ended with does not grow.
    while (each && !(its_first <= last[each] + (jobs[each] == "-" ? setting["near_s"] : 0) && first[each] <= its_last + setting["near_s"])) each = earlier[each]
    if (!each) return 0
    # A run that went on behind the noted lines has only later ones.
    if (its_first + 0 > last[each]) count[each] += its_count
    else if (its_count + 0 > count[each]) count[each] = its_count + 0
    if (its_last + 0 > last[each]) last[each] = its_last + 0
    return 1
}

function near(one, other) {
    return first[other] <= last[one] + setting["near_s"] && last[other] >= first[one] - setting["near_s"]
}

# neighbours EVENT: the events of its GPU in its boot, into others; how many.
function neighbours(event) { return split(of[at[event] SUBSEP kind[event] SUBSEP address[event]], others, " ") }

# beside EVENT CODE: whether another XID of its GPU is near: this one, or any that does not follow itself.
function beside(event, wanted,    each, count_of, other) {
    count_of = neighbours(event)
    for (each = 1; each <= count_of; each++) {
        other = others[each]
        if (other == event || code[other] == code[event] || !near(event, other)) continue
        if (wanted ? code[other] == wanted : take[code[other]] != "follow") return 1
    }
    return 0
}

# recovery EVENT: the last recovery action of its GPU in its boot, 0 where none was logged.
function recovery(event,    each, count_of, other, found) {
    count_of = neighbours(event)
    for (each = 1; each <= count_of; each++) {
        other = others[each]
        if (code[other] == 154 && (!found || last[other] >= last[found])) found = other
    }
    return found
}

function action(event) {
    if (word[event] in action_take) return action_take[word[event]]
    extra = "an unknown recovery action: " line[event]
    return "warn"
}

# is_fatal EVENT: of NVSwitch; the word decides, but for the codes that need a reset whatever it says.
function is_fatal(event) {
    return list[code[event]] == "always_fatal" || word[event] == "Fatal" || (word[event] == "-" && list[code[event]] == "fatal")
}

# again EVENT HOURS: whether the same fault was there before, in another boot or well before, and no longer ago. NVSwitches
# are reset together, so any of them counts.
function again(event, hours,    other) {
    if (hours !~ /^[0-9]+$/) return 0
    for (other = 1; other <= n; other++) {
        if (other == event || kind[other] != kind[event] || first[other] >= first[event]) continue
        if (kind[event] == "sxid" ? !is_fatal(other) : address[other] != address[event] || as[code[other]] != as[code[event]]) continue
        if (at[other] == at[event] && first[event] - last[other] <= setting["apart_s"]) continue
        if (first[event] - last[other] <= hours * 3600) return 1
    }
    return 0
}

# cure_of EVENT: what it asks for; NOTE of the finding in extra.
function cure_of(event,    what, recovered) {
    extra = ""
    if (kind[event] == "unread") { extra = "a line that cannot be read: " line[event]; return "warn" }
    if (kind[event] == "sxid") {
        if ("," setting["sxid_on"] "," !~ "," generation ",") { extra = "not known of this GPU generation: " line[event]; return "warn" }
        if (!is_fatal(event)) { extra = (code[event] in list) ? "non-fatal" : line[event]; return "warn" }
        if (again(event, setting["sxid_again_h"])) { extra = "again within " setting["sxid_again_h"] " h"; return "service" }
        return "reboot"
    }
    if (!(code[event] in listed)) { extra = "an unknown code: " line[event]; return "warn" }
    what = take[code[event]]
    if (what == "-") { extra = "not known of this GPU generation: " line[event]; return "warn" }
    if (what == "decode") {
        recovered = recovery(event)
        if (recovered && near(event, recovered)) {
            what = action(recovered)
            extra = "XID 154 says " word[recovered]
            return what == "none" ? "warn" : what
        }
        if (word[event] == "-") extra = line[event]
        return word[event] == "Fatal" ? "reset" : "warn"
    }
    if (what == "read154") return recovery(event) == event ? action(event) : "none"
    if (what == "follow") {
        if (beside(event, as[code[event]] == code[event] ? 0 : as[code[event]])) return "none"
        if (as[code[event]] == code[event]) { extra = "no other XID of this GPU beside it"; return "warn" }
        what = take[as[code[event]]]
    }
    if (again(event, again_h[as[code[event]]])) { extra = "again within " again_h[as[code[event]]] " h"; return "service" }
    return remapped(event, what)
}

# remapped EVENT CURE: a row remap that waits or that failed asks for more.
function remapped(event, what,    asked, where) {
    asked = remap[as[code[event]]]
    where = address[event]
    if (asked == "-") return what
    if (!(where in rows)) { need_rows = 1; return what }
    if (asked ~ /failure/ && failure[where] ~ /^(Yes|[1-9][0-9]*)$/) { extra = "a row remap failed"; return "service" }
    if (asked ~ /pending/ && pending[where] ~ /^(Yes|[1-9][0-9]*)$/ && rank[what] < rank["reset"]) { extra = "a row remap is pending"; return "reset" }
    return what
}

# belongs EVENT: whether the job that ends here may have made it.
function belongs(event) {
    if (job == "" || jobs[event] != "-" || last[event] < job_start + 0) return 0
    if (job_gpus == "" || !(address[event] in index_of)) return 1
    return "," job_gpus "," ~ "," index_of[address[event]] ","
}

function find(cure, event, note,    key) {
    key = kind[event] SUBSEP address[event] SUBSEP code[event]
    if (!(key in finding)) {
        finding[key] = ++findings
        example[findings] = event; cures[findings] = cure; since_when[findings] = first[event]; notes[findings] = note
    }
    key = finding[key]
    total[key] += count[event]
    latest[key] = last[event] > latest[key] + 0 ? last[event] : latest[key]
    if (first[event] < since_when[key]) since_when[key] = first[event]
    if (rank[cure] > rank[cures[key]]) { cures[key] = cure; notes[key] = note }
}

# programs EVENT: count it for its GPU; a second job within the window makes a finding.
function programs(event,    where, other_job) {
    if (last[event] < now - look_back_h * 3600) return
    where = address[event]
    if (at[event] == boot) {
        if (!((where, code[event]) in app_count)) app[++apps] = where SUBSEP code[event]
        app_count[where, code[event]] += count[event]
    }
    if (jobs[event] == "-") return
    if (!(where in job_of)) job_of[where] = jobs[event]
    other_job = job_of[where]
    if (other_job != jobs[event] && !(where in two_jobs)) {
        two_jobs[where] = "programs of jobs " other_job " and " jobs[event] " failed on it"
        blamed[where] = event
    }
    if (at[event] == boot) blamed[where] = event
}

END {
    for (each = 1; each <= n; each++) {
        if (kind[each] == "xid" && take[code[each]] == "app") {
            if (at[each] == boot && belongs(each)) jobs[each] = job
            programs(each)
        } else if (at[each] == boot) {
            cure = cure_of(each)
            if (cure != "none") find(cure, each, extra)
        }
        if (at[each] == boot && kind[each] == "xid" && !(address[each] in index_of) && take[code[each]] != "none") need_names = 1
    }
    for (where in two_jobs) find("warn", blamed[where], two_jobs[where])
    for (level = 4; level; level--) {
        for (each = 1; each <= findings; each++) {
            if (rank[cures[each]] != level || (level == 1 && latest[each] < now - look_back_h * 3600)) continue
            event = example[each]
            shown = name[code[event]]
            if (code[event] == 154 && word[event] in action_name) shown = shown " to " word[event] " " action_name[word[event]]
            print "find", cures[each], kind[event], code[event], shown == "" ? "-" : shown, address[event], device[event], (address[event] in index_of) ? index_of[address[event]] : "-", total[each], since_when[each], notes[each] == "" ? "-" : notes[each]
        }
    }
    for (each = 1; each <= apps; each++) {
        split(app[each], part, SUBSEP)
        print "app", part[2], part[1], (part[1] in index_of) ? index_of[part[1]] : "-", app_count[app[each]]
    }
    if (need_names) print "need", "names"
    if (need_rows) print "need", "rows"
    for (each = 1; each <= n; each++) {
        if (kind[each] == "unread" && at[each] != boot || take[code[each]] == "none" && kind[each] == "xid") continue
        if (take[code[each]] == "app" && last[each] < now - look_back_h * 3600) continue
        if (at[each] != boot && last[each] < now - kept_h * 3600) continue
        print "past", at[each], jobs[each], first[each], last[each], count[each], kind[each], address[each], code[each], word[each], device[each], line[each]
    }
}
