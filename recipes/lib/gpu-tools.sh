# shellcheck shell=bash
# Reads what the GPU tools print. Sourced after common.sh. Every function fails, and prints nothing, where a result is not
# complete: half an answer is none.

# gemm_of_ubergemm FILE: TFLOPS of the GPU that the file is about. Two forms: a line per pass after the tuning phase, which
# ends with "starting....", and one closing line. Units are GFLOPS.
# Sources: Azure/ai-infrastructure-on-azure, infrastructure_validations/slurm/gpu_test/gpu_test.slurm;
# https://github.com/NVIDIA/DCGM/issues/122
gemm_of_ubergemm() {
    untagged "$1" | awk '
        function number(text) { return text ~ /^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$/ && text + 0 > 0 }
        /starting/ { started = 1 }
        started && match($0, /GFlops:[^ ,;]*/) {
            value = substr($0, RSTART + 7, RLENGTH - 7)
            if (number(value)) { sum += value; passes++ } else broken = 1
        }
        / Ending with [^ ]+ GFlops/ {
            value = $0
            sub(/^.* Ending with /, "", value)
            sub(/ .*/, "", value)
            if (number(value)) last = value; else broken = 1
        }
        END {
            if (broken || !(passes || last)) exit 1
            printf "%.1f\n", (passes ? sum / passes : last) / 1000
        }'
}

# gemm_of_proftester FILE GPU: TFLOPS of one GPU on the tensor cores (target 1004): the mean of the second half of its
# reports, where clocks have settled. The program prints three digits.
# Source: NVIDIA/DCGM, dcgmproftester/PhysicalGpu.cpp (RunSubtestGemmUtil)
gemm_of_proftester() {
    untagged "$1" | awk -v gpu="$2" '
        index($0, "Worker " gpu ":") == 1 && /TensorEngineActive/ && / gflops\)/ {
            value = $0
            sub(/ gflops\).*/, "", value)
            sub(/^.*\(/, "", value)
            if (value !~ /^[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?$/) { broken = 1; next }
            values[++count] = value + 0
        }
        END {
            for (i = int(count / 2) + 1; i <= count; i++) sum += values[i]
            if (broken || !count || sum <= 0) exit 1
            printf "%.1f\n", sum / (count - int(count / 2)) / 1000
        }'
}

# gemm_of_cublaslt FILE EDGE: TFLOPS of the one row `m n k batch microseconds TFLOPS` with that edge.
# Source: microsoft/superbenchmark, superbench/benchmarks/micro_benchmarks/cublaslt_gemm/cublaslt_gemm.cu
gemm_of_cublaslt() {
    awk -v edge="$2" '
        NF == 6 && $1 == edge && $2 == edge && $3 == edge && $6 ~ /^[0-9]+([.][0-9]+)?$/ && $6 + 0 > 0 { rows++; value = $6 }
        END { if (rows != 1) exit 1; printf "%.1f\n", value }' "$1"
}

# memory_of_gpu_stream FILE KIND: GB/s of STREAM's COPY or TRIAD in the memory of the one GPU that the file is about, the
# best block size. Source: microsoft/superbenchmark, tests/data/gpu_stream.log
memory_of_gpu_stream() {
    awk -v kind="STREAM_${2}_double_gpu_" '
        index($1, kind) == 1 {
            if (NF != 3 || $2 !~ /^[0-9]+([.][0-9]+)?$/) { broken = 1; next }
            split(substr($1, length(kind) + 1), word, "_")
            if (!(word[1] in seen)) { seen[word[1]] = 1; gpus++ }
            if ($2 + 0 > best) best = $2 + 0
        }
        END { if (broken || gpus != 1 || best <= 0) exit 1; printf "%.1f\n", best }' "$1"
}

# cells_of_nvbandwidth FILE TEST: the cells `ROW COLUMN GB/s` of one test's matrix, without those of a GPU with itself, which
# are 0.00 or N/A. Fails where the matrix is not followed by its sum, which is printed last.
# Source: NVIDIA/nvbandwidth README.md, output.cpp; with versions: microsoft/superbenchmark, tests/data/nvbandwidth_results.log
cells_of_nvbandwidth() {
    awk -v test="$2" '
        $1 == "Running" { inside = ($2 == test "."); columns = 0; next }
        !inside { next }
        $1 == "SUM" { if ($2 == test && $3 ~ /^[0-9]+([.][0-9]+)?$/) whole = 1; inside = 0; next }
        /^[ \t]*[0-9]+([ \t]+[0-9]+)*[ \t]*$/ { columns = NF; for (i = 1; i <= NF; i++) column[i] = $i; next }
        columns && /^[ \t]*[0-9]+[ \t]/ {
            if (NF != columns + 1) { broken = 1; next }
            for (i = 2; i <= NF; i++) {
                if ($i == "N/A") continue
                if ($i !~ /^[0-9]+([.][0-9]+)?$/) { broken = 1; continue }
                if ($i + 0 == 0 && $1 == column[i - 1]) continue
                cell[++cells] = $1 " " column[i - 1] " " $i
            }
        }
        END {
            if (broken || !whole || !cells) exit 1
            for (i = 1; i <= cells; i++) print cell[i]
        }' "$1"
}

