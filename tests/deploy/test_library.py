"""docs/programs.md: the example from a file to a deployment, and its end."""

from __future__ import annotations

import pytest

from tests.verbs.test_library import BLOCKS
from tests.what_if.place import Place


def test_the_example_deploys_and_deletes(deployable: Place, capsys: pytest.CaptureFixture[str]) -> None:
    deployable.patch.setattr("generator.azure.deletion.carry_out.PAUSE_S", 0.0)
    exec(compile(BLOCKS[0].replace('"demo.yaml"', '"minimal.yaml"'), "programs.md", "exec"), {})
    out, err = capsys.readouterr()
    assert err == ""
    assert "resources would be created\ndone\n" in out
    assert deployable.arm.refused == []
    assert [name for name in deployable.arm.state.resources if "/minimal-rg" in name] == []
