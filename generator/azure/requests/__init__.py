"""Every request that is sent, one module per service: path, api-version and source stand nowhere else."""
