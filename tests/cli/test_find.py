"""Which file a word on the command line means: what `init` wrote is found by the word that its own text says."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from generator.cli import main
from generator.cli.common import find_definition
from generator.errors import CannotRead


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("folder", [".", "cluster_defs"])
@pytest.mark.parametrize("word", ["team-a", "team-a.yaml"])
def test_what_init_wrote_is_found(folder: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(folder).mkdir(exist_ok=True)
    assert main(["init", "team-a"]) == 0
    written = Path(folder) / "team-a.yaml"
    assert "#   check   cycleforge validate team-a\n" in written.read_text()
    assert find_definition(word) == written
    assert main(["validate", word]) == 0
    assert "no problems" in capsys.readouterr().out


def test_what_lies_here_comes_before_what_is_brought() -> None:
    shipped = find_definition("minimal")
    assert shipped is not None
    assert shipped.is_absolute()
    Path("minimal.yaml").touch()
    assert find_definition("minimal") == Path("minimal.yaml")
    Path("cluster_defs").mkdir()
    assert find_definition("minimal") == Path("minimal.yaml")
    Path("cluster_defs/minimal.yaml").touch()
    assert find_definition("minimal") == Path("cluster_defs/minimal.yaml")


def test_a_path_is_taken_at_its_word() -> None:
    Path("cluster_defs").mkdir()
    Path("cluster_defs/team-a.yaml").touch()
    with pytest.raises(CannotRead, match=r"there is no file other/team-a\.yaml"):
        find_definition("other/team-a.yaml")


def test_init_says_how_the_editor_gets_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """Only where the file that the modeline names is missing."""
    assert main(["init", "team-a"]) == 0
    assert "`cycleforge schema --out definition.schema.json`" in capsys.readouterr().out
    assert main(["schema", "--out", "definition.schema.json"]) == 0
    assert main(["init", "team-b"]) == 0
    assert "schema" not in capsys.readouterr().out.splitlines()[-1]


def test_a_definition_by_pipe_gives_the_same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the readme, which names the file to change."""
    assert main(["init", "team-a"]) == 0
    assert main(["build", "team-a"]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("team-a.yaml").read_bytes())))
    assert main(["build", "-", "--check"]) == 0
