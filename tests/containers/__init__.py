"""pyxis_enroot on running nodes: booted machines, a Slurm cluster, real plug-ins and containers."""
