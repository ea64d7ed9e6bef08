"""How tests start the command as a process: from this checkout, or from the wheel that should be tried."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = os.environ.get("CYCLEFORGE_INSTALLED_PYTHON", sys.executable)
"""`tests/wheel` runs the tests of the command once more, with the Python of an environment that has the wheel."""
MODULE = "cycleforge" if "CYCLEFORGE_INSTALLED_PYTHON" in os.environ else "generator"
COMMAND = (PYTHON, "-m", MODULE)
