"""A built folder and a signed-in user in front of the stand-in of Azure Resource Manager and its `bicep`."""

from __future__ import annotations

import os
import shutil
from ast import literal_eval
from pathlib import Path

import pytest

from generator.cli import main
from tests.bed.arm import Arm
from tests.bed.plans import KEY, SMALL

SILENCE = "silence: [{rule: W1611, reason: one job is built quickly}]\n"
DEFINITION = SMALL.replace(KEY, "${CYCLECLOUD_SSH_PUBLIC_KEY}") + SILENCE
PASSWORD = "s3cret-of-the-test-A1"


class Place:
    """Runs commands in an own folder."""

    def __init__(
        self, arm: Arm, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, kept: Path
    ) -> None:
        """`kept` is a folder for what is built only once."""
        self.arm, self.folder, self.patch, self._capsys, self._kept = arm, folder, patch, capsys, kept
        patch.chdir(folder)
        for name in ("CYCLECLOUD_ADMIN_PASSWORD", "NO_COLOR"):
            patch.delenv(name, raising=False)
        # A lost connection is tried again, here without a pause.
        patch.setattr("azure.core.pipeline.transport.RequestsTransport.sleep", lambda *_: None)
        home = folder / "home"
        patch.setenv("HOME", str(home))
        patch.setenv("AZURE_CONFIG_DIR", str(home / ".azure"))
        patch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", KEY)
        home.mkdir()
        (folder / "minimal.yaml").write_text(DEFINITION)

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(list(words))
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        assert PASSWORD not in out + err
        return code, out, err

    def built(self) -> Place:
        """With the folder built."""
        kept = self._kept / str("CYCLECLOUD_SSH_PUBLIC_KEY" in os.environ)
        if not kept.exists():
            assert self("build", "minimal.yaml", "--out", str(kept))[0] == 0
        shutil.copytree(kept / "minimal", self.folder / "output" / "minimal")
        return self

    @property
    def compiler(self) -> dict[str, str]:
        """The environment that the compiler saw."""
        content: dict[str, str] = literal_eval(self.arm.bicep.with_name("environment").read_text())
        return content
