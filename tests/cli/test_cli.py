"""The command line in this process: results, messages and exit codes of every verb."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from generator import pipeline
from generator.cli import main
from generator.cli.parser import VERBS, full_parser
from generator.errors import AzureRefused, exit_codes
from generator.output import folder as output
from generator.version import __version__

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
name: lab
location: southcentralus
admin: {username: ccadmin}
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true}
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder; nothing of the caller's environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "CYCLEFORGE_DEBUG", "CYCLECLOUD_SSH_PUBLIC_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A definition without problems."""
    path = tmp_path / "lab.yaml"
    path.write_text(GOOD)
    return path


class Run:
    """One run: exit code, both outputs."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command."""
    return Run(capsys)


def problems_of(out: str) -> list[dict[str, Any]]:
    """The problems in a JSON answer."""
    found: list[dict[str, Any]] = json.loads(out)["problems"]
    return found


# ---------------------------------------------------------------- the frame


def test_help_names_every_verb_and_exit_code(run: Run) -> None:
    """Both come from the declarations."""
    code, out, _ = run("--help")
    assert code == 0
    for verb in VERBS:
        assert f"    {verb}" in out
    for number, when in exit_codes():
        assert f"  {number:<4} {when}" in out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run: Run, verb: str) -> None:
    """With its description and its flags."""
    code, out, err = run(verb, "--help")
    assert (code, err) == (0, "")
    assert f"usage: cycleforge {verb}" in out
    assert len(out) > 200


def test_version(run: Run) -> None:
    """On standard output."""
    assert run("--version") == (0, f"cycleforge {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["bild"], "there is no command 'bild'", "did you mean 'build'?"),
        (["xyzzy"], "there is no command 'xyzzy'", "commands: init, validate"),
        ([], "a command is missing", "start with"),
        (["build", "--jsn"], "unknown option '--jsn'", "did you mean '--json'?"),
        (["build", "--Out=x"], "unknown option '--Out'", "did you mean '--out'?"),
        (["build", "--out"], "argument --out: expected one argument", "see `cycleforge build --help`"),
        (["validate", "--out", "x"], "unknown option '--out'", "see `cycleforge validate --help`"),
        (["plan"], "the following arguments are required: NAME", "see `cycleforge plan --help`"),
        (["plan", "a", "b"], "unknown argument 'b'", "see `cycleforge plan --help`"),
        (["list", "vmsizes"], "invalid choice: 'vmsizes'", "see `cycleforge list --help`"),
        (["completion", "fish"], "invalid choice: 'fish'", "see `cycleforge completion --help`"),
        (["--quiet", "build"], "unknown option '--quiet'", "see `cycleforge build --help`"),
        (["build", "--js"], "unknown option '--js'", "did you mean '--json'?"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], message: str, hint: str) -> None:
    """Exit code 2, one sentence, one way out; nothing on standard output."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert f"cycleforge: {message}" in err or message in err
    assert f"  hint: {hint}" in err


@pytest.mark.parametrize("where", [["--no-color", "list", "images"], ["list", "images", "--no-color"]])
def test_no_color_is_understood_before_and_after_the_verb(run: Run, where: list[str]) -> None:
    """Nobody remembers which."""
    assert run(*where)[0] == 0


def test_our_bugs_are_called_bugs(good: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With version, place and what to do; the exception's own words may hold a secret."""

    def fail(*_: object) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(pipeline, "check", fail)
    code, out, err = run("validate", str(good))
    assert (code, out) == (70, "")
    assert (
        f"this is a bug in CycleForge {__version__}, not in your definition (KeyError in tests.cli.test_cli, line"
        in err
    )
    assert "CYCLEFORGE_DEBUG=1" in err
    assert "hunter2" not in err


