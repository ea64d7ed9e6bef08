"""A running Slurm cluster of booted machines: the projects' hooks, drains and recoveries as Slurm sees them."""
