#!/usr/bin/env bash
# Trains with your own script, on one node or many, in a container or on the host, until it is at its end.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/images.sh
. "${JOBS_LIB}/images.sh"
# shellcheck source=recipes/lib/long-runs.sh
. "${JOBS_LIB}/long-runs.sh"
# shellcheck source=recipes/lib/run-status.sh
. "${JOBS_LIB}/run-status.sh"
# shellcheck source=recipes/lib/losses.sh
. "${JOBS_LIB}/losses.sh"

# In the container, or on the host: the part of a launch on one node (torchrun), or of one process (srun).
on_node() {
    local -r launcher="$1" head="$2" port="$3" script="$4"
    shift 4
    local -a program=("${script}") options=()
    if [[ -n "${TORCHRUN_OPTIONS}" ]]; then read -r -a options <<<"${TORCHRUN_OPTIONS}"; fi
    if [[ "${script}" == *.py ]]; then program=("${PYTHON}" -u "${script}"); fi
    if [[ "${launcher}" == torchrun ]]; then
        # Each node by its number, so that ranks stay where they are over launches.
        exec "${PYTHON}" ./launcher.py --nnodes "${RUN_NODES}" --node_rank "${SLURM_NODEID}" --nproc_per_node "${PROCESSES_PER_NODE}" \
            --master_addr "${head}" --master_port "${port}" "${options[@]}" "${script}" "$@"
    fi
    # Here, because a hook of the image and pyxis have set some of them before.
    export RANK="${SLURM_PROCID}" LOCAL_RANK="${SLURM_LOCALID}" WORLD_SIZE=$((RUN_NODES * PROCESSES_PER_NODE))
    export LOCAL_WORLD_SIZE="${PROCESSES_PER_NODE}" NODE_RANK="${SLURM_NODEID}" MASTER_ADDR="${head}" MASTER_PORT="${port}"
    exec "${program[@]}" "$@"
}

# check_launch: what can be known before any node waits for another.
# shellcheck disable=SC2153  # settings
check_launch() {
    [[ "${LAUNCHER}" == torchrun || "${LAUNCHER}" == srun ]] || die "LAUNCHER is ${LAUNCHER}; it is torchrun or srun"
    [[ "${PROCESSES_PER_NODE}" =~ ^[1-9][0-9]*$ ]] || die "PROCESSES_PER_NODE is ${PROCESSES_PER_NODE:-empty}; it is the number of processes on each node"
    if ((GPUS_PER_NODE > 0 && PROCESSES_PER_NODE > GPUS_PER_NODE)); then
        die "PROCESSES_PER_NODE=${PROCESSES_PER_NODE}, but a node has ${GPUS_PER_NODE} GPUs: two processes would share one"
    fi
    [[ "${LAUNCHER}" == srun || "${SCRIPT}" == *.py ]] || die "torchrun starts Python scripts; ${SCRIPT} needs LAUNCHER=srun"
    script_path="$(realpath -e -- "${SCRIPT}" 2>/dev/null)" || die "SCRIPT ${SCRIPT} is not there; give its path, absolute or from ${PWD}"
    [[ "${SCRIPT}" == *.py || -x "${script_path}" ]] || die "${script_path} cannot be executed; type: chmod +x ${script_path}"
    if [[ -n "${DATA_PATH}" && ! -e "${DATA_PATH}" ]]; then die "DATA_PATH ${DATA_PATH} is not there"; fi
    # CPUs of a node, divided among its processes.
    threads=$((${VCPUS:-1} / PROCESSES_PER_NODE))
    if ((threads < 1)); then threads=1; fi
}

prepare_launch() {
    head="${run_nodes[0]}"
    port="$(free_port)"
    container=()
    if [[ -z "${CONTAINER}" ]]; then
        has_python
        return
    fi
    need_image "${CONTAINER}"
    local image mounts
    image="$(stage_image "${CONTAINER}")"
    # Everything that is read or written must be mounted.
    mounts="${STAGE_PATH}:${STAGE_PATH},${results}:${results},${PWD}:${PWD},$(dirname "${script_path}"):$(dirname "${script_path}")"
    if [[ -n "${DATA_PATH}" ]]; then mounts+=",${DATA_PATH}:${DATA_PATH}"; fi
    if [[ -n "${NVME_MOUNT}" ]]; then mounts+=",${NVME_MOUNT}:${NVME_MOUNT}"; fi
    if [[ -n "${CONTAINER_MOUNTS}" ]]; then mounts+=",${CONTAINER_MOUNTS}"; fi
    if [[ -d /opt/microsoft ]]; then mounts+=",/opt/microsoft:/opt/microsoft:ro"; fi
    container=("--container-image=${image}" "--container-mounts=${mounts}" "--container-workdir=${PWD}" "--container-env=NCCL_TOPO_FILE")
}

