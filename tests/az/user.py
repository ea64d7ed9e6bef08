"""A user with a built folder who types lines with `az`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli import main
from tests.bed.arm import Arm
from tests.bed.az.shell import LOGIN, Az, Typed, typed
from tests.bed.plans import KEY

PASSWORD = "not-a-Real-password-1"
_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_AZ = re.compile(r"\baz [a-z]")


class User:
    """Signed in with `az` and with CycleForge."""

    def __init__(
        self, az: Az, arm: Arm, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.arm, self._az, self._folder, self._capsys = arm, az, folder, capsys
        home = folder / "home"
        home.mkdir()
        for name, value in {
            "HOME": str(home),
            "AZURE_CONFIG_DIR": str(home / ".azure"),
            "CYCLECLOUD_SSH_PUBLIC_KEY": KEY,
            "CYCLECLOUD_ADMIN_PASSWORD": PASSWORD,
            "SLURM_DATABASE_PASSWORD": PASSWORD,
        }.items():
            patch.setenv(name, value)
        patch.setattr("generator.azure.deployment.PAUSE_S", 0.0)
        arm.state.pace = 50
        self._built = folder / "output"
        login = typed(az, arm, LOGIN, folder)
        assert login.code == 0, login.err

    def cycleforge(self, *words: str, code: int = 0) -> str:
        """What a command prints; it must end with this code."""
        ended = main(list(words))
        out, err = self._capsys.readouterr()
        assert ended == code, err
        return out

    def built(self, name: str, text: str = "") -> str:
        """Build a shipped definition, or this text; the definition as other commands take it."""
        if text:
            (self._folder / f"{name}.yaml").write_text(text)
        given = f"{name}.yaml" if text else name
        self.cycleforge("build", given)
        self._here = self._built / name
        variables = re.findall(r"^export (\w+)=", (self._here / ".envrc.template").read_text(), re.MULTILINE)
        lines = [f"export {variable}={os.environ[variable]!r}\n" for variable in variables]
        (self._here / ".envrc").write_text("".join(lines))
        return given

    def deployed(self, name: str, text: str = "") -> str:
        """Built, and deployed by our own command."""
        given = self.built(name, text)
        self.cycleforge("deploy", given, "--yes", "--no-preflight")
        return given

    def types(self, line: str) -> Typed:
        """A line, or several, in the built folder; it must not fail. Azure then ends what it has begun."""
        done = typed(self._az, self.arm, line, self._here)
        for operation in list(self.arm.state.operations.values()):
            while operation.polled() is None:
                pass
        assert done.code == 0, f"{line}\n{done.err}"
        return done

    def blocks(self, *sections: str, page: str = "README.md") -> Iterator[str]:
        """The blocks with `az` of these sections of a page, in their order."""
        text = (self._here / page).read_text()
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            if section.partition("\n")[0] in sections:
                yield from (block for block in _BLOCK.findall(section) if _AZ.search(block))
