"""`cycleforge run` and `cycleforge prove`: the user's own ssh, a real sshd on the scheduler, real Slurm behind it."""
