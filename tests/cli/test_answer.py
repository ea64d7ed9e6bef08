"""`--json` has one JSON value on standard output, whatever happens."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

from generator.cli import common, main
from generator.errors import AzureRefused
from tests.answers import data_of
from tests.cli.running import GOOD, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.yaml").write_text(GOOD)
    return Run(capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("status", "lba"), "there is no definition 'lba'"),
        (("nodes", "lab"), "there is no output/lab/ssh_config"),
        (("run", "lab", "smoke"), "output/lab/jobs/smoke is not built"),
        (("prove", "lab", "--level", "much"), "invalid choice: 'much'"),
        (("nodes", "lab", "--jsn"), "unknown option '--jsn'"),
    ],
)
def test_an_error_is_an_answer(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*words, "--json")
    answer = data_of(out)
    assert (code, answer["ok"], message in answer["errors"][0]["message"], message in err) == (2, False, True, True)
    assert run(*words)[1] == ""


def test_what_stands_behind_two_dashes_is_another_commands(run: Run) -> None:
    assert run("connect", "lab", "server", "--", "list", "--json")[:2] == (2, "")


def test_problems_are_an_answer(run: Run) -> None:
    Path("wrong.yaml").write_text("name: lab\n")
    code, out, _ = run("status", "wrong.yaml", "--json")
    assert (code, data_of(out)["problems"][0]["rule"]) == (1, "E0102")


def _ends(how: BaseException, *, after: bool) -> Any:
    def command(_: object) -> NoReturn:
        if after:
            common.emit_json({"ok": True})
        raise how

    return command


@pytest.mark.parametrize("after", [False, True])
def test_there_is_one_value_only(run: Run, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    """A command may fail when it has told its result."""
    monkeypatch.setattr("generator.cli.nodes.run", _ends(AzureRefused("lost"), after=after))
    code, out, err = run("nodes", "lab", "--json")
    answer = json.loads(out)
    assert (code, answer["data"]["ok"], answer["ok"], "lost" in err) == (4, after, False, True)
    assert answer["errors"] == [{"message": "lost", "hint": None}]


def test_an_interrupted_command_answers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generator.cli.nodes.run", _ends(KeyboardInterrupt(), after=False))
    code, out, err = run("nodes", "lab", "--json")
    assert (code, data_of(out)["ok"], "interrupted" in err) == (130, False, True)


def test_what_is_around_the_data(run: Run) -> None:
    """One form for all verbs, with what ended or hindered the command, and with the verb that was called."""
    answer = json.loads(run("list", "recipes", "--json")[1])
    assert isinstance(answer.pop("data"), list)
    assert answer == {"format": 1, "verb": "list", "ok": True, "exit_code": 0, "errors": []}
    answer = json.loads(run("bulid", "--json")[1])
    assert (answer["verb"], answer["exit_code"], answer["errors"][0]["hint"]) == (None, 2, "did you mean 'build'?")
    Path("output").mkdir()
    Path("output/lab").write_text("mine")
    answer = json.loads(run("build", "--json")[1])
    assert (answer["verb"], answer["exit_code"], answer["errors"]) == ("build", 5, answer["data"]["errors"])
    assert answer["errors"][0]["definition"] == "lab.yaml"


def test_what_reads_the_data_alone_still_can(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a release: programs that were written before there was an envelope."""
    data = data_of(run("list", "recipes", "--json")[1])
    monkeypatch.setenv("CYCLEFORGE_JSON_FORMAT", "0")
    assert json.loads(run("list", "recipes", "--json")[1]) == data
    assert set(json.loads(run("status", "lba", "--json")[1])) == {"ok", "errors"}


def test_our_own_bug_is_an_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generator.cli.nodes.run", _ends(ValueError("p4ssword"), after=False))
    code, out, err = run("nodes", "lab", "--json")
    assert (code, "bug" in data_of(out)["errors"][0]["message"], "p4ssword" in out + err) == (70, True, False)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_without_room_is_no_bug(run: Run, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("generator.cli.nodes.run", _ends(OSError(number, "", "/tmp/x"), after=False))
    code, out, err = run("nodes", "lab", "--json")
    assert (code, data_of(out)["ok"], "cannot write /tmp/x: " in err) == (5, False, True)


def _answers(_: object) -> int:
    common.emit_json({"a": "Größe – 日本"})
    return 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_standard_output_does_not_have(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("generator.cli.nodes.run", _answers)
    main(["nodes", "lab", "--json"])
    written = stream.buffer.getvalue().decode(encoding)
    assert data_of(written) == {"a": "Größe – 日本"}
