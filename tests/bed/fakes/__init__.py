"""Stand-ins that every bed uses."""

from __future__ import annotations

from pathlib import Path

NVIDIA_SMI = Path(__file__).with_name("nvidia-smi")
