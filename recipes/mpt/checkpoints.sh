# shellcheck shell=bash
# The checkpoints of Composer in $checkpoints, and the link `latest` from which it goes on. Sourced by run.sh.

# run_mark: the batch of the newest checkpoint; Composer points `latest` at one that is whole.
run_mark() {
    local target
    target="$(readlink "${checkpoints:?}/latest-rank0.pt" 2>/dev/null)" || return 0
    sed -nE 's/.*-ba([0-9]+).*/\1/p' <<<"${target}"
}

# whole_checkpoints: their names, the newest one first. A folder of parts is whole when its .metadata is there, which is
# written last. Source: PyTorch, torch/distributed/checkpoint/filesystem.py, FileSystemWriter.finish.
whole_checkpoints() {
    local name
    while read -r _ name; do
        if [[ -s "${checkpoints}/${name}/.metadata" || (-f "${checkpoints}/${name}" && -s "${checkpoints}/${name}") ]]; then echo "${name}"; fi
    done < <(find "${checkpoints}" -maxdepth 1 \( -type d -name 'ep*-ba*' -o -type f -name 'ep*-ba*-rank0.pt' \) -printf '%f\n' |
        sed -nE 's/^(ep[0-9]+-ba([0-9]+).*)$/\2 \1/p' | sort -rn)
}

# mend_mark: Composer removes `latest` and makes it anew; where it is gone, or what it names, the training would begin
# anew. Source: composer v0.29.0, composer/callbacks/checkpoint_saver.py, _save_checkpoint; trainer.py, autoresume.
mend_mark() {
    local -r latest="${checkpoints}/latest-rank0.pt"
    local -a whole
    local named
    named="$(readlink "${latest}" 2>/dev/null)" || named=""
    mapfile -t whole < <(whole_checkpoints)
    if [[ " ${whole[*]} " == *" ${named:-none} "* ]]; then return 0; fi
    if ((${#whole[@]} == 0)); then
        if [[ -z "${named}" ]]; then return 0; fi
        die "${latest} names '${named}', and no checkpoint beside it is whole; to begin anew, remove ${checkpoints}"
    fi
    if ! { ln -sfn "${whole[0]}" "${latest}.new" && mv -fT "${latest}.new" "${latest}"; }; then die "${latest} cannot be made"; fi
    went_back "${latest##*/} named '${named}', which is not there whole; the run goes on from ${whole[0]}"
}

way_back() {
    local before
    before="$(whole_checkpoints | sed -n 2p)"
    if [[ -n "${before}" ]]; then echo "ln -sfn ${before} ${checkpoints}/latest-rank0.pt"; fi
}
