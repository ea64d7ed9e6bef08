"""A definition that gets another `name` leaves a deployment behind, which its verbs still find."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path, PurePosixPath

import pytest

from generator.cli import common, main
from generator.operate import built, reading, way
from generator.pipeline import check_source, render
from tests.cli.running import GOOD, Run

FILE = Path("research.yaml")


@pytest.fixture(autouse=True)
def _renamed(own_place: None, run: Run) -> None:
    """Built as `research`, then renamed."""
    FILE.write_text(GOOD.replace("name: lab", "name: research"))
    assert run("build", "research")[0] == 0
    FILE.write_text(GOOD.replace("name: lab", "name: physics"))


@pytest.mark.parametrize("word", ["research", "physics", "research.yaml"])
@pytest.mark.parametrize("out", [[], ["--out", "built"]])
def test_a_build_says_once_what_it_leaves_behind(word: str, out: list[str], run: Run) -> None:
    if out:
        Path("output").rename("built")
    code, _, err = run("build", word, *out)
    assert code == 0
    folder = Path(out[1] if out else "output")
    assert (folder / "physics").is_dir()
    assert f"{folder}/research was built from a research.yaml too, with the name 'research'. If it was renamed" in err
    assert f"`{' '.join(['cycleforge delete research', *out])}`" in err
    assert "was built from" not in run("build", word, *out)[2]


@pytest.mark.parametrize(
    "moved", ["physics.yaml", "cluster_defs/physics.yaml", "elsewhere/physics.yaml", "elsewhere/research.yaml"]
)
def test_a_file_that_is_renamed_with_its_name_leaves_something_behind_too(moved: str, run: Run) -> None:
    Path(moved).parent.mkdir(exist_ok=True)
    FILE.rename(moved)
    code, _, err = run("build", moved)
    assert code == 0
    assert "output/research was built from " in err
    assert "`cycleforge delete research`" in err


def test_nothing_is_left_behind_that_another_definition_names(run: Run) -> None:
    """Two files of one name, in two folders, are two deployments."""
    Path("cluster_defs").mkdir()
    Path("cluster_defs/other.yaml").write_text(GOOD.replace("name: lab", "name: research"))
    assert "was built from" not in run("build", "physics")[2]


def test_a_build_with_the_old_name_says_nothing(run: Run) -> None:
    FILE.write_text(GOOD.replace("name: lab", "name: research"))
    code, _, err = run("build")
    assert code == 0
    assert "was built from" not in err


def test_another_definition_beside_it_says_nothing(run: Run) -> None:
    Path("other.yaml").write_text(GOOD)
    FILE.write_text(GOOD.replace("name: lab", "name: research"))
    assert "was built from" not in run("build", "other")[2]


RENAMED = GOOD.replace("name: lab", "name: physics")
CHANGES = {
    "nothing more": RENAMED,
    "a group": f"{RENAMED}azure: {{resource_group: physics-group, prefix: phys}}\n",
    "an error": RENAMED.replace("Standard_D4ads_v5", "Standard_Nonsense"),
    "a region": RENAMED.replace("southcentralus", "eastus"),
    "gone": "",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("file", ["research.yaml", "big.yaml"])
def test_a_verb_on_what_is_deployed_means_it_as_it_was_built(change: str, file: str, run: Run) -> None:
    """Whatever the definition says by now, and where the file has another name than either."""
    FILE.unlink()
    Path(file).write_text(GOOD.replace("name: lab", "name: research"))
    assert run("build", file)[0] == 0
    expected = run("status", "research", "--print")[1]
    Path(file).write_text(CHANGES[change])
    if not CHANGES[change]:
        Path(file).unlink()
    code, out, err = run("status", "research", "--print")
    assert (code, out) == (0, expected)
    assert f"this is 'research' as output/research was built; {file} " in err


def test_the_definition_as_built_gives_the_same_plan(run: Run) -> None:
    for name in ("gpt3-h100", "hpc-lab", "llm-a100", "minimal", "mpt-h100"):
        assert run("build", name)[0] == 0
        source, place = reading.as_built(Path("output", name))
        plan = check_source(source, {}, place).plan
        assert plan is not None, name
        path = PurePosixPath("effective.yaml")
        built = Path("output", name, path).read_bytes()
        assert without_variables(render(plan, place)[path].content) == without_variables(built)


def without_variables(effective: bytes) -> str:
    """Those that the file names are not known without it."""
    return re.sub(r"(?m)^  variables:\n(?:  [- ] .*\n)*", "", effective.decode())


def test_a_name_of_the_environment_is_no_mistake(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file serves several deployments then, and a word means the one with that name, whatever the variable says."""
    FILE.write_text(GOOD.replace("name: lab", "name: ${WHO}-lab"))
    for who in ("a", "b"):
        monkeypatch.setenv("WHO", who)
        assert run("build", "research.yaml")[0] == 0
    code, out, _ = run("status", "a-lab", "--print")
    assert code == 0
    assert "--name a-lab-" in out
    assert "b-lab" not in out
    assert "--name b-lab-" in run("status", "b-lab", "--print")[1]


@pytest.mark.parametrize("verb", [["deploy"], ["what-if"], ["preflight"], ["diff", "--deployed"]])
def test_a_verb_that_deploys_asks_which_is_meant(verb: list[str], run: Run) -> None:
    assert run("build", "physics")[0] == 0
    code, _, err = run(verb[0], "research", *verb[1:], "--print")
    assert code == 2
    assert "'research' is a deployment that was built before, and the name of research.yaml" in err
    assert "use 'physics'" in err


def test_the_ssh_of_a_verb_finds_the_deployment_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ProxyCommand, `cycleforge connect research %n --stdio`, may run anywhere."""
    monkeypatch.setenv(way._TOLD, "")
    args = Namespace(name="research", out=Path("output"), subscription=None, json=False, all=False)
    found = built.looked_for(common.target_of(args))
    way.tell_ssh(found, common.target_of(args))
    monkeypatch.chdir("/")
    again = reading.deployed(way.noted_target(reading.Target(found.plan.definition_name))).plan
    assert again.resource_group == found.plan.resource_group == "research-rg"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"derived:\n  definition: \xff\n",
        b"derived:\n  definition: ../x.yaml\n",
        b"derived:\n" * 100000,
        b"definition: [1]\nderived:\n  definition: x.yaml\n",
        b"definition: {name: odd}\nderived:\n  definition: x.yaml\n",
    ],
)
def test_a_folder_that_is_not_what_a_build_writes_is_no_deployment(text: bytes, run: Run) -> None:
    folder = Path("output/odd")
    folder.mkdir()
    (folder / "effective.yaml").write_bytes(text)
    assert reading.built_from(folder) is None
    (folder / "manifest.json").write_text("{}")
    code, _, err = run("status", "odd", "--print")
    assert code in (1, 2)
    assert "bug" not in err
    assert main(["build", "physics"]) == 0
