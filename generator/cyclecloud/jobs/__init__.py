"""A job of the cluster from the engineer's machine: copied, submitted once, followed, read, through `ssh` and Slurm."""
