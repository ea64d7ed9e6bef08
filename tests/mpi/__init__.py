"""Launches over real MPI on real Slurm; see conftest.py."""
