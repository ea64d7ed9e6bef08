"""A definition that gets another `name` leaves a deployment behind, which its verbs still find."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from generator.cli import common, main, renamed, whereabouts
from tests.cli.running import GOOD, Run

FILE = Path("research.yaml")


@pytest.fixture(autouse=True)
def _renamed(own_place: None, run: Run) -> None:
    """Built as `research`, then renamed."""
    FILE.write_text(GOOD.replace("name: lab", "name: research"))
    assert run("build", "research")[0] == 0
    FILE.write_text(GOOD.replace("name: lab", "name: physics"))


@pytest.mark.parametrize("word", ["research", "physics", "research.yaml"])
def test_a_build_says_what_it_leaves_behind(word: str, run: Run) -> None:
    code, _, err = run("build", word)
    assert code == 0
    assert Path("output/physics").is_dir()
    assert "output/research was built from research.yaml when its name was 'research'" in err
    assert "`cycleforge delete research`" in err
    assert "write `name: research` again" in err


def test_a_build_with_the_old_name_says_nothing(run: Run) -> None:
    FILE.write_text(GOOD.replace("name: lab", "name: research"))
    code, _, err = run("build")
    assert code == 0
    assert "was built from" not in err


def test_another_definition_beside_it_says_nothing(run: Run) -> None:
    Path("other.yaml").write_text(GOOD)
    assert "was built from" not in run("build", "other")[2]


@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("file", ["research.yaml", "big.yaml"])
def test_a_verb_on_what_is_deployed_means_the_old_name(built: bool, file: str, run: Run) -> None:
    """Also where the file has another name than either."""
    if file != FILE.name:
        FILE.write_text(GOOD.replace("name: lab", "name: research"))
        FILE.rename(file)
        assert run("build", file)[0] == 0
        Path(file).write_text(GOOD.replace("name: lab", "name: physics"))
    if built:
        assert run("build", "physics")[0] == 0
    code, out, err = run("status", "research", "--print")
    assert code == 0
    assert "research" in out
    assert "physics" not in out
    assert "now has the name 'physics'" in err
    code, out, err = run("status", "physics", "--print")
    assert code == 0
    assert "--name physics" in out
    assert "now has the name" not in err


@pytest.mark.parametrize("verb", [["deploy"], ["what-if"], ["preflight"], ["diff", "--deployed"]])
def test_a_verb_that_deploys_asks_which_is_meant(verb: list[str], run: Run) -> None:
    assert run("build", "physics")[0] == 0
    code, _, err = run(verb[0], "research", *verb[1:], "--print")
    assert code == 2
    assert "'research' is a deployment that was built from research.yaml, whose name is now 'physics'" in err
    assert "use 'physics'" in err


def test_the_ssh_of_a_verb_finds_the_deployment_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ProxyCommand, `cycleforge connect research %n --stdio`, may run anywhere."""
    monkeypatch.setenv(whereabouts._TOLD, "")
    args = Namespace(name="research", out=Path("output"), subscription=None)
    plan = common.deployed("research", args).checked.plan
    assert plan is not None
    whereabouts.tell(args, plan.name)
    monkeypatch.chdir("/")
    proxy = Namespace(name=plan.definition_name, out=Path("output"), subscription=None)
    whereabouts.find(proxy)
    found = common.deployed(proxy.name, proxy).checked.plan
    assert found is not None
    assert found.resource_group == plan.resource_group == "research-rg"


def test_a_name_from_the_environment_leaves_nothing_behind(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file serves several deployments then."""
    FILE.write_text(GOOD.replace("name: lab", "name: ${WHO}-lab"))
    for who in ("a", "b"):
        monkeypatch.setenv("WHO", who)
        code, _, err = run("build", "research.yaml")
        assert code == 0
        assert "was built from" not in err
    assert run("status", "b-lab", "--print")[1].count("b-lab") >= 1


def test_a_definition_that_is_gone_is_named(run: Run) -> None:
    FILE.unlink()
    code, _, err = run("status", "research")
    assert code == 2
    assert "output/research was built from research.yaml, which is not here any more" in err
    assert "output/research/README.md" in err


@pytest.mark.parametrize(
    "text", [b"", b"derived:\n  definition: \xff\n", b"derived:\n  definition: ../x.yaml\n", b"derived:\n" * 100000]
)
def test_a_folder_that_is_not_ours_is_left_alone(text: bytes) -> None:
    folder = Path("output/odd")
    folder.mkdir()
    (folder / "effective.yaml").write_bytes(text)
    assert renamed.built_from(folder) is None
    (folder / "manifest.json").write_text("{}")
    assert renamed.built_from(folder) is None
    assert main(["build", "physics"]) == 0
