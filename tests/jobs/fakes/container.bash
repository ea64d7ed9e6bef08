# shellcheck shell=bash
# The environment of a task in a container, as enroot's hook for PyTorch and pyxis make it. Sourced by srun.
# FAKE_IMAGE_ENV holds the image's variables (`NAME=value`, separated by blanks), by default those of an image of
# MosaicML or NVIDIA as far as they matter here; FAKE_NO_HOOK stands for a node without the hook.
#
# Sources: NVIDIA/enroot 8ea147d, src/runtime.sh (the environment of the image and of the hooks goes over that of the
# caller) and conf/hooks/extra/50-slurm-pytorch.sh; NVIDIA/pyxis 1075199, pyxis_slurmstepd.c: enroot_deny_env,
# spank_import_container_env, pytorch_setup. mosaicml/composer, docker/Dockerfile: ENV PYTORCH_VERSION.

# enter_container KEPT: KEPT is the value of --container-env.
enter_container() {
    local -A inside=()
    local pair name
    # shellcheck disable=SC2086  # one pair a word
    for pair in ${FAKE_IMAGE_ENV-PYTORCH_VERSION=2.6.0}; do inside["${pair%%=*}"]="${pair#*=}"; done
    # The hook acts in an image with PYTORCH_VERSION, and sets only what the image does not.
    if [[ -z "${FAKE_NO_HOOK:-}" && -n "${inside[PYTORCH_VERSION]:-}" ]]; then
        : "${inside[MASTER_ADDR]:=$(scontrol show hostname "${SLURM_STEP_NODELIST}" | head -n 1)}"
        : "${inside[MASTER_PORT]:=$((SLURM_JOB_ID % 4536 + 61000))}"
        : "${inside[WORLD_SIZE]:=${SLURM_NTASKS}}" "${inside[RANK]:=${SLURM_PROCID}}" "${inside[LOCAL_RANK]:=${SLURM_LOCALID}}"
    fi
    for name in LANG LANGUAGE LC_ALL; do
        if [[ ",$1," != *",${name},"* ]]; then unset "${name}"; fi
    done
    # What is in the container's environment goes over the job's, except the names that the job keeps.
    for name in "${!inside[@]}"; do
        if [[ ",$1," != *",${name},"* || -z "${!name+set}" ]]; then export "${name}=${inside[${name}]}"; fi
    done
    # For every task, also against --container-env.
    if [[ -n "${PYTORCH_VERSION:-}" ]]; then export RANK="${SLURM_PROCID}" LOCAL_RANK="${SLURM_LOCALID}"; fi
}
