"""A Slurm cluster with real pyxis and enroot."""
