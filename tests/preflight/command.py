"""The command in this process, and what must be true of every run of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from generator.cli import main
from tests.answers import data_of
from tests.azure_api.declared import declared
from tests.bed.arm import Arm
from tests.bed.plans import SMALL

ASKING = {request.path.rpartition("/")[2].casefold() for _, request in declared() if request.changes_nothing} | {
    "validate",
    "whatif",
}
"""Last words of the paths of POSTs that only ask."""


class Run:
    """`cycleforge preflight small.yaml …`; nothing is changed by it, nothing undocumented asked, no secret shown."""

    def __init__(self, arm: Arm, folder: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """`kept` has what is built: once for each definition, for all tests."""
        self.arm, self.folder, self._kept, self._capsys = arm, folder, kept, capsys

    def __call__(
        self, *words: str, text: str = SMALL, name: str = "small", changes: bool = False
    ) -> tuple[int, str, str]:
        """Exit code, standard output, standard error; `name` of a shipped definition, or `text` as `small`."""
        if name == "small":
            (self.folder / "small.yaml").write_text(text)
        code = main(["preflight", name, "--out", str(self.built(text, name)), *words])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        assert self.arm.refused == []
        for secret in (self.arm.state.caller.secret, "Bearer", "eyJ"):
            assert secret not in out + err
        if not changes:
            assert self.arm.changes == []
            assert {each.rpartition("/")[2].casefold() for each in self.arm.posts} <= ASKING
        return code, out, err

    def built(self, text: str = SMALL, name: str = "small") -> Path:
        """The folder in which the deployment folder is."""
        out = self._kept / hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:16]
        if not out.exists():
            (self.folder / "small.yaml").write_text(text)
            assert main(["build", name, "--out", str(out)]) == 0
            self._capsys.readouterr()
        return out

    def json(self, *words: str, text: str = SMALL, name: str = "small") -> dict[str, Any]:
        """What --json prints."""
        result: dict[str, Any] = data_of(self(*words, "--json", text=text, name=name)[1])
        return result

    def found(self, *, text: str = SMALL, name: str = "small") -> list[str]:
        """Ids of what was found, and of what is not known with a question mark."""
        result = self.json(text=text, name=name)
        return sorted([row["rule"] for row in result["problems"]] + [f"{row['rule']}?" for row in result["not_known"]])
