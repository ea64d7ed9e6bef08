"""`build`, `diff` and `plan` in this process: results, messages and exit codes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from generator import pipeline
from generator.output import folder as output
from tests.answers import data_of
from tests.cli.running import GOOD, Run, problems_of

pytestmark = pytest.mark.usefixtures("own_place")
ROOT = Path(__file__).resolve().parents[2]


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


def test_an_edited_file_stops_the_build_unless_it_is_forced(good: Path, run: Run) -> None:
    """Every verb that compares names it; other folders are built."""
    run("build", str(good))
    edited = Path("output/lab/main.bicep")
    edited.write_text("// mine\n")
    Path("other.yaml").write_text(GOOD.replace("lab", "other"))
    said = "output/lab was edited after it was built: main.bicep"
    code, out, err = run("build", str(good), "other.yaml")
    assert (code, out.startswith("output/other: created")) == (1, True)
    assert said in err
    code, out, _ = run("build", str(good), "--json")
    assert (code, data_of(out)["errors"][0]["message"]) == (1, said)
    code, out, _ = run("build", str(good), "--check")
    assert (code, "  ! main.bicep was edited; only `build --force` replaces it\n" in out) == (1, True)
    assert "`cycleforge build --force` replaces: main.bicep\n" in run("diff", str(good))[1]
    code, _, err = run("what-if", str(good))
    assert (code, "would change (main.bicep); edited after the build: main.bicep" in err) == (1, True)
    assert edited.read_text() == "// mine\n"
    code, out, _ = run("build", str(good), "--force")
    assert (code, "  ! main.bicep was edited, and is replaced\n" in out) == (0, True)
    assert run("build", str(good), "--check")[0] == 0


def test_each_definition_stands_for_itself(good: Path, run: Run, tmp_path: Path) -> None:
    """The good one is built, the exit code says that another was not."""
    (tmp_path / "wrong.yaml").write_text(GOOD.replace("max_nodes", "max_node"))
    code, out, err = run("build", str(good), "wrong.yaml")
    assert code == 1
    assert "output/lab: created" in out
    assert "wrong.yaml: not built" in err
    answer = data_of(run("build", str(good), "wrong.yaml", "--json")[1])
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
    assert "other.yaml also defines 'lab'" in err
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
    from msgspec.structs import replace

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
    answer = data_of(run("diff", str(good), "--json")[1])
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
    comes = data_of(run("diff", str(good), "--json")[1])
    assert comes["worst"] == "in place"
    assert {each["where"] for each in comes["changes"]} >= {"definition.slurm", "derived.slurm"}
    run("build", str(good))
    assert Path("output/lab/cluster/lab.txt").exists()
    good.write_text(infrastructure)
    goes = data_of(run("diff", str(good), "--json")[1])
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
    line = "build --force" if damage else "build"
    assert f"`cycleforge {line}` writes it again" in err
    assert run(*line.split(), str(good))[0] == 0
    assert run("diff", str(good))[1] == "output/lab is up to date\n"


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
    answer = data_of(run("plan", str(good), "--json")[1])
    assert answer["derived"]["name"] == "lab"


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "cluster_defs").glob("*.yaml")))
def test_plans_of_the_shipped_definitions(name: str, run: Run) -> None:
    """Each can be printed, whatever it uses."""
    code, out, err = run("plan", str(ROOT / "cluster_defs" / f"{name}.yaml"))
    assert code == 0, err
    assert "None" not in out
