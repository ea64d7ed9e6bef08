"""Which file a word on the command line means: what `init` wrote is found by the word that its own text says."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from generator.cli import main
from generator.cli.parser import VERBS, make_parser
from generator.errors import CannotRead
from generator.operate.definitions import find


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
    assert find(word) == written
    assert main(["validate", word]) == 0
    assert "no problems" in capsys.readouterr().out


def test_what_lies_here_comes_before_what_is_brought() -> None:
    shipped = find("minimal")
    assert shipped is not None
    assert shipped.is_absolute()
    Path("minimal.yaml").touch()
    assert find("minimal") == Path("minimal.yaml")
    Path("cluster_defs").mkdir()
    assert find("minimal") == Path("minimal.yaml")
    Path("cluster_defs/minimal.yaml").touch()
    assert find("minimal") == Path("cluster_defs/minimal.yaml")


def test_a_path_is_taken_at_its_word() -> None:
    Path("cluster_defs").mkdir()
    Path("cluster_defs/team-a.yaml").touch()
    with pytest.raises(CannotRead, match=r"there is no file other/team-a\.yaml"):
        find("other/team-a.yaml")


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


# ---------------------------------------------------------------- without a name

MINIMAL = "name: {}\nlocation: eastus\nslurm: {{partitions: [{{name: a, vm_size: Standard_D2as_v5, max_nodes: 1}}]}}\n"
OTHERS = {
    "compose.yaml": "name: web\nservices: {web: {image: x}}\nnetworks: {a: {}}\n",
    "environment.yml": "name: tools\nchannels: [defaults]\ndependencies: [python]\n",
    "workflow.yml": "name: ci\non: push\njobs: {test: {runs-on: x}}\n",
    "deployment.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
    "broken.yaml": "a: [\n",
    "empty.yaml": "",
    "list.yaml": "- name\n- location\n",
}
MANY = [
    verb
    for verb, parser in make_parser(VERBS, VERBS)[1].items()
    if any(action.metavar == "NAME" and action.nargs == "*" for action in parser._get_positional_actions())
    and verb != "blobs"
]


@pytest.mark.parametrize("folder", [".", "cluster_defs", "both"])
def test_without_a_name_the_definitions_of_this_folder_are_meant(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in OTHERS.items():
        Path(name).write_text(text)
    if folder == "both":
        Path("cluster_defs").mkdir()
        Path("cluster_defs/team-b.yaml").write_text(MINIMAL.format("team-b"))
    elif folder != ".":
        Path(folder).mkdir()
    Path("" if folder == "both" else folder, "team-a.yaml").write_text(MINIMAL.format("team-a"))
    assert main(["build"]) == 0
    assert sorted(path.name for path in Path("output").iterdir()) == ["team-a", "team-b"][: 1 + (folder == "both")]
    assert "not built" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", [*MANY, "locker prune"])
@pytest.mark.parametrize("others", [{}, OTHERS], ids=["empty", "others"])
def test_where_no_definition_is_no_verb_acts_on_what_is_shipped(
    verb: str, others: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in others.items():
        Path(name).write_text(text)
    assert main(verb.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there are no definitions here" in err
    assert "cycleforge init" in err
    assert sorted(path.name for path in Path().iterdir()) == sorted(others)


@pytest.mark.parametrize(
    "text", [MINIMAL.format("team-a") + "a: [", MINIMAL.format("team-a").replace("name: team", "nmae: team")]
)
def test_a_definition_with_problems_is_said_and_not_left_out(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("team-a.yaml").write_text(text)
    assert main(["validate"]) in (1, 2)
    assert "team-a.yaml:" in capsys.readouterr().err


def test_a_misspelt_name_is_answered_with_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    Path("research.yaml").write_text(MINIMAL.format("research"))
    assert main(["plan", "reserch"]) == 2
    assert "did you mean 'research'?" in capsys.readouterr().err
    assert main(["plan", "something"]) == 2
    assert "definitions here: research\n" in capsys.readouterr().err


# ---------------------------------------------------------------- by the name of the deployment


def test_a_definition_is_found_by_the_name_in_it() -> None:
    Path("big.yaml").write_text(MINIMAL.format("research"))
    assert find("research") == Path("big.yaml")
    Path("research.yaml").write_text(MINIMAL.format("other"))
    with pytest.raises(CannotRead, match=r"'research' is more than one definition: research\.yaml, big\.yaml"):
        find("research")
    Path("research.yaml").write_text(MINIMAL.format("research"))
    assert find("research") == Path("research.yaml")
