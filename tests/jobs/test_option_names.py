"""Options given to a framework exist in the version that is pinned, whatever the framework makes them of."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from generator.recipes import recipe
from tests.jobs import option_names
from tests.jobs.option_names import PROGRAMS, Program, committed, names_of
from tests.jobs.running import FAKES
from tests.jobs.test_scripts import ERROR, FAIL, MPT_LOG, PASS, training
from tests.jobs.training_logs import megatron_log

SOURCE = {
    "arguments.py": """
def _add_old(parser):
    group = parser.add_argument_group(title="old")
    group.add_argument("--old-one", "-o", type=int, help="--not-an-option")
    group.add_argument('--no-old', action="store_false")

def _add_new(parser):
    left_out = ["hidden"]
    ArgumentGroupFactory(NewConfig, exclude=left_out).build_group(parser, "new")
    ArgumentGroupFactory(OtherConfig, exclude=["gone"])
""",
    "config.py": """
class BaseConfig:
    from_base: int = 1

class NewConfig(BaseConfig):
    micro_batch_size: int | None = None
    hidden: int = 0
    async_save: bool = True
    off: bool = field(default=False)
    renamed: str = field(default="", metadata={"argparse_meta": {"arg_names": ["--its-own", "--other"]}})

class OtherConfig:
    gone: int = 0

class UnusedConfig:
    never: int = 0
""",
}


def test_options_are_read_from_calls_and_from_dataclasses() -> None:
    program = Program("x", "a/b", "v1", ("arguments.py",), dataclasses=("config.py",))
    assert names_of(program, SOURCE.__getitem__) == {
        "--old-one", "-o", "--no-old", "--from-base", "--micro-batch-size", "--no-async-save", "--disable-async-save",
        "--off", "--its-own", "--other",
    }  # fmt: skip
    some = Program("x", "a/b", "v1", ("config.py", "arguments.py"), functions=("_add_old",))
    assert names_of(some, SOURCE.__getitem__) == {"--old-one", "-o", "--no-old"}
    config = Program("x", "a/b", "v1", ("config.py",), config="NewConfig")
    assert {"from_base", "hidden"} <= names_of(config, SOURCE.__getitem__)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_list_is_that_of_the_pin(program: Program) -> None:
    head = (option_names.FOLDER / f"{program.name}.txt").read_text(encoding="utf-8").splitlines()[0]
    assert head.startswith(f"# {program.repository} {program.version}:")
    if program.name == "megatron":
        for name in ("gpt3-175b", "opt-175b"):
            found = recipe(name)
            assert found is not None
            assert dict(found.default_settings)["MEGATRON_COMMIT"] == program.version


def test_options_of_the_lists_are_those_of_before_and_of_dataclasses() -> None:
    assert {"--train-iters", "--async-save", "--log-straggler", "--mock-data"} <= committed("megatron")
    # Fields of dataclasses in 0.19, of which the file of arguments has no name.
    assert {"--train-iters", "--async-save", "--log-straggler", "--exit-signal-handler"} <= committed("megatron-0.19")
    assert "--num-workers" not in committed("convert_dataset_json")


def test_without_a_source_a_list_stays_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(option_names, "FOLDER", tmp_path / "lists")
    monkeypatch.setenv("FRAMEWORK_SOURCES", str(tmp_path))
    assert option_names.main() == 0
    assert not (tmp_path / "lists").exists()
    assert capsys.readouterr().out.count("the list stays as it is") == len(PROGRAMS)


def test_an_option_that_the_framework_does_not_know_ends_the_job(tmp_path: Path) -> None:
    """Every run of the other tests goes through the same lists."""
    for recipe_name, setting, log, unknown in (
        ("opt-175b", "EXTRA_ARGUMENTS", megatron_log(100), "--ckpt-assume-structure"),
        ("mpt", "EXTRA_OVERRIDES", MPT_LOG, "fdsp_config.state_dict_type=full"),
    ):
        _, ran = training(tmp_path / recipe_name, recipe_name, log, 2, **{f"SET_{setting}": unknown})
        assert ran.returncode in (FAIL, ERROR)
        assert unknown.split(".")[0] in ran.stdout + ran.stderr


def test_an_option_that_torchrun_does_not_know_ends_it(tmp_path: Path) -> None:
    command = ["bash", "-c", f"FAKE_LOG={tmp_path}/log exec {FAKES}/torchrun --nnodes 2 --node_ranks 0 pretrain_gpt.py"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "unrecognized arguments: --node_ranks" in ran.stderr


def test_options_of_the_users_own_script_are_known_to_torchrun() -> None:
    """Its launch has no stand-in: the tests of tests/mpi run PyTorch where it is installed."""
    text = (assets.folder("recipes") / "own/run.sh").read_text(encoding="utf-8")
    launch = text.split("./launcher.py", 1)[1].split('"${script}" "$@"', 1)[0]
    given = set(re.findall(r"--[a-z_-]+", launch))
    assert len(given) == 5
    assert given <= committed("torchrun")


def test_every_option_is_known_to_the_next_version_too(tmp_path: Path) -> None:
    folder, ran = training(tmp_path, "opt-175b", megatron_log(100), SET_SAVE_INTERVAL="50", SET_USE_SHARP="0")
    assert ran.returncode == PASS, ran.stdout + ran.stderr
    given = Path(folder.environment["FAKE_LOG"] + ".torchrun").read_text(encoding="utf-8").splitlines()
    options = {word for word in given[given.index("pretrain_gpt.py") :] if word.startswith("--")}
    assert len(options) > 30
    assert options - committed("megatron-0.19") == set()
