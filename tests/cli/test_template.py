"""`cycleforge template check`: results, exit codes, and input of every kind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from generator.cli import main
from tests.answers import data_of
from tests.cluster_template.own import FILER, PBS

BAD = FILER.replace("StorageAccountType", "StorageAcountType")


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.txt").write_text(PBS)
    Path("bad.txt").write_text(BAD)
    Path("p.json").write_text('{\n  "MaxCores": "480",\n  "SubnetId": "group/network/compute"\n}\n')


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = main(["template", "check", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_good_template(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "good.txt") == (0, "good.txt: no problems\n", "")


def test_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "bad.txt")

    assert (code, out) == (1, "")
    assert err.startswith("bad.txt:12:5: error E2106: volume 'data' has no attribute 'StorageAcountType'\n")
    assert err.endswith("\n1 error in bad.txt\n")


def test_the_parameter_file_is_a_file_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "good.txt", "--parameters", "p.json")

    assert (code, out) == (1, "good.txt: no problems\n")
    assert err.startswith("p.json:2:15: error E2206: parameter 'MaxCores' is a whole number, not '480'\n")


def test_warnings_fail_only_with_strict(capsys: pytest.CaptureFixture[str]) -> None:
    Path("w.txt").write_text(FILER.replace("Azure.Lun = 3", "Colour = 3"))

    assert run(capsys, "w.txt")[0] == 0
    assert run(capsys, "w.txt", "--strict")[0] == 1


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "bad.txt", "--parameters", "p.json", "--json")
    result = data_of(out)

    assert (code, err, result["ok"], result["files"]) == (1, "", False, ["bad.txt", "p.json"])
    assert [(row["file"], row["line"], row["rule"]) for row in result["problems"]] == [
        ("bad.txt", 12, "E2106"),
        ("p.json", 2, "E2204"),
        ("p.json", 3, "E2204"),
    ]
    for row in result["problems"]:
        assert main(["explain", row["rule"]]) == 0


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))

    assert run(capsys, "-")[2].startswith("<stdin>:12:5: error E2106: ")
    assert run(capsys, "-", "--parameters", "-")[0] == 2


def test_many_mistakes_are_counted_and_all_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    Path("many.txt").write_text(FILER + "".join(f"    Priority{number} = x\n" for number in range(70)))

    assert "\nand 20 more: 20 warnings; --all shows them\n70 warnings in many.txt\n" in run(capsys, "many.txt")[2]
    assert run(capsys, "many.txt", "--all")[2].count(": warning W2107: ") == 70


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.txt"], "cannot read missing.txt: no such file"),
        (["."], "cannot read .: is a directory"),
        (["a\0b"], "cannot read a"),
        (["good.txt", "--parameters", "missing.json"], "cannot read missing.json"),
        ([], "the following arguments are required: FILE"),
        (["good.txt", "--parametres", "p.json"], "did you mean '--parameters'?"),
        (["empty.txt"], "E2009"),
        (["binary.txt"], "E2007"),
        (["good.txt", "--parameters", "binary.txt"], "E2007"),
        (["good.txt", "--parameters", "good.txt"], "E2011"),
    ],
)
def test_unreadable_input(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    Path("empty.txt").touch()
    Path("binary.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00")

    code, _, err = run(capsys, *arguments)

    assert code == 2
    assert words in err
    assert "bug" not in err
