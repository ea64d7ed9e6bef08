#!/bin/bash
# A hook of Slurm: the project's own, on the disk of the node. Slurm gives hooks nothing but its own variables.
export CYCLEFORGE_ROOT="/mnt/sick/${SLURMD_NODENAME}/root" FAKE_STATE="/mnt/sick/${SLURMD_NODENAME}/state" CYCLEFORGE_SAMPLE_S=0
kind="${0%.d/*}"
exec bash "/mnt/hooks/${kind##*/}.sh"
