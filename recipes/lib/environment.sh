# shellcheck shell=bash
# What the shell of a user hands on to a job changes neither what the job runs nor what programs print, and so no verdict.
# Sourced first by common.sh and by prove.sh. What users may change has a name: SET_<SETTING>. What stays is where programs,
# libraries and files are (PATH, LD_LIBRARY_PATH, HOME, TMPDIR, modules), proxies and tokens, and what their own Python reads.

# What Slurm says of a job, and how its programs reach it. All else that begins so is an option of one of them: labels in
# front of each line, a limit of a step, another partition or cluster, a filter of lists, the form of times.
# Sources: man srun and sbatch (INPUT and OUTPUT ENVIRONMENT VARIABLES), squeue, sinfo, scontrol, sacct, scancel (ENVIRONMENT VARIABLES)
readonly SLURM_STAYS='^SLURM_(JOB_.*|JOBID|CONF.*|JWT|CLUSTER_NAME|SUBMIT_.*|ARRAY_.*|RESTART_COUNT|TOPOLOGY_.*|NODELIST|NNODES|NODEID|PROCID|LOCALID|GTIDS|TASK_PID|TASKS_PER_NODE|CPUS_ON_NODE|GPUS_ON_NODE|NODE_ALIASES|SCRIPT_CONTEXT|WORKING_CLUSTER)$'
# Who pays, which a site may demand of every job.
readonly SBATCH_STAYS='^SBATCH_(ACCOUNT|QOS|RESERVATION|WCKEY)$'
readonly OPTIONS_OF_SLURM='^(SLURM|SRUN|SBATCH|SALLOC|SQUEUE|SINFO|SCONTROL|SACCT|SCANCEL)_'
# Bash, POSIX, sizes and colours in what tools print, options of grep, tar, awk and pyxis (NVIDIA/pyxis, args.c), and GPUs that
# Slurm gives each step anew.
readonly OTHERS_OPTIONS='^(BASH_ENV|ENV|BASH_COMPAT|BASH_XTRACEFD|CDPATH|EXECIGNORE|GLOBIGNORE|TMOUT|POSIXLY_CORRECT|LANGUAGE|LC_.*|(DF_|DU_|LS_)?BLOCK_?SIZE|TIME_STYLE|QUOTING_STYLE|LS_COLORS|COLUMNS|(CLICOLOR_)?FORCE(_COLOR)?|GREP_.*|TAR_OPTIONS|GZIP|XZ_(OPT|DEFAULTS)|ZSTD_.*|PYXIS_.*|AWKPATH|AWKLIBPATH|MAWKBINMODE|GAWK_READ_TIMEOUT|(CUDA|HIP|ROCR)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|GPU_DEVICE_ORDINAL)$'
# How fast, and which way, NCCL, UCX, MPI, the adapters' and the GPUs' own libraries send and compute, threads run, and files are
# read and written. Sources: manuals of GCC's libgomp and of LLVM's OpenMP, rdma-core (mlx5, librdmacm), ROMIO, IOR
readonly TUNING='^((NCCL|RCCL|UCX|UCC|SHARP|HCOLL|OMPI_MCA|PRTE_MCA|PMIX_MCA|I_MPI|MV2|MPICH|FI|CUDA|HIP|HSA|ROCR|OMP|KMP|GOMP|MKL|OPENBLAS|CUBLAS|CUDNN|MLX4|MLX5|RDMAV|IBV|IOR_HINT_)_|(NVIDIA_TF32_OVERRIDE|ROMIO_HINTS)$)'
# Where they are installed, or keep their files.
readonly TUNING_STAYS='_(HOME|PATH|ROOT|DIR)$'

# forget_functions: those of the environment. What loads modules stays, because the image puts it there.
forget_functions() {
    local name
    while read -r _ _ name; do
        if [[ ! "${name}" =~ ^(_?module(_?raw)?|ml)$ ]]; then unset -f "${name}" 2>/dev/null || true; fi
    done < <(declare -Fx)
}

# forget NAME: what the file of BASH_ENV has made read-only stays, as it is meant to on hardened nodes (TMOUT).
forget() {
    unset "$1" 2>/dev/null || true
}

# forget_options: once, in the job's first script: its tasks have what it leaves and what Slurm then says of the task.
forget_options() {
    local name
    while read -r name; do
        if [[ "${name}" =~ ${SLURM_STAYS} || "${name}" =~ ${SBATCH_STAYS} ]]; then continue; fi
        if [[ "${name}" =~ ${OPTIONS_OF_SLURM} || "${name}" =~ ${OTHERS_OPTIONS} ]]; then forget "${name}"; fi
    done < <(compgen -e)
}

# forget_tuning: for benchmarks. A setting stays, and nccl.env and modules are read after it.
forget_tuning() {
    local name settings
    settings=" $(setting_names | tr '\n' ' ') "
    while read -r name; do
        if [[ "${name}" =~ ${TUNING_STAYS} || "${settings}" == *" ${name} "* ]]; then continue; fi
        if [[ "${name}" =~ ${TUNING} ]]; then forget "${name}"; fi
    done < <(compgen -e)
}

# At once, because it ends whatever calls a function that calls another.
unset FUNCNEST 2>/dev/null || true
# Bash takes its options from the environment, too, and the time since its start.
export -n SHELLOPTS BASHOPTS
set +o allexport +o noclobber +o noglob +o posix +o verbose +o xtrace
shopt -u dotglob expand_aliases extglob failglob globstar inherit_errexit lastpipe localvar_inherit nocaseglob nocasematch nullglob xpg_echo
unalias -a
SECONDS=0
forget_functions
if [[ "${CF_FORGOTTEN:-}" != "job ${SLURM_JOB_ID:-none}" ]]; then
    forget_options
    export CF_FORGOTTEN="job ${SLURM_JOB_ID:-none}"
fi
export LC_ALL=C
