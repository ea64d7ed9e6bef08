"""I1591 in the output of commands: once per build, whatever the number of definitions; JSON keeps it per definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.blobs import pinned
from generator.cli import main
from tests.answers import data_of

DEFINITION = """\
name: {name}
location: southcentralus
admin: {{username: ccadmin}}
slurm:
  partitions:
    - {{name: hpc, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2, default: true}}
"""
NHC = next(each for each in pinned().values() if each.project == "slurm_nhc")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two definitions, on a machine that has fetched nothing."""
    monkeypatch.setenv("CYCLEFORGE_BLOBS", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(DEFINITION.format(name=name))
    return ["one.yaml", "two.yaml"]


def test_one_message_names_files_project_consequence_and_way_out(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", *names]) == 0
    err = capsys.readouterr().err
    assert err.splitlines() == [
        "info I1591: third-party files are missing on this machine, so nodes start without them (one and two)",
        f"  {NHC.file} (slurm_nhc): {NHC.without}",
        "  hint: `cycleforge blobs fetch`, then build again",
        "  more: cycleforge explain I1591",
    ]


def test_a_definition_that_silences_it_is_not_named(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    silence = "silence:\n  - {rule: I1591, reason: NHC is in the image}\n"
    Path(names[0]).write_text(DEFINITION.format(name="one") + silence)
    assert main(["build", *names]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first.endswith("(two)")
    Path(names[1]).write_text(DEFINITION.format(name="two") + silence)
    assert main(["build", *names]) == 0
    assert capsys.readouterr().err == ""


def test_other_problems_stand_with_their_file_and_are_counted_alone(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(names[0]).write_text(DEFINITION.format(name="one").replace("max_nodes: 2", "max_nodes: 2, zone: '9'"))
    assert main(["build", *names]) == 1
    err = capsys.readouterr().err
    assert err.count("I1591") == 2, "the message and its `more:`"
    assert "1 error in one.yaml" in err
    assert "in two.yaml" not in err


@pytest.mark.parametrize("verb", ["validate", "plan", "diff", "cost"])
def test_no_verb_but_build_says_it(names: list[str], verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever only looks cannot do anything with it."""
    main([verb, names[0]])
    assert "I1591" not in capsys.readouterr().err


def test_json_has_it_for_every_definition(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json", *names]) == 0
    out, err = capsys.readouterr()
    rows = data_of(out)["problems"]
    assert [(row["file"], row["rule"], row["level"]) for row in rows] == [(name, "I1591", "info") for name in names]
    assert all(NHC.file in row["message"] and NHC.without in row["message"] for row in rows)
    assert err == ""
