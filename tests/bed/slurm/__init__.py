"""A Slurm cluster of booted machines whose GPU nodes show the hardware of an ND96isr_H100_v5."""
