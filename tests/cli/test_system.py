"""A system on which CycleForge does not run is told so, and not that this is a bug."""

from __future__ import annotations

import sys

import pytest

from generator.cli import _POSIX_MODULES
from tests.cli.running import Run

pytestmark = pytest.mark.usefixtures("own_place")
VERBS = [
    ["init", "team-a"],
    ["validate", "lab.yaml"],
    ["plan", "lab.yaml"],
    ["build", "lab.yaml"],
    ["diff", "lab.yaml"],
]


@pytest.mark.parametrize("verb", VERBS)
def test_windows_gets_a_sentence(verb: list[str], run: Run, good: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    code, out, err = run(*verb)
    assert (code, out) == (3, "")
    assert "CycleForge runs on Linux and macOS" in err
    assert "WSL" in err
    assert "bug" not in err


@pytest.mark.parametrize("verb", VERBS)
def test_a_python_without_the_modules_of_posix(
    verb: list[str], run: Run, good: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either the verb needs none of them, or it says so."""
    for module in _POSIX_MODULES:
        monkeypatch.setitem(sys.modules, module, None)
    for module in [name for name in sys.modules if name.startswith("generator.disk")]:
        monkeypatch.delitem(sys.modules, module)
    code, _, err = run(*verb)
    assert "bug" not in err
    assert code == 0 or (code == 3 and "WSL" in err)
