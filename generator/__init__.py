"""CycleForge: one YAML file to a complete, checked Slurm GPU cluster on Azure CycleCloud."""

from generator.version import __version__

__all__ = ["__version__"]
