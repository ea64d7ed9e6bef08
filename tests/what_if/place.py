"""A built folder, a signed-in user and a `bicep` in front of the stand-in of Azure Resource Manager."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from generator.cli import main
from tests.bed.arm import Arm
from tests.bed.plans import KEY, SMALL

DEFINITION = SMALL.replace(KEY, "${CYCLECLOUD_SSH_PUBLIC_KEY}")
TEMPLATE: dict[str, Any] = {
    "$schema": "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#",
    "contentVersion": "1.0.0.0",
    "parameters": {"adminPassword": {"type": "securestring"}, "sshPublicKey": {"type": "string"}},
    "resources": [],
}
PASSWORD = "s3cret-of-the-test-A1"
BICEP = """\
#!/usr/bin/env python3
import json, os, sys
assert sys.argv[1:] == ["build-params", "main.bicepparam", "--stdout"] and os.path.exists("main.bicep"), sys.argv
with open(os.environ["HOME"] + "/bicep.json", "w") as file:
    json.dump(dict(os.environ), file)
if os.environ.get("BICEP_FAILS"):
    sys.exit("main.bicep(1,1) : Error BCP018: Expected the \\"=\\" character at this location.")
key = os.environ.get("CYCLEFORGE_SERVER_KEY") or os.environ["CYCLECLOUD_SSH_PUBLIC_KEY"]
parameters = {"sshPublicKey": {"value": key}, "adminPassword": {"value": os.environ["CYCLECLOUD_ADMIN_PASSWORD"]}}
print(json.dumps({"parametersJson": json.dumps({"parameters": parameters}),
                  "templateJson": json.dumps(TEMPLATE), "templateSpecId": None}))
"""
"""What it prints: https://github.com/Azure/bicep/blob/main/src/Bicep.Cli/Models/ParametersStdout.cs"""


class Place:
    """Runs commands in an own folder."""

    def __init__(
        self, arm: Arm, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, kept: Path
    ) -> None:
        """`kept` is a folder for what is built only once."""
        self.arm, self.folder, self.patch, self._capsys, self._kept = arm, folder, patch, capsys, kept
        patch.chdir(folder)
        for name in ("CYCLECLOUD_ADMIN_PASSWORD", "NO_COLOR", "AZURE_SUBSCRIPTION_ID"):
            patch.delenv(name, raising=False)
        # A lost connection is tried again, here without a pause.
        patch.setattr("azure.core.pipeline.transport.RequestsTransport.sleep", lambda *_: None)
        home = folder / "home"
        for name, value in (arm.environment | {"HOME": str(home), "AZURE_CONFIG_DIR": str(home / ".azure")}).items():
            patch.setenv(name, value)
        patch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", KEY)
        program = home / ".azure" / "bin" / "bicep"
        program.parent.mkdir(parents=True)
        program.write_text(BICEP.replace("TEMPLATE", repr(TEMPLATE)))
        program.chmod(0o755)
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
        content: dict[str, str] = json.loads((self.folder / "home" / "bicep.json").read_text())
        return content
