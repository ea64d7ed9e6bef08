"""docs/programs.md: the verbs as functions; its examples run against a living cluster."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.command import ROOT
from tests.verbs.place import Living

PAGE = (ROOT / "docs/programs.md").read_text(encoding="utf-8").partition("## In Python")[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_run(living: Living, capsys: pytest.CaptureFixture[str]) -> None:
    living.runs(
        {"Name": "htc-1", "InstanceId": "vm-1", "Status": "Failed", "State": "Failed", "StatusMessage": "no quota"}
    )
    living.also_reaches("htc-1")
    log = living.folder / "root/var/log/slurmd/slurmd.log"
    log.parent.mkdir(parents=True)
    log.write_text("slurmd did not start\n")
    names: dict[str, object] = {}
    for block in BLOCKS[1:]:
        exec(compile(block.replace('"demo"', '"minimal.yaml"'), "programs.md", "exec"), names)
    out, err = capsys.readouterr()
    assert err == ""
    assert "None\n" in out  # nothing is deployed
    assert f"htc-1 no quota\n{log}\nslurmd did not start\n" in out
    assert "False" not in out
    assert living.changes == ["cyclecloud terminate_cluster minimal"]


def test_every_name_is_there() -> None:
    rows = re.findall(r"^\| (`.*?`) \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 8
    for modules, text in rows:
        found = [import_module(f"generator.operate.{name}") for name in re.findall(r"`(\w+)`", modules)]
        missing = [name for name in re.findall(r"`(\w+)`", text) if not any(hasattr(each, name) for each in found)]
        assert missing == []
