#!/usr/bin/env bash
# usage: hosts.sh [--slots N] [NODE... | --partition NAME | --azslurm]
# Prints a file of hosts for mpirun: the nodes of the job it runs in, or those of a list such as hpc-[1-4,7], of a partition
# of Slurm, or of CycleCloud (`sudo ./hosts.sh --azslurm` on the scheduler). Slots are the tasks of a node.
set -euo pipefail
# shellcheck source=recipes/lib/common.sh
. ./library.sh
# shellcheck source=recipes/lib/hosts.sh
. "${JOBS_LIB}/hosts.sh"

print_hosts "$@"
