"""The command line in this process: its frame, how it finds definitions, `validate`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from generator import pipeline
from generator.cli import main
from generator.cli.parser import VERBS
from generator.errors import AzureRefused, exit_codes
from generator.version import __version__
from tests.answers import data_of
from tests.cli.running import GOOD, Run, problems_of

pytestmark = pytest.mark.usefixtures("own_place")
ROOT = Path(__file__).resolve().parents[2]


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
        (
            ["connect", "lab", "--all", "server", "ls"],
            "unknown argument 'ls'",
            "write a command after two dashes: cycleforge connect NAME HOST -- ls",
        ),
        (["connect", "lab", "portal", "--port", "99999"], "--port is a number up to 65535", "without --port"),
        (["logs", "lab", "--lines", "5", "server", "more"], "unknown argument 'more'", "see `cycleforge logs --help`"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], message: str, hint: str) -> None:
    """Exit code 2, one sentence, one way out; nothing on standard output."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert f"cycleforge: {message}" in err or message in err
    assert f"  hint: {hint}" in err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["logs", "lab", "--lines", "5", "scheduler"], {"name": "lab", "host": "scheduler", "lines": "5"}),
        (["logs", "--lines", "5", "lab", "scheduler"], {"name": "lab", "host": "scheduler"}),
        (["logs", "lab", "--lines", "5"], {"name": "lab", "host": "server"}),
        (["connect", "lab", "--all", "login", "--", "ls", "--all"], {"host": "login", "behind": ["ls", "--all"]}),
        (["status", "lab", "--json", "other"], {"names": ["lab", "other"]}),
        (["health", "report", "one", "--json", "two"], {"paths": ["one", "two"]}),
    ],
)
def test_an_option_may_stand_between_arguments(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: dict[str, object]
) -> None:
    """argparse gives what need not be there its default as soon as an option comes."""
    seen: dict[str, object] = {}
    monkeypatch.setattr(f"generator.cli.{words[0]}.run", lambda args: seen.update(vars(args)) or 0)
    code, _, err = run(*words)
    assert (code, {name: seen.get(name) for name in expected}) == (0, expected), err


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
    assert "definitions here: mine, lab\n" in run("validate", "zzzzzzzz")[2]


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
    answer = data_of(out)
    assert (code, err, answer["ok"], answer["files"]) == (1, "", False, [str(wrong), str(good)])
    assert {"file", "line", "column", "end_column", "level", "rule", "message", "hint", "path"} <= set(
        answer["problems"][0]
    )
    assert data_of(run("validate", "--json", str(good))[1]) == {"ok": True, "files": [str(good)], "problems": []}


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
