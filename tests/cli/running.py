"""Runs the command in this process."""

from __future__ import annotations

from typing import Any

import pytest

from generator.cli import main
from tests.answers import data_of

GOOD = """\
name: lab
location: southcentralus
admin: {username: ccadmin}
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true}
"""


class Run:
    """One run: exit code, both outputs."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err


def problems_of(out: str) -> list[dict[str, Any]]:
    """The problems in a JSON answer."""
    found: list[dict[str, Any]] = data_of(out)["problems"]
    return found
