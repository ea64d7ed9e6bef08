# shellcheck shell=bash
# shellcheck disable=SC2154  # work and results are of node.sh
# All GPUs under full load for LOAD_S seconds, watched all the while: matrix products, temperatures, clocks, throttling.
# Sourced by node.sh.

# test_load: what makes the load is for make_load of the vendor; here the GPUs are watched meanwhile.
test_load() {
    local load_tool="" began watcher status=0 ran
    began="${EPOCHREALTIME}"
    watch_gpus "${began}" &
    watcher=$!
    # Whatever ends this test ends the watching, too.
    # shellcheck disable=SC2064
    trap "kill ${watcher} 2>/dev/null || true" EXIT
    make_load || status=$?
    if ((status == 127)); then
        not_proven gemm "${NO_LOAD_TOOL}"
        not_proven thermal "nothing here puts the GPUs under load"
        return
    fi
    ran="$(awk -v s0="${began}" -v s1="${EPOCHREALTIME}" 'BEGIN { printf "%d", s1 - s0 }')"
    kill "${watcher}" 2>/dev/null || true
    wait "${watcher}" 2>/dev/null || true
    trap - EXIT
    if ((status != 0)); then
        note thermal error "${status}" 0 "exit status" "not proven: ${load_tool} did not run to its end"
    elif ((ran * 10 < LOAD_S * 9)); then
        note thermal error "${ran}" "${LOAD_S}" s "not proven: ${load_tool} ended early"
    else
        judge_heat
    fi
}

# watch_gpus BEGAN: a sample of all GPUs every SAMPLE_S seconds until it is ended: `SECONDS, INDEX, temperature, power, clock,
# reasons`; `SECONDS, lost` where the driver gives no answer.
watch_gpus() {
    local now answer
    begin_samples
    while :; do
        now="$(awk -v s0="$1" -v s1="${EPOCHREALTIME}" 'BEGIN { printf "%.1f", s1 - s0 }')"
        if answer="$(sample_gpus 2>&1)"; then
            # At once, so that an end in between leaves no half sample.
            printf '%s\n' "${answer}" | sed "s/^/${now}, /" >>"${work}/samples.csv"
        else
            printf '%s, lost: %s\n' "${now}" "${answer//$'\n'/ }" >>"${work}/samples.csv"
        fi
        sleep "${SAMPLE_S}"
    done
}

# judge_heat: of the samples. A GPU that is slowed by heat or by the power supply in two samples fails; one sample is also
# seen when the power state changes. A driver that gave no answer, a GPU that vanished, and a gap in the samples fail or
# are not proven. The hottest GPU and the slowest clock are the node's curves.
judge_heat() {
    local kind first second third limit
    limit="$(limit_of_heat)"
    if [[ ! -s "${work}/samples.csv" ]]; then
        not_proven thermal "no sample was taken"
        return
    fi
    while IFS=$'\t' read -r kind first second third; do
        case "${kind}" in
            check) note thermal "${first}" "${second}" 0 "samples slowed" "${third}" ;;
            hot) note gpu_temperature "${first}" "${second}" "${limit}" Celsius "${third}" ;;
            temperature) curve "gpu temperature" Celsius s "${first}" "${second}" ;;
            clock) curve "gpu clock" MHz s "${first}" "${second}" ;;
            median) value gpu_clock "GPU ${first}" "${second}" MHz "${WATCHED_BY}" "median under load" ;;
        esac
    done < <(read_samples "${limit}")
}

# read_samples LIMIT: lines `KIND <tab> …` of the samples, for judge_heat. A temperature or a clock of 0 is one that is not shown.
read_samples() {
    awk -F ', *' -v OFS='\t' -v gpus="${GPUS_PER_NODE}" -v mask="${THROTTLE_MASK}" -v limit="$1" -v gap="$((SAMPLE_S * 5 > 60 ? SAMPLE_S * 5 : 60))" '
        function bits(text,    i, digit, number, result, weight, m) {
            # The last two digits hold all bits of the mask; mawk has no hexadecimal numbers.
            text = tolower(substr(text, length(text) - 1))
            for (i = 1; i <= 2; i++) { digit = index("0123456789abcdef", substr(text, i, 1)) - 1; if (digit < 0) return -1; number = number * 16 + digit }
            m = mask
            for (weight = 1; weight < 256; weight *= 2) if (int(number / weight) % 2 && int(m / weight) % 2) result += weight
            return result + 0
        }
        function sort(list, n,    i, j, each) { for (i = 2; i <= n; i++) { each = list[i]; for (j = i - 1; j > 0 && list[j] > each; j--) list[j + 1] = list[j]; list[j + 1] = each } }
        $2 ~ /^lost/ { lost++; words = $0; next }
        NF != 6 || $1 !~ /^[0-9]+[.][0-9]$/ || $2 !~ /^[0-9]+$/ || $3 !~ /^[0-9]+$/ || $5 !~ /^[0-9]+$/ || $6 !~ /^0x[0-9a-fA-F]+$/ { damaged++; words = $0; next }
        {
            if (!($1 in hottest)) { time[++times] = $1; hottest[$1] = $3; slowest[$1] = $5 }
            if ($3 > hottest[$1]) { hottest[$1] = $3 }
            if ($5 + 0 < slowest[$1] + 0) { slowest[$1] = $5 }
            if ($3 + 0 > top + 0) { top = $3; hot = $2 }
            seen[$1]++
            clock[$2, ++count[$2]] = $5
            found = bits($6)
            if (found < 0) damaged++
            if (found > 0) { slowed[$2]++; reason[$2] = $6; total++ }
        }
        END {
            for (i = 1; i <= times; i++) {
                if (seen[time[i]] != gpus) missing++
                if (i > 1 && time[i] - time[i - 1] > gap) hole = int(time[i] - time[i - 1])
                if (hottest[time[i]] > 0) print "temperature", time[i], hottest[time[i]]
                if (slowest[time[i]] > 0) print "clock", time[i], slowest[time[i]]
            }
            for (g = 0; g < gpus; g++) {
                if (slowed[g] >= 1) { list = list (list == "" ? "" : ", ") "GPU " g " (" reason[g] ") " slowed[g] " times"; if (slowed[g] >= 2) often = 1 }
                n = count[g]
                if (!n) continue
                for (k = 1; k <= n; k++) all[k] = clock[g, k] + 0
                sort(all, n)
                if (all[int((n + 1) / 2)] > 0) print "median", g, all[int((n + 1) / 2)]
            }
            if (lost) print "check", "fail", lost, "the driver gave no answer under load: " words
            else if (damaged) print "check", "error", damaged, "not proven: a damaged sample: " words
            else if (missing) print "check", "fail", missing, "a GPU is missing in " missing " samples"
            else if (hole) print "check", "error", hole, "not proven: nobody looked for " hole " s"
            else if (often) print "check", "fail", total, "slowed by heat or power: " list
            else if (list != "") print "check", "warn", total, "slowed once: " list
            else if (!top) print "check", "no_baseline", "", "the driver shows no temperature on this virtual machine"
            else print "check", "pass", 0, times " samples"
            if (top) print "hot", (limit == "" ? "no_baseline" : top + 0 > limit + 0 ? "warn" : "pass"), top, "GPU " hot ", the hottest"
        }' "${work}/samples.csv"
}
