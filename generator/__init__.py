"""CycleForge: one YAML file to a complete, checked Slurm GPU cluster on Azure CycleCloud."""

from .version import __version__

__all__ = ["__version__"]