# links_of_nvlink FILE: `GPU ACTIVE INACTIVE` for every GPU, of `nvidia-smi nvlink -s`.
# Source: https://github.com/NVIDIA/k8s-test-infra/issues/371; an inactive link prints <inactive>: NVIDIA's guide of the
# fabric manager, and Azure/azurehpc-health-checks customTests/azure_gpu_nvlink.nhc
links_of_nvlink() {
    awk '
        function put() { if (gpu != "") print gpu, active + 0, inactive + 0 }
        /^GPU [0-9]+:/ { put(); gpu = $2; sub(/:$/, "", gpu); active = inactive = 0; gpus++; next }
        /^[ \t]+Link [0-9]+: / { if ($0 ~ /[0-9.]+ GB\/s[ \t]*$/) active++; else inactive++ }
        END { put(); if (!gpus) exit 1 }' "$1"
}

# errors_of_nvlink FILE: `GPU LINK COUNT NAME` for every error counter, of `nvidia-smi nvlink -e`. Counters that a driver
# does not have print N/A and are left out. Source: https://github.com/NVIDIA/srt-slurm/pull/307
errors_of_nvlink() {
    awk '
        /^GPU [0-9]+:/ { gpu = $2; sub(/:$/, "", gpu); gpus++; next }
        /^[ \t]+Link [0-9]+: .*Errors: [0-9]+[ \t]*$/ {
            link = $2
            sub(/:$/, "", link)
            name = $0
            sub(/^[ \t]+Link [0-9]+: /, "", name)
            sub(/: [0-9]+[ \t]*$/, "", name)
            print gpu, link, $NF, name
        }
        END { if (!gpus) exit 1 }' "$1"
}

# dcgm_summary FILE: one line `WORD <tab> TEXT` for what a diagnosis in JSON says: `pass`, `warn`, `skip` and `fail` with names
# of tests, `error` for a launch that failed, `why` with the first words about a failure or warning, `version`. DCGM 4 names entities and
# sums a test up, DCGM 3 has GPUs and results only. Fails where the text is not a whole answer.
# Source: NVIDIA/DCGM, dcgmi/Diag.cpp, whose writer sorts keys: `name` comes first, `test_summary` after `results`.
dcgm_summary() {
    grep -o -E '"[A-Za-z_ ]+"[[:space:]]*:[[:space:]]*("([^"\\]|\\.)*"|-?[0-9]+|\{|\[)' "$1" | awk '
        function close_test(    decides) {
            if (name == "" || statuses summary == "") { name = ""; return }
            decides = summary != "" ? summary : statuses
            if ((statuses summary) ~ /fail/) kind = "fail"
            else if (decides ~ /warn/) kind = "warn"
            else if (decides ~ /pass/) kind = "pass"
            else kind = "skip"
            names[kind] = names[kind] (names[kind] == "" ? "" : " ") name
            name = ""
        }
        {
            key = $0
            sub(/"[[:space:]]*:.*/, "", key)
            sub(/^"/, "", key)
            value = $0
            sub(/^"[^"]*"[[:space:]]*:[[:space:]]*"?/, "", value)
            sub(/"$/, "", value)
        }
        key == "runtime_error" { error = value }
        key == "name" { close_test(); name = value; statuses = summary = entity = state = ""; summing = 0 }
        key == "test_summary" { summing = 1 }
        key ~ /^(entity_id|gpu_id|gpu_ids)$/ { entity = value }
        key == "status" { state = tolower(value); if (summing) summary = summary " " state; else statuses = statuses " " state }
        key ~ /^warnings?$/ && state ~ /fail|warn/ && !summing && value !~ /^[[{]$/ && why == "" {
            why = name ": " (entity == "" ? "" : "GPU " entity ": ") value
        }
        key == "version" { version = value }
        END {
            close_test()
            if (error == "" && names["pass"] names["warn"] names["fail"] names["skip"] == "") exit 1
            if (error != "") print "error\t" error
            for (kind in names) if (names[kind] != "") print kind "\t" names[kind]
            if (why != "") print "why\t" why
            if (version != "") print "version\t" version
        }'
}
