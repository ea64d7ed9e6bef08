"""The first boot's program, with stand-ins of CycleCloud's programs, instance metadata, ARM and blob storage."""
