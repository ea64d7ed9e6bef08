# shellcheck shell=bash
# Sequential reads and writes in one folder, by fio, or by dd where fio is missing; and what IOR prints. Sourced after common.sh.

# fio_rate FILE read|write: MB/s (10^6 bytes) of the one group of jobs in fio's terse output, version 3; fails where the line
# is not whole, names an error or has moved no data. Fields: https://fio.readthedocs.io/en/latest/fio_doc.html#terse-output
fio_rate() {
    awk -F ';' -v way="$2" '
        $1 == 3 && $2 ~ /^fio-/ {
            lines++
            error = $5
            moved = way == "read" ? $6 : $47
            rate = way == "read" ? $7 : $48
            if (NF < 100) short = 1
        }
        END {
            if (lines != 1 || short || error != 0 || moved + 0 <= 0 || rate + 0 <= 0) exit 1
            printf "%.1f\n", rate * 1024 / 1e6
        }' "$1"
}

# disk_tool: what measures here.
disk_tool() {
    if command -v fio >/dev/null; then echo fio; else echo dd; fi
}

# disk_rate FOLDER read|write JOBS MIB LOG: MB/s of JOBS processes, each with a file of MIB of its own in FOLDER, in blocks of
# 1 MiB and past the page cache (unless DISK_DIRECT=0). Reading reads what was written before. Fails where a process fails;
# what was said is in LOG. fio stops after DISK_SECONDS, and the whole after DISK_TIMEOUT_S.
disk_rate() {
    if [[ "$(disk_tool)" == fio ]]; then rate_of_fio "$@"; else rate_of_dd "$@"; fi
}

rate_of_fio() {
    local -r folder="$1" way="$2" jobs="$3" mib="$4" log="$5"
    # shellcheck disable=SC2016  # fio expands it
    timeout "${DISK_TIMEOUT_S:-600}" fio --name=cycleforge --directory="${folder}" --filename_format='cycleforge.$jobnum' --rw="${way}" --bs=1M \
        --direct="${DISK_DIRECT:-1}" --ioengine=libaio --iodepth=32 --numjobs="${jobs}" --size="${mib}M" --end_fsync=1 --fallocate=none \
        --time_based=0 --runtime="${DISK_SECONDS:-60}" --group_reporting --output-format=terse --terse-version=3 >"${log}" 2>&1 || return 1
    fio_rate "${log}" "${way}"
}

rate_of_dd() {
    local -r folder="$1" way="$2" jobs="$3" mib="$4" log="$5"
    local -r began="${EPOCHREALTIME}"
    local job process failed=0
    local -a processes=() options=(bs=1M "count=${mib}" status=none)
    for ((job = 0; job < jobs; job++)); do
        if [[ "${way}" == write ]]; then
            set -- if=/dev/zero of="${folder}/cycleforge.${job}" conv=fsync
            if [[ "${DISK_DIRECT:-1}" == 1 ]]; then set -- "$@" oflag=direct; fi
        else
            set -- if="${folder}/cycleforge.${job}" of=/dev/null
            if [[ "${DISK_DIRECT:-1}" == 1 ]]; then set -- "$@" iflag=direct; fi
        fi
        timeout "${DISK_TIMEOUT_S:-600}" dd "${options[@]}" "$@" >>"${log}" 2>&1 &
        processes+=("$!")
    done
    for process in "${processes[@]}"; do wait "${process}" || failed=1; done
    if ((failed)) || ((${#processes[@]} == 0)); then return 1; fi
    awk -v mib="${mib}" -v jobs="${jobs}" -v s0="${began}" -v s1="${EPOCHREALTIME}" \
        'BEGIN { if (s1 <= s0) exit 1; printf "%.1f\n", mib * 1.048576 * jobs / (s1 - s0) }'
}

# rate_of_ior FILE write|read TASKS: MB/s by the table that IOR ends with, where all processes took part and IOR has finished.
# Columns are found by their names: IOR 3.0 and 3.1, 3.2 and later have others. "Max Write:" is printed by 3.0 and 3.1 alone;
# later versions want -v for it. Source: hpc/ior, PrintLongSummaryHeader in src/ior.c of 3.0.1, in src/ior-output.c of 4.0.0
rate_of_ior() {
    untagged "$1" | awk -v way="$2" -v tasks="$3" '
        $1 == "Operation" && $2 == "Max(MiB)" { for (i = 1; i <= NF; i++) column[$i] = i; columns = NF; next }
        columns && $1 == way { rows++; whole = (NF == columns); ranks = $column["#Tasks"]; rate = $column["Max(MiB)"] * 1.048576 }
        /^Finished/ { finished = 1 }
        END { if (rows != 1 || !whole || !finished || ranks != tasks || rate <= 0) exit 1; printf "%.1f\n", rate }'
}

# rate_of_mdtest FILE TASKS: files a second that are made, found and removed again, of the three rates of mdtest, and these three
# for people, by a tab. Up to 3.3 a colon follows the name of an operation. Source: hpc/ior, src/mdtest.c
rate_of_mdtest() {
    untagged "$1" | awk -v tasks="$2" '
        $2 ~ /^tasks?,?$/ && $1 ~ /^[0-9]+$/ { ranks = $1 }
        /^SUMMARY rate/ { summary = 1 }
        summary && $1 == "File" && $2 ~ /^(creation|stat|removal)$/ {
            at = $3 == ":" ? 4 : 3
            if (NF != at + 3 || $at !~ /^[0-9]+[.][0-9]+$/ || $at <= 0) broken = 1
            else { kinds++; seconds += 1 / $at; said = said (said == "" ? "" : ", ") $2 sprintf(" %.0f/s", $at) }
        }
        /^-- finished at / { finished = 1 }
        END { if (broken || kinds != 3 || !finished || ranks != tasks) exit 1; printf "%.1f\t%s\n", 1 / seconds, said }'
}
