# shellcheck shell=bash
# Sourced by common.sh.

# untagged [FILE]: what programs printed, without what a launcher puts in front of each line (`[1,0]<stdout>:` of mpirun, in
# Open MPI 5 `[prterun-host-123@1,0]<stdout>:`; `0: ` of srun --label), and with blanks for tabs: which of the two a tool puts between its columns differs from column to column.
# Sources: https://docs.open-mpi.org/en/v4.1.x/man-openmpi/man1/mpirun.1.html (--tag-output), man srun (--label)
untagged() {
    sed -E -e 's/^(\[([^][ ]*@)?[0-9]+(,[0-9]+)?\](<std(out|err)>:)? *|[[:blank:]]*[0-9]+:[[:blank:]])//' -e 'y/\t/ /' "$@"
}
