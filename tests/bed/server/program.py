"""Parts of the program on the server, run in this process: quicker than a whole first boot."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from generator.files import assets

if TYPE_CHECKING:
    from tests.bed.server.harness import Server


def module(name: str) -> Any:
    folder = str(assets.folder("bootstrap"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(f"cycleforge_bootstrap.{name}")


def context(server: Server, **environment: str) -> Any:
    """The context of a run that begins now, on a server where `start.sh` has unpacked the payload."""
    core = module("core")
    payload = server.root / "opt/cycleforge" / server.facts["payloadSha256"]
    made = core.Context(payload, core.Paths(server.root), server.environment | environment)
    module("boot").prepare(made)
    return made


def run_steps(made: Any, *names: str) -> Any:
    """Run these steps; None, or the error of the one that failed."""
    steps = [step for step in module("steps").steps_of(made) if step.name in names]
    assert [step.name for step in steps] == list(names)
    return module("runner").run_steps(made, steps, module("status").Status(made, steps))
