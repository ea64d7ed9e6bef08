"""Runs the program as `python3` would, but ends it at one step: FAKE_KILL is `before NAME` or `after NAME`, of a step.

A power cut there: the step's work is done or not, and the status file does not know it.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import sys
from typing import Any


def main() -> None:
    """`-B -s -m cycleforge_bootstrap …`, as the shell script calls its Python."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.environ["PYTHONPATH"])
    moment, _, name = os.environ["FAKE_KILL"].partition(" ")
    runner: Any = importlib.import_module("cycleforge_bootstrap.runner")
    attempt = runner._attempt

    def cut(context: Any, step: Any) -> Any:
        if step.name == name and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        problem = attempt(context, step)
        if step.name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return problem

    runner._attempt = cut
    sys.argv = ["cycleforge_bootstrap", *sys.argv[sys.argv.index("cycleforge_bootstrap") + 1 :]]
    runpy.run_module("cycleforge_bootstrap", run_name="__main__")


main()
