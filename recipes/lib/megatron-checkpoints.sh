# shellcheck shell=bash
# The checkpoints of a run of Megatron-LM: which are whole, from which one it goes on, and which ones stay. Sourced by
# megatron.sh.

# run_mark: the iteration that Megatron names as saved whole.
run_mark() {
    cat "${run_dir:?}/checkpoints/latest_checkpointed_iteration.txt" 2>/dev/null || true
}

# whole_checkpoints: their iterations, the newest one first. metadata.json is written when all ranks have written their
# parts; checkpoints of the older format have none, and a folder for each rank.
# Source: Megatron-LM, megatron/core/dist_checkpointing/serialization.py, save.
whole_checkpoints() {
    local folder
    while read -r folder; do
        if [[ -s "${folder}/metadata.json" && -s "${folder}/.metadata" ]] || compgen -G "${folder}/mp_rank_*" >/dev/null; then
            echo "$((10#${folder##*iter_}))"
        fi
    done < <(find "${run_dir}/checkpoints" -maxdepth 1 -type d -name 'iter_[0-9]*' | grep -E '/iter_[0-9]{1,12}$' | sort -r)
}

# mend_mark: Megatron writes the file of the newest iteration in place: without space nothing is left in it, and without a
# number in it the training would begin anew; if the checkpoint that it names is not whole, every launch would end.
mend_mark() {
    local -r tracker="${run_dir}/checkpoints/latest_checkpointed_iteration.txt"
    local -a whole
    local named
    named="$(run_mark)"
    mapfile -t whole < <(whole_checkpoints)
    if [[ "${named}" == release || " ${whole[*]} " == *" ${named:-none} "* ]]; then return 0; fi
    if ((${#whole[@]} == 0)); then
        if [[ ! -e "${tracker}" ]]; then return 0; fi
        die "${tracker} names '${named}', and no checkpoint beside it is whole; to begin anew, remove ${run_dir}/checkpoints"
    fi
    set_tracker "${whole[0]}"
    went_back "${tracker##*/} named '${named}', which is not there whole; the run goes on from ${whole[0]}"
}

# set_tracker ITERATION: as a whole.
set_tracker() {
    local -r tracker="${run_dir}/checkpoints/latest_checkpointed_iteration.txt"
    if ! { printf '%s' "$1" >"${tracker}.new" && mv -f "${tracker}.new" "${tracker}"; }; then die "${tracker} cannot be written"; fi
}

way_back() {
    local before
    before="$(whole_checkpoints | sed -n 2p)"
    if [[ -n "${before}" ]]; then echo "echo ${before} >${run_dir}/checkpoints/latest_checkpointed_iteration.txt"; fi
}

# prune_checkpoints: Megatron keeps all; the newest KEEP_CHECKPOINTS stay, and always the one that `latest` names.
prune_checkpoints() {
    ((SAVE_INTERVAL > 0 && KEEP_CHECKPOINTS > 0)) || return 0
    local latest folder
    latest="$(cat "${run_dir}/checkpoints/latest_checkpointed_iteration.txt" 2>/dev/null || true)"
    is_count "${latest}" || return 0
    while read -r folder; do
        # A folder above `latest` may still be written.
        if ((10#${folder##*iter_} < latest)); then
            log "removing ${folder}"
            # First what makes it a whole one: a job that ends here leaves none that only looks so.
            rm -f -- "${folder}/metadata.json"
            rm -rf -- "${folder}"
        fi
    done < <(find "${run_dir}/checkpoints" -maxdepth 1 -type d -name 'iter_[0-9]*' | grep -E '/iter_[0-9]{1,12}$' | sort -r | tail -n +$((KEEP_CHECKPOINTS + 1)))
}

# prune_in_background: keeps pruning while the job trains.
prune_in_background() {
    while sleep 300; do prune_checkpoints; done
}
