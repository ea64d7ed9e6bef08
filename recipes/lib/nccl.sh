# shellcheck shell=bash
# Reads what nccl-tests and NCCL print. Sourced after common.sh.
#
# Forms of nccl-tests: NVIDIA/nccl-tests, src/common.cu and src/util.cu, releases 2.13 to 2.20. Forms of NCCL:
# NVIDIA/nccl, src/enqueue.cc, src/ce_coll.cc, src/scheduler/symmetric_sched.cc and src/init.cc, releases 2.18 to 2.30.

# bytes_of SIZE: 16G -> 17179869184, the way nccl-tests reads sizes.
bytes_of() {
    local -r number="${1%[KMGkmg]}"
    [[ "${number}" =~ ^[0-9]{1,15}$ ]] || return 1
    case "${1: -1}" in
        K | k) echo $((10#${number} * 1024)) ;;
        M | m) echo $((10#${number} * 1024 * 1024)) ;;
        G | g) echo $((10#${number} * 1024 * 1024 * 1024)) ;;
        *) echo $((10#${number})) ;;
    esac
}

# nccl_algorithm FUNCTION BYTES SHARE LOG...: what rank 0 logged for that collective and size, or `unknown`. SHARE is what a
# rank contributes to the message of BYTES: all of it, or its part of it for all-gather and reduce-scatter.
#   2.18, 2.19           nothing; neither do alltoall and sendrecv in any release
#   2.20.5 to 2.22       N Bytes -> Algo 1 proto 2 time 3970.683594
#   2.23                 AllReduce: N Bytes -> Algo 1 proto 2 time 2860.208008
#   from 2.24 on         AllReduce: N Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}
#   from 2.27, 2.29 on   AllReduce [Symmetric]: N Bytes -> Kernel ..., AllGather [Copy Engine]: N Bytes -> cudaMemcpy...
# Until 2.23 the bytes are those of all ranks, from 2.24 on those of one (src/enqueue.cc; nBytes, then task->count).
# More than one algorithm for the size, and a line that breaks off, are `unknown`: a figure holds for one algorithm.
nccl_algorithm() {
    local -r collective="$1" bytes="$2" share="$3"
    shift 3
    if (($# == 0)) || [[ ! -e "$1" ]]; then
        echo unknown
        return
    fi
    awk -v collective="${collective}" -v bytes="${bytes}" -v share="${share}" '
        BEGIN {
            count = split("TREE RING COLLNET_DIRECT COLLNET_CHAIN NVLS NVLS_TREE PAT", names, " ")
            for (i = 1; i <= count; i++) { number[i - 1] = names[i]; known[names[i]] = 1 }
        }
        /(^| )NCCL INFO / && / Bytes/ {
            line = $0
            sub(/^(.* )?NCCL INFO /, "", line)
            if (line !~ /^([A-Za-z]+( \[[A-Za-z ]+\])?: *)?[0-9]+ Bytes( |$)/) next
            head = line
            sub(/ Bytes.*/, "", head)
            rest = substr(line, length(head) + 8)
            name = head
            if (sub(/: *[0-9]+$/, "", name) == 0) name = ""
            size = head
            sub(/^.*: */, "", size)
            kind = ""
            if (name ~ /\[/) { kind = name; sub(/^[^[]*\[/, "", kind); sub(/\].*/, "", kind); sub(/ *\[.*/, "", name) }
            if (name != "" && name != collective) next
            if (rest ~ / time [0-9]/) own = size "" == bytes ""
            else if (kind != "" || rest ~ / channel/) own = size "" == share ""
            # One that breaks off may be either.
            else own = size "" == bytes "" || size "" == share ""
            if (!own) next
            algorithm = "broken"
            if (kind == "" && rest ~ /^-> Algo [A-Za-z0-9_]+ proto [A-Za-z0-9_]+ ./) {
                split(rest, word, " ")
                algorithm = word[3] in number ? number[word[3]] : toupper(word[3])
                if (!(algorithm in known)) algorithm = "broken"
            } else if (kind == "Symmetric" && rest ~ /^-> Kernel ./) algorithm = "SYMMETRIC"
            else if ((kind == "Copy Engine" || kind == "Hierarchical CE") && rest ~ /^-> [A-Za-z]/) algorithm = "COPY_ENGINE"
            if (!(algorithm in found)) { found[algorithm] = 1; different++; last = algorithm }
        }
        END { print (different == 1 && last != "broken" ? last : "unknown") }' "$@"
}

# nccl_fabric LOG...: `mnnvl` where NVLink connects the nodes, `infiniband` where it does not, or `unknown`.
# From 2.21 on each rank logs: comm 0x... rank R nRanks N nNodes M localRanks L localRank K MNNVL 0
nccl_fabric() {
    if (($# == 0)) || [[ ! -e "$1" ]]; then
        echo unknown
        return
    fi
    awk '
        / NCCL INFO comm / && / nNodes / && $(NF - 1) == "MNNVL" { seen[$NF]++ }
        END {
            if (seen["1"] && !seen["0"]) print "mnnvl"
            else if (seen["0"] && !seen["1"]) print "infiniband"
            else print "unknown"
        }' "$@"
}

# nccl_version FILE...: as NCCL or RCCL prints it (2.21.5+cuda12.4), else as its tests do (23007), else `unknown`.
nccl_version() {
    local file
    local -a files=()
    for file in "$@"; do
        if [[ -f "${file}" ]]; then files+=("${file}"); fi
    done
    # Without a file awk would wait for one.
    awk '
        /[NR]CCL version *:? *[0-9]/ { version = $0; sub(/^.*[NR]CCL version *:? */, "", version); sub(/[^0-9A-Za-z.+-].*/, "", version); exit }
        / [nr]ccl-library=[0-9]/ { library = $0; sub(/^.* [nr]ccl-library=/, "", library); sub(/[^0-9].*/, "", library) }
        END { print (version ? version : library ? library : "unknown") }' "${files[@]:-/dev/null}"
}

# tests_ranks OUTPUT RANKS HOSTS: what is wrong with the ranks in the header of nccl-tests; nothing if all is well.
# Without MPI every task runs a test of its own, all with a rank 0, and each of them passes.
tests_ranks() {
    untagged "$1" | awk -v ranks="$2" -v hosts="$3" '
        /^# +Rank +[0-9]+ / {
            line = $0
            sub(/^# +Rank +/, "", line)
            count = split(line, word, " ")
            rank = word[1]
            group = word[2] == "Group" ? word[3] : 0
            for (i = 2; i < count; i++) if (word[i] == "on") { host = word[i + 1]; break }
            if (i >= count || word[i + 2] != "device") { damaged++; next }
            lines++
            if (rank in seen) twice++
            seen[rank] = 1
            if (rank + 0 >= ranks) outside++
            if (!(host in host_seen)) { host_seen[host] = 1; found_hosts++ }
            if (!(group in group_seen)) { group_seen[group] = 1; groups++ }
            place = host " " word[i + 3] " " word[i + 4]
            if (place in place_seen) shared++
            place_seen[place] = 1
        }
        END {
            if (!lines) print "no ranks in the header of nccl-tests"
            else if (damaged) print damaged " damaged lines of ranks in the header"
            else if (twice) print lines " ranks, " twice " of them twice: separate tests, nccl-tests is not built with MPI or did not find PMIx"
            else if (lines != ranks || outside) print lines " ranks instead of " ranks
            else if (groups != 1) print groups " groups of ranks instead of one"
            else if (shared) print shared " ranks share a GPU with another"
            else if (found_hosts != hosts) print "ranks on " found_hosts + 0 " nodes instead of " hosts
        }'
}

# tests_rows OUTPUT: every complete row, one a line: bytes, bus bandwidth out of place and in place, wrong values of both, and
# what the column of wrong values is called (`#wrong`; `error` in releases that print the largest difference instead).
# Beside them `reduced BYTES` where nccl-tests has lowered messages that do not fit into the GPUs' memory, and `broken BYTES`
# for each row that is not complete.
tests_rows() {
    untagged "$1" | awk '
        /^# Reducing maxBytes to [0-9]+ / { print "reduced " $5 }
        /^# +size +count +type / {
            columns = NF - 1
            buses = wrongs = 0
            for (i = 2; i <= NF; i++) {
                if ($i == "busbw") bus[++buses] = i - 1
                if ($i == "#wrong" || $i == "error") { wrong[++wrongs] = i - 1; kind = $i }
            }
            next
        }
        columns && /^ *[0-9]+( |$)/ {
            if (NF != columns || buses != 2 || wrongs != 2) print "broken " $1
            else print $1, $(bus[1]), $(bus[2]), $(wrong[1]), $(wrong[2]), kind
        }'
}

# tests_row OUTPUT BYTES [BLOCK]: the measurement of that message: sets measured_bytes, bus_out, bus_in, wrong_out, wrong_in
# and wrong_kind. Sets row_problem and fails where there is not exactly one complete row. BLOCK is the smallest message of
# a collective whose message is divided among the ranks: the row is that of the largest multiple of it (NVIDIA/nccl-tests,
# src/all_gather.cu). Where nccl-tests has lowered the message, the row of the lowered one counts.
# shellcheck disable=SC2034  # for the scripts that source this file
tests_row() {
    local text
    text="$(tests_rows "$1" | awk -v bytes="$2" -v block="${3:-1}" '
        # The elements of a lowered message are whole, so its row may be a little smaller.
        function fits(size) { return lowered ? size + 0 <= reduced + 0 && size + 0 > reduced * 0.999 : size + 0 <= bytes + 0 && size + 0 > bytes - block }
        $1 == "reduced" { reduced = $2; if (reduced + 0 < bytes + 0) lowered = 1; next }
        $1 == "broken" { if (fits($2)) broken++; next }
        fits($1) { rows++; result = $0 }
        END {
            if (rows == 1 && !broken) print "row " result
            else if (lowered) print "problem " rows + 0 " complete rows for the message, which nccl-tests lowered to " reduced " bytes"
            else print "problem " rows + 0 " complete rows for " bytes " bytes in the output" (broken ? ", and " broken " that are not complete" : "")
        }')"
    row_problem="${text#problem }"
    if [[ "${text}" != row\ * ]]; then return 1; fi
    row_problem=""
    read -r _ measured_bytes bus_out bus_in wrong_out wrong_in wrong_kind <<<"${text}"
}

# sweep_problem OUTPUT FROM TO BLOCK: what is wrong with a sweep by factors of two: a size that is missing, is there twice,
# or has no number for its bandwidth; nothing if all is well.
sweep_problem() {
    tests_rows "$1" | awk -v from="$2" -v to="$3" -v block="$4" '
        $1 == "reduced" { reduced = $2; next }
        $1 == "broken" { broken++; next }
        { size[++rows] = $1; bus[rows] = $2 }
        END {
            if (reduced != "" && reduced + 0 < to + 0) to = reduced
            for (bytes = from + 0; bytes <= to + 0; bytes *= 2) {
                number++
                if (!(number in size) || size[number] + 0 > bytes || size[number] + 0 <= bytes - block) {
                    printf "no row for %.0f bytes as number %d of the sweep\n", bytes, number
                    exit
                }
                if (bus[number] !~ /^[0-9.]+([eE][-+]?[0-9]+)?$/) { printf "no bandwidth for %.0f bytes\n", bytes; exit }
            }
            if (broken) print broken " rows that are not complete"
            else if (number != rows) print rows " rows instead of " number + 0
        }'
}

# tests_footer OUTPUT LABEL: the value of the one footer line of that name; fails where there is none, or several.
tests_footer() {
    untagged "$1" | awk -v label="$2" '
        index($0, "# " label) == 1 && /:/ { count++; value = $0; sub(/^[^:]*: */, "", value); sub(/ *$/, "", value) }
        END { if (count != 1) exit 1; print value }'
}
