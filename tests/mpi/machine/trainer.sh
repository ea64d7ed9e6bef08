#!/usr/bin/env bash
# Trains without PyTorch: a sum over steps, with the checkpoints that the recipe asks for. Its first launch waits at
# step 5 for whatever ends it, so that no test has to be in time.
cd "${CHECKPOINT_DIR}" || exit 1
((RANK == 0)) || exit 0
step=0 sum=7
stops() { [[ -e "${STOP_FILE}" ]] || { [[ -n "${STOP_AT}" ]] && (($(date +%s) >= STOP_AT)); }; }
if [[ -s latest ]]; then read -r step <latest; read -r sum <"step-${step}"; fi
from="${step}"
save() {
    echo "${sum}" >partial && mv partial "step-${step}" && echo "${step}" >partial && mv partial latest
}
while ((step < $1)); do
    step=$((step + 1)) sum=$(((sum * 31 + step) % 65521))
    echo "step ${step} of $1 loss $((1000 - step)) seconds 0.2"
    if [[ -e break ]]; then
        cat break
        exit 9
    fi
    save
    if ((from == 0 && step == 5)); then until stops; do sleep 0.2; done; fi
    if stops; then exit 0; fi
done
echo "finished, sum ${sum}"
