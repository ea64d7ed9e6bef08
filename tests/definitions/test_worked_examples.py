"""Worked examples of docs/cluster.md: each, added to its definition, builds and leads to what the page shows."""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from generator import pipeline
from generator.files import assets
from generator.files.file import Files
from generator.render.deployment import deployment_files
from tests.bed.plans import KEY
from tests.bed.yaml_data import yaml_data

PAGE = (assets.root() / "docs/cluster.md").read_text().partition("## Worked examples")[2].partition("\n## ")[0]
EXAMPLES = dict(re.findall(r"^### ([a-z0-9-]+)\n\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ROWS = dict(re.findall(r"^### ([a-z0-9-]+)\n.*?^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
SHIPPED = sorted(path.stem for path in (assets.root() / "cluster_defs").glob("*.yaml"))
LINES = (
    "PreemptType=preempt/partition_prio",
    "PreemptMode=REQUEUE",
    "AccountingStorageEnforce=associations,limits,qos",
)


def added(definition: Any, block: Any) -> Any:
    """The definition with a block as the page says: mappings are merged, lists continued."""
    if isinstance(definition, dict) and isinstance(block, dict):
        return definition | {
            key: added(definition[key], value) if key in definition else value for key, value in block.items()
        }
    return definition + block if isinstance(definition, list) else block


@cache
def built(name: str) -> tuple[list[str], Files]:
    """Problems and files of a definition with its example."""
    path = assets.root() / f"cluster_defs/{name}.yaml"
    text = yaml.safe_dump(added(yaml_data(path.read_text()), yaml_data(EXAMPLES[name])))
    variables = {"CYCLECLOUD_SSH_PUBLIC_KEY": KEY, "HUB_VNET_ID": ""}
    checked = pipeline.check(text.encode(), path.name, variables, path.parent)
    problems = [f"{each.rule_id} {each.message}" for each in checked.problems if each.level != "info"]
    assert checked.plan is not None, problems
    return problems, deployment_files(checked.plan, path.parent)


def rows(files: Files) -> list[str]:
    return files[PurePosixPath("cluster/policy.rows")].content.decode().splitlines()


def test_every_shipped_definition_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(ROWS) == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_an_example_builds_without_a_problem_and_has_the_rows_of_the_page(name: str) -> None:
    problems, files = built(name)
    assert problems == []
    shown = ROWS[name].splitlines()
    assert [row for row in rows(files) if row in shown] == shown


@pytest.mark.parametrize("name", SHIPPED)
def test_an_example_is_in_the_cluster_template(name: str) -> None:
    _, files = built(name)
    cluster = next(path for path in files if path.match("cluster/*.params.json"))
    template = files[cluster.with_name(cluster.name.replace(".params.json", ".txt"))].content.decode()
    parameters = files[cluster].content.decode()
    assert [line for line in LINES if line not in parameters] == []
    assert re.search(r"slurm\.dynamic_feature = \"?dyn-flex", template)
    assert "[[[cluster-init slurm_policy:default:" in template
    readme = files[PurePosixPath("README.md")].content.decode()
    assert "policy.sh apply policy.rows" in readme
    assert "scontrol create NodeName=" in readme
