"""The stages of the data in the ledger are those that steps leave on disk."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from generator import catalog
from generator.recipes import recipe, recipe_names
from tests.jobs.running import JobFolder, imported, job, job_folder, plan_with
from tests.jobs.test_scripts import GPT, PASS

DOCUMENT = '{{"text": "document {number} {filler}"}}\n'
FILES = 4


def corpus(place: Path) -> int:
    """Compressed files of C4's names; returns the bytes of their documents."""
    place.mkdir()
    size = 0
    for number in range(FILES):
        text = "".join(DOCUMENT.format(number=number, filler="word " * 200) for _ in range(20))
        size += len(text)
        with gzip.open(place / f"c4-train.{number:05d}-of-01024.json.gz", "wt") as file:
            file.write(text)
    return size


def sizes(folder: Path) -> dict[str, int]:
    if not folder.exists():
        return {}
    return {
        each.name: sum(file.stat().st_size for file in each.rglob("*") if file.is_file()) for each in folder.iterdir()
    }


def megatron(path: Path) -> tuple[JobFolder, Path, int]:
    documents = corpus(path / "copy")
    folder = imported(job_folder(path, plan_with(job("gpt3-175b", 16))))
    given = {"DATA": "c4", "DATASET_FILES": str(FILES), "DATASET_URL": str(path / "copy")}
    folder.environment |= GPT | {f"SET_{name}": value for name, value in given.items()}
    return folder, path / "stage/data/c4", documents


def test_each_step_leaves_one_stage_and_nothing_else_stays(tmp_path: Path) -> None:
    wanted = recipe("gpt3-175b")
    assert wanted is not None
    folder, data, documents = megatron(tmp_path)
    before: dict[str, int] = {}
    left: dict[str, int] = {}
    for step in wanted.steps[1:4]:
        ran = folder.run(step.script)
        assert ran.returncode == PASS, ran.stdout + ran.stderr
        after = sizes(data)
        (new,) = after.keys() - before.keys()
        assert {name: after[name] for name in before} == before, "a step keeps what was there, and adds to none of it"
        assert step.stage is not None
        left[step.stage] = after[new]
        before = after
    assert list(left) == [step.stage for step in wanted.steps if step.stage]
    assert left["compressed"] == sum(file.stat().st_size for file in (tmp_path / "copy").iterdir())
    # The documents are on disk once. Beside them are small files: how many lines, and of what they are made.
    assert documents <= left["concatenated"] < documents * 1.1


def test_the_catalogue_has_the_size_of_each_stage_and_of_no_other() -> None:
    steps: dict[str, set[str]] = {"megatron": set(), "llm-foundry": set()}
    for found in map(recipe, recipe_names("training")):
        assert found is not None
        family = "megatron" if "MEGATRON_COMMIT" in dict(found.default_settings) else "llm-foundry"
        stages = [step.stage for step in found.steps if step.stage]
        assert not steps[family] & set(stages), "two recipes write it"
        steps[family] |= set(stages)
    for name, row in catalog.training().data_sets.items():
        assert set(row.stages) == steps[name.split()[0]], name


@pytest.mark.parametrize("data", ["c4", "c4-small"])
def test_the_conversion_of_llm_foundry_leaves_its_splits_alone(data: str, tmp_path: Path) -> None:
    wanted = recipe("mpt")
    assert wanted is not None
    assert [step.stage for step in wanted.steps] == [None, "tokens", None]
    folder = imported(job_folder(tmp_path, plan_with(job("mpt"))))
    ran = folder.run("20-data.sh", SET_DATA=data)
    assert ran.returncode == PASS, ran.stdout + ran.stderr
    assert len(sizes(tmp_path / "stage/data")) == 1, "what it was converted from is streamed"