def test_debug_shows_the_traceback(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On request only."""
    monkeypatch.setenv("CYCLEFORGE_DEBUG", "1")
    monkeypatch.setattr(pipeline, "check", lambda *_: 1 / 0)
    assert main(["validate", str(good)]) == 70
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "expected"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141), (AzureRefused("no", "ask"), 4)]
)
def test_other_endings(good: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, expected: int) -> None:
    """Each with its code. (A broken pipe closes standard output, so nothing is captured here.)"""
    monkeypatch.setattr("generator.cli._drop_output", lambda: None)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "check", fail)
    assert main(["validate", str(good)]) == expected


# ---------------------------------------------------------------- finding definitions


def test_a_missing_file(good: Path, run: Run) -> None:
    """With the file that was probably meant."""
    code, _, err = run("validate", str(good.with_name("lap.yaml")))
    assert code == 2
    assert "there is no file" in err
    assert f"did you mean '{good}'?" in err


def test_a_missing_name(run: Run, tmp_path: Path) -> None:
    """The folder here first, then the definitions that CycleForge brings."""
    (tmp_path / "cluster_defs").mkdir()
    (tmp_path / "cluster_defs" / "mine.yaml").write_text(GOOD)
    assert "did you mean 'mine'?" in run("validate", "mina")[2]
    assert "did you mean 'llm-a100'?" in run("validate", "llm-a10")[2]
    assert "definitions: mine, " in run("validate", "zzzzzzzz")[2]


@pytest.mark.parametrize("kind", ["folder", "closed"])
def test_what_cannot_be_read(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A folder, or no permission."""
    path = tmp_path / "x.yaml"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text(GOOD)

        def closed(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", closed)
    code, _, err = run("validate", str(path))
    assert code == 2
    assert "cannot read" in err


def test_all_definitions_of_the_folder_here(run: Run, tmp_path: Path) -> None:
    """Without a name; templates and other files are left alone."""
    folder = tmp_path / "cluster_defs"
    (folder / "templates").mkdir(parents=True)
    (folder / "b.yaml").write_text(GOOD.replace("lab", "beta"))
    (folder / "a.yml").write_text(GOOD.replace("lab", "alpha"))
    (folder / "definition.schema.json").write_text("{}")
    code, out, err = run("validate")
    assert (code, err) == (0, "")
    assert out == "cluster_defs/a.yml: no problems\ncluster_defs/b.yaml: no problems\n"


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """For definitions that a program makes."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.replace("name: lab", "nam: lab").encode())))
    code, out, _ = run("validate", "-", "--json")
    assert code == 1
    assert {row["file"] for row in problems_of(out)} == {"<stdin>"}


def test_endless_input_is_refused(run: Run) -> None:
    """A device is not a definition."""
    code, _, err = run("validate", "/dev/zero")
    assert code == 2
    assert "larger than 1,048,576 bytes" in err


# ---------------------------------------------------------------- validate


def test_validate_reports_all_files(good: Path, run: Run, tmp_path: Path) -> None:
    """Problems on standard error, each file with its count; a broken file weighs more than a wrong one."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(GOOD.replace("max_nodes", "max_node"))
    code, out, err = run("validate", str(good), str(wrong))
    assert code == 1
    assert out == f"{good}: no problems\n"
    assert f"{wrong}:6:" in err
    assert "did you mean 'max_nodes'?" in err
    assert f" in {wrong}\n" in err
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [1\n")
    assert run("validate", str(good), str(wrong), str(broken))[0] == 2


def test_validate_json(good: Path, run: Run, tmp_path: Path) -> None:
    """One object, everything in it, nothing on standard error."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(GOOD.replace("max_nodes", "max_node"))
    code, out, err = run("validate", "--json", str(wrong), str(good))
    answer = json.loads(out)
    assert (code, err, answer["ok"], answer["files"]) == (1, "", False, [str(wrong), str(good)])
    assert {"file", "line", "column", "end_column", "level", "rule", "message", "hint", "path"} <= set(
        answer["problems"][0]
    )
    assert json.loads(run("validate", "--json", str(good))[1]) == {"ok": True, "files": [str(good)], "problems": []}


def test_no_color_off_a_terminal(run: Run, tmp_path: Path) -> None:
    """A log file is not a terminal."""
    (tmp_path / "x.yaml").write_text("a: [1\n")
    assert "\x1b" not in run("validate", "x.yaml")[2]


def test_a_secret_of_the_environment_is_not_printed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with its value."""
    monkeypatch.setenv("SECRET", "hunter2 hunter2")
    text = GOOD.replace("lab", "${SECRET}").replace("southcentralus", "${SECRET}").replace("4,", "'${SECRET}',")
    (tmp_path / "x.yaml").write_text(text)
    code, _, err = run("validate", "x.yaml")
    assert code == 1
    assert "${SECRET}" in err
    assert "hunter2" not in err


# ---------------------------------------------------------------- build, diff, plan


def test_build_and_again(good: Path, run: Run) -> None:
    """Created, up to date, changed; and `--check` in between."""
    code, _, _ = run("build", str(good), "--check")
    assert (code, Path("output").exists()) == (1, False)
    code, out, err = run("build", str(good))
    assert (code, err) == (0, "")
    assert out.startswith("output/lab: created, ")
    assert run("build", str(good))[1].startswith("output/lab: up to date, ")
    assert run("build", str(good), "--check")[0] == 0
    good.write_text(GOOD.replace("max_nodes: 4", "max_nodes: 5"))
    code, out, _ = run("build", str(good), "--check")
    assert code == 1
    assert out.startswith("output/lab: not up to date: ")
    code, out, _ = run("build", str(good))
    assert code == 0
    assert "  ~ effective.yaml\n" in out


def test_build_keeps_what_a_user_edited(good: Path, run: Run) -> None:
    """And says where."""
    run("build", str(good))
    Path("output/lab/main.bicep").write_text("// mine\n")
    _, out, _ = run("build", str(good))
    assert "  ! main.bicep was not as built; your version is now main.bicep.orig\n" in out


def test_each_definition_stands_for_itself(good: Path, run: Run, tmp_path: Path) -> None:
    """The good one is built, the exit code says that another was not."""
    (tmp_path / "wrong.yaml").write_text(GOOD.replace("max_nodes", "max_node"))
    code, out, err = run("build", str(good), "wrong.yaml")
    assert code == 1
    assert "output/lab: created" in out
    assert "wrong.yaml: not built" in err
    answer = json.loads(run("build", str(good), "wrong.yaml", "--json")[1])
    assert answer["ok"] is False
    assert [each["folder"] for each in answer["deployments"]] == ["output/lab"]
    assert answer["deployments"][0]["up_to_date"] is True
    assert {row["file"] for row in answer["problems"]} == {"wrong.yaml"}


def test_two_definitions_of_one_name(good: Path, run: Run) -> None:
    """Would overwrite each other."""
    shutil.copy(good, "other.yaml")
    code, _, err = run("build", str(good), "other.yaml")
    assert code == 1
    assert err.count("error E0234") == 2
    assert "other.yaml defines 'lab' too" in err
    assert not Path("output").exists()


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_folder_of_somebody_else(good: Path, run: Run, flags: list[str]) -> None:
    """Exit code 5; the others are still built."""
    Path("output/lab").mkdir(parents=True)
    Path("output/lab/thesis.tex").write_text("x")
    Path("other.yaml").write_text(GOOD.replace("lab", "other"))
    code, out, err = run("build", str(good), "other.yaml", *flags)
    assert code == 5
    assert Path("output/other/main.bicep").is_file()
    assert "was not made by CycleForge" in (out if flags else err)
    assert Path("output/lab/thesis.tex").read_text() == "x"


def test_out(good: Path, run: Run, tmp_path: Path) -> None:
    """Another folder for the deployment folders."""
    assert run("build", str(good), "--out", str(tmp_path / "there"))[0] == 0
    assert (tmp_path / "there" / "lab" / "manifest.json").is_file()


def test_strict(good: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings stop the build only when asked to."""
    from dataclasses import replace

    from generator.problems.problem import Problem

    check = pipeline.check

    def warn(*arguments: Any) -> pipeline.Checked:
        return replace(check(*arguments), problems=(Problem("W0999", "warning", ("name",), "odd"),))

    monkeypatch.setattr(pipeline, "check", warn)
    code, _, err = run("build", str(good))
    assert code == 0
    assert "1:7: warning W0999: odd" in err
    assert run("validate", str(good))[0] == 0
    assert run("validate", str(good), "--strict")[0] == 1
    code, _, err = run("build", str(good), "--strict", "--out", "strict")
    assert (code, Path("strict").exists()) == (1, False)
    assert "not built" in err


def test_diff(good: Path, run: Run) -> None:
    """Nothing there, nothing changed, something changed."""
    assert "does not exist yet" in run("diff", str(good))[1]
    run("build", str(good))
    assert run("diff", str(good))[1] == "output/lab is up to date\n"
    good.write_text(GOOD.replace("max_nodes: 4", "max_nodes: 5"))
    before = output.check(Path("output/lab"), {})
    code, out, _ = run("diff", str(good))
    assert code == 0
    assert "slurm.partitions[htc].max_nodes" in out
    assert "highest cost: in place" in out
    assert output.check(Path("output/lab"), {}) == before
    answer = json.loads(run("diff", str(good), "--json")[1])
    wheres = {each["where"]: each for each in answer["changes"]}
    change = wheres["definition.slurm.partitions[htc].max_nodes"]
    assert (change["old"], change["new"], change["cost"]) == (4, 5, "in place")
    assert "effective.yaml" in answer["files"]["changed"]


def test_diff_of_a_cluster_that_comes_or_goes(good: Path, run: Run) -> None:
    """A first cluster restarts nothing; one that is dropped has to be deleted on the server."""
    infrastructure = GOOD.split("slurm:")[0]
    good.write_text(infrastructure)
    run("build", str(good))
    good.write_text(GOOD)
    comes = json.loads(run("diff", str(good), "--json")[1])
    assert comes["worst"] == "in place"
    assert {each["where"] for each in comes["changes"]} >= {"definition.slurm", "derived.slurm"}
    run("build", str(good))
    assert Path("output/lab/cluster/lab.txt").exists()
    good.write_text(infrastructure)
    goes = json.loads(run("diff", str(good), "--json")[1])
    assert {each["where"]: each["cost"] for each in goes["changes"]}["definition.slurm"] == "recreate"
    run("build", str(good))
    assert not Path("output/lab/cluster").exists()


def test_a_definition_without_projects_needs_no_locker(good: Path, run: Run) -> None:
    good.write_text(GOOD.split("slurm:")[0])
    for command in (("upload",), ("upload", "--dry-run"), ("locker", "verify")):
        code, out, err = run(*command, str(good))
        assert (code, out) == (0, "")
        assert "has no projects for a locker" in err


@pytest.mark.parametrize("damage", ["a: [1\n", None])
def test_diff_against_a_damaged_folder(good: Path, run: Run, damage: str | None) -> None:
    """Says so, and what repairs it."""
    run("build", str(good))
    Path("output/lab/effective.yaml").unlink()
    if damage:
        Path("output/lab/effective.yaml").write_text(damage)
    code, _, err = run("diff", str(good))
    assert code == 2
    assert "`cycleforge build` writes it again" in err


@pytest.mark.parametrize("verb", ["diff", "plan"])
def test_problems_stop_plan_and_diff(run: Run, tmp_path: Path, verb: str) -> None:
    """As they stop a build."""
    (tmp_path / "x.yaml").write_text(GOOD.replace("max_nodes", "max_node"))
    code, out, err = run(verb, "x.yaml")
    assert (code, out) == (1, "")
    assert "x.yaml:6:" in err
    code, out, err = run(verb, "x.yaml", "--json")
    assert (code, err) == (1, "")
    assert problems_of(out)


def test_plan(good: Path, run: Run) -> None:
    """Sections for people, data for machines."""
    code, out, err = run("plan", str(good))
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == [
        "lab (lab.yaml)",
        "network",
        "nodes",
        "quota needed in southcentralus, with the server and every partition at its limit",
        "mounts",
        "projects",
        "resource providers",
        "image terms to accept",
        *(["jobs"] if "\njobs\n" in out else []),
        "asked at deployment",
    ]
    assert "  htc        Standard_D4ads_v5  ≤ 4" in out
    answer = json.loads(run("plan", str(good), "--json")[1])
    assert answer["derived"]["name"] == "lab"


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "cluster_defs").glob("*.yaml")))
def test_plans_of_the_shipped_definitions(name: str, run: Run) -> None:
    """Each can be printed, whatever it uses."""
    code, out, err = run("plan", str(ROOT / "cluster_defs" / f"{name}.yaml"))
    assert code == 0, err
    assert "None" not in out


# ---------------------------------------------------------------- init, explain, schema, list, completion, project


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
    assert json.loads(run("explain", "E0001", "--json")[1])[0]["id"] == "E0001"


def test_many_problems_are_counted_and_all_shows_them(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"key{number}: 1\n" for number in range(60))
    (tmp_path / "lab.yaml").write_text(GOOD + rows)

    for verb in ("validate", "plan", "build", "diff"):
        code, _, err = run(verb, "lab.yaml")
        assert code == 1
        assert err.count("error E0101") == 50
        assert "\nand 10 more: 10 errors; --all shows them\n60 errors in lab.yaml\n" in err
        assert run(verb, "lab.yaml", "--all")[2].count("error E0101") == 60
        assert len(json.loads(run(verb, "lab.yaml", "--json")[1])["problems"]) == 60


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
    rows = json.loads(run("list", what, word, "--json")[1])
    assert len(out.splitlines()) == len(rows) + 1
    assert any(word in str(row[column]).lower() for row in rows)
    assert len(json.loads(run("list", what, "--json")[1])) > len(rows)
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
    text = "".join(parser.format_help() for parser in full_parser()._subparsers._group_actions[0].choices.values())  # type: ignore[union-attr]
    for flag in ("--json", "--strict", "--check", "--out", "--preset", "--all", "--part"):
        assert flag in text


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
