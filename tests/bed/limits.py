"""How long one command on a bed may take: a net against hanging, far from what it takes on a busy machine."""

COMMAND_S = 400.0
"""Longer than Slurm needs to send a lost message again (slurmctld's agent waits a minute between two tries), and
shorter than the guard of the test, so that the command is named and what the machines say about it is shown."""