# has_python: a Python with what the script imports; the folder of PACKAGES is on the shared file system, for all nodes.
has_python() {
    [[ "${SCRIPT}" == *.py ]] || return 0
    if "${PYTHON}" -c "${IMPORTS:+import ${IMPORTS}}" >"${results}/python.log" 2>&1; then return 0; fi
    local -r venv="${STAGE_PATH}/venv"
    if [[ -z "${PACKAGES}" ]]; then
        die "${PYTHON} cannot import ${IMPORTS} ($(tail -n 1 "${results}/python.log")); set CONTAINER, PYTHON or PACKAGES"
    fi
    if ! "${venv}/bin/python" -c "import ${IMPORTS}" >/dev/null 2>&1; then
        log "installing ${PACKAGES} into ${venv}; this needs the package index, and happens once"
        local -a packages
        read -r -a packages <<<"${PACKAGES}"
        if ! { "${PYTHON}" -m venv --clear "${venv}" && "${venv}/bin/python" -m pip install --quiet "${packages[@]}" &&
            "${venv}/bin/python" -c "import ${IMPORTS}"; } >"${results}/python.log" 2>&1; then
            die "${PYTHON} cannot import ${IMPORTS}, and ${PACKAGES} could not be installed into ${venv} ($(tail -n 1 "${results}/python.log")); set CONTAINER to an image that has it"
        fi
    fi
    export PYTHON="${venv}/bin/python"
}

launch() {
    export RUN_NODES="${#run_nodes[@]}" PROCESSES_PER_NODE OMP_NUM_THREADS="${OMP_NUM_THREADS:-${threads}}" PYTHON DATA_PATH
    export CHECKPOINT_DIR="${run_dir}/checkpoints" RUN_DIR="${run_dir}" SAVE_EVERY
    local -a arguments=() srun_options
    if [[ -n "${ARGUMENTS}" ]]; then read -r -a arguments <<<"${ARGUMENTS}"; fi
    local tasks=1 cpus="${VCPUS:-1}"
    if [[ "${LAUNCHER}" == srun ]]; then tasks="${PROCESSES_PER_NODE}" cpus="${threads}"; fi
    srun_options=("${srun_places[@]}" "--ntasks=$((RUN_NODES * tasks))" "--ntasks-per-node=${tasks}" "--cpus-per-task=${cpus}" --cpu-bind=none
        --mem=0 --kill-on-bad-exit=1)
    if ((GPUS_PER_NODE > 0)); then srun_options+=("--gpus-per-node=${GPUS_PER_NODE}"); fi
    srun "${srun_options[@]}" "${container[@]}" ./run.sh node "${LAUNCHER}" "${head}" "${port}" "${script_path}" "${arguments[@]}"
}

# run_mark: what the script has written to `latest`, beside its checkpoints; the file is replaced whole.
run_mark() {
    local text=""
    if [[ -s "${run_dir}/checkpoints/latest" ]]; then read -r text <"${run_dir}/checkpoints/latest" || true; fi
    printf '%s\n' "${text:0:80}"
}

# mend_mark, way_back: which checkpoint can be read is known to the script alone.
mend_mark() { :; }
way_back() { :; }

# run_is_finished STATUS: a script that was not asked to stop and ends well is at its end.
run_is_finished() {
    local now
    printf -v now '%(%s)T' -1
    (($1 == 0)) || return 1
    [[ -z "${stop_requested}" && ! -e "${stop_file}" ]] || return 1
    [[ -z "${STOP_AT}" ]] || ((now < STOP_AT))
}

judge_long_run() {
    judge_losses "${run_dir}/train.log" "${results}/checks.tsv"
    local verdict=pass mark
    mark="$(run_mark)"
    if [[ -z "${mark}" ]]; then verdict=no_baseline; fi
    record "${results}/checks.tsv" checkpoint "${verdict}" "${mark}" "" step "the newest one that is whole"
}

# find_stage: as a validation job it has no folder that somebody has made for it; that of the job is shared, too.
find_stage() {
    if ! mkdir -p "${STAGE_PATH}" 2>/dev/null; then STAGE_PATH="${PWD}/stage"; fi
}

main() {
    # The job has decided all settings, and has exported them.
    if [[ "${1:-}" == node ]]; then on_node "${@:2}"; fi
    load_settings
    if [[ "${1:-}" == --status ]]; then
        find_stage
        show_status "${2:-}"
        return
    fi
    new_results_folder
    require STAGE_PATH SCRIPT LAUNCHER PYTHON SAVE_EVERY
    PROCESSES_PER_NODE="${PROCESSES_PER_NODE:-${GPUS_PER_NODE}}"
    if [[ "${PROCESSES_PER_NODE}" == 0 ]]; then PROCESSES_PER_NODE=1; fi
    check_launch
    find_stage
    load_nccl_env
    begin_long_run "${JOB}"
    train_to_the_end
}
main "$@"
