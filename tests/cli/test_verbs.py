"""`init`, `explain`, `schema`, `list`, `completion` and `project` in this process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from generator.cli import parser
from generator.cli.parser import VERBS, full_parser, make_parser
from tests.answers import data_of
from tests.cli.running import GOOD, Run, problems_of

pytestmark = pytest.mark.usefixtures("own_place")
ROOT = Path(__file__).resolve().parents[2]


def test_init_writes_a_definition_that_builds(run: Run) -> None:
    """And never over another one."""
    code, out, _ = run("init", "my-lab")
    assert code == 0
    assert out.startswith("wrote my-lab.yaml\n")
    assert run("build", "my-lab.yaml")[0] == 0
    before = Path("my-lab.yaml").read_text()
    code, _, err = run("init", "my-lab")
    assert code == 5
    assert "my-lab.yaml already exists and is left unchanged" in err
    assert Path("my-lab.yaml").read_text() == before
    assert sorted(path.name for path in Path().iterdir()) == ["my-lab.yaml", "output"]


def test_init_into_the_folder_of_definitions(run: Run) -> None:
    """If there is one; or where the user says; or to standard output."""
    Path("cluster_defs").mkdir()
    run("init", "one")
    run("init", "two", "--out", "two.yaml", "--preset", "llm-a100")
    assert Path("cluster_defs/one.yaml").is_file()
    assert "name: two\n" in Path("two.yaml").read_text()
    assert "name: three\n" in run("init", "three", "--out", "-")[1]
    assert "cannot write" in run("init", "four", "--out", "no/such/folder.yaml")[2]


@pytest.mark.parametrize("name", ["Capital", "under_score", "a: b", "x" * 80, "1", "", "true", "${HOME}", "\n"])
def test_init_refuses_names_that_would_not_build(run: Run, name: str) -> None:
    """Before a file is there."""
    code, _, err = run("init", name)
    assert code == 2
    assert "deployment" in err
    assert list(Path().iterdir()) == []


def test_init_with_an_unknown_preset(run: Run) -> None:
    """With the one that was meant."""
    assert "did you mean 'llm-a100'?" in run("init", "x", "--preset", "llm-a10")[2]


def test_explain(run: Run) -> None:
    """One, several, all; whatever the case."""
    code, out, _ = run("explain", "e0001", "E0101")
    assert code == 0
    assert out.startswith("E0001 (error, the file)\n  The file is not valid YAML.\n  why:  ")
    assert "\nE0101 (error, " in out
    code, out, err = run("explain", "E0011x")
    assert (code, out) == (2, "")
    assert "did you mean 'E0011'?" in err
    everything, listed = run("explain", "--all")[1], run("explain")[1]
    for line in listed.splitlines():
        assert f"\n{line.split()[0]} (" in f"\n{everything}"
    assert data_of(run("explain", "E0001", "--json")[1])[0]["id"] == "E0001"


def test_many_problems_are_counted_and_all_shows_them(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"key{number}: 1\n" for number in range(60))
    (tmp_path / "lab.yaml").write_text(GOOD + rows)

    for verb in ("validate", "plan", "build", "diff"):
        code, _, err = run(verb, "lab.yaml")
        assert code == 1
        assert err.count("error E0101") == 50
        assert "\nand 10 more: 10 errors; --all shows them\n60 errors in lab.yaml\n" in err
        assert run(verb, "lab.yaml", "--all")[2].count("error E0101") == 60
        assert len(data_of(run(verb, "lab.yaml", "--json")[1])["problems"]) == 60


def test_every_rule_of_a_problem_can_be_explained(run: Run, tmp_path: Path) -> None:
    """The last line of a problem is a command; it has to work."""
    (tmp_path / "x.yaml").write_text(
        "name: X_\nlocation: nowhere\nslurm: {partitions: [{name: a, vm_size: Z}]}\nfoo: ${A}b\n"
    )
    _, out, _ = run("validate", "x.yaml", "--json")
    for row in problems_of(out):
        assert run("explain", row["rule"])[0] == 0


def test_schema(run: Run) -> None:
    """Printed, or written over an older one."""
    code, out, _ = run("schema")
    assert code == 0
    assert json.loads(out)["title"] == "CycleForge definition"
    Path("s.json").write_text("old")
    assert run("schema", "--out", "s.json")[0] == 0
    assert Path("s.json").read_text().strip() == out.strip()
    assert run("schema", "--out", "no/such/s.json")[0] == 5


@pytest.mark.parametrize(
    ("what", "word", "column"),
    [
        ("vm-sizes", "nd96amsr_a100", "name"),
        ("releases", "8.9.1", "cyclecloud"),
        ("images", "ubuntu24", "name"),
        ("rules", "e0001", "id"),
    ],
)
def test_list(run: Run, what: str, word: str, column: str) -> None:
    """Filtered whatever the case; a table and the same as data."""
    code, out, _ = run("list", what, word)
    assert code == 0
    rows = data_of(run("list", what, word, "--json")[1])
    assert len(out.splitlines()) == len(rows) + 1
    assert any(word in str(row[column]).lower() for row in rows)
    assert len(data_of(run("list", what, "--json")[1])) > len(rows)
    assert f"contain '{'zz' * 9}'" in run("list", what, "zz" * 9)[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(run: Run, shell: str) -> None:
    """Knows verbs and flags."""
    code, out, _ = run("completion", shell)
    assert code == 0
    for word in ("validate", "explain", "strict"):
        assert word in out


def test_the_full_parser_knows_every_flag() -> None:
    """What documentation and completion are made from."""
    text = "".join(each.format_help() for each in full_parser()._subparsers._group_actions[0].choices.values())  # type: ignore[union-attr]
    for flag in ("--json", "--strict", "--check", "--out", "--preset", "--all", "--part"):
        assert flag in text


@pytest.mark.parametrize("before", ["--help", "-h", "--no-color --help"])
def test_the_overview_has_every_verb_whatever_follows(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.run([*before.split(), "build", "--strict"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert set(VERBS) <= {line.split()[0] for line in out.splitlines() if line.startswith("    ")}


def test_a_command_makes_the_parser_of_its_verb_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all verbs take longer than reading a small definition."""
    made: list[set[str]] = []

    def noted(wanted: list[str], listed: list[str]) -> tuple[Any, dict[str, Any]]:
        found = make_parser(wanted, listed)
        made.append(set(found[1]))
        return found

    monkeypatch.setattr(parser, "make_parser", noted)
    assert run("list", "rules")[0] == 0
    assert made == [{"list"}]


def test_project_bump(run: Run, tmp_path: Path) -> None:
    """A changed project gets a version, an unchanged one does not."""
    source = next(path.parent for path in sorted((ROOT / "projects").glob("*/project.ini")))
    folder = tmp_path / "projects" / source.name
    shutil.copytree(source, folder)
    assert "recorded version" in run("project", "bump", str(folder))[1]
    assert "nothing has changed" in run("project", "bump", str(folder))[1]
    script = next(path for path in sorted(folder.rglob("*.sh")) if path.is_file())
    script.write_text(script.read_text() + "\n# changed\n")
    assert " is now " in run("project", "bump", str(folder), "--part", "minor")[1]
    assert "did you mean 'misc_ubuntu'?" in run("project", "bump", "misc_ubunto")[2]
