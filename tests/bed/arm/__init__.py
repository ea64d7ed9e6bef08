"""A stand-in of Azure Resource Manager, its tokens and a `bicep` on the loopback: see arm.py."""

from .arm import Arm, running_arm

__all__ = ["Arm", "running_arm"]
