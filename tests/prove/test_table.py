"""The table of gates, the files of `prove.sh`, and the reading of JSON by awk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from generator.files import assets
from generator.plan.gates import GatePlan, gate_plans
from generator.recipes import recipe, recipe_names
from generator.recipes.gates import gates
from generator.render import jobs, prove
from tests.bed.plans import plan_from, slurm_of
from tests.prove.folder import COLUMNS, rendered_files

SHELLCHECK = Path(sys.executable).parent / "shellcheck"
PLAN = plan_from("""
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4as_v5, max_nodes: 3, default: true}
    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4}
    - {name: amd, vm_size: Standard_ND96isr_MI300X_v5, max_nodes: 1}
jobs: null
""")


def gate_on(partition: str, name: str) -> GatePlan:
    (row,) = [row for row in gate_plans(slurm_of(PLAN), PLAN.jobs) if (row.partition, row.name) == (partition, name)]
    return row


def test_a_gate_runs_the_job_of_its_recipe_on_its_partition() -> None:
    health = gate_on("gpu", "health")
    assert health.job == "node-health"
    assert (health.min_nodes, health.gpus_per_node, health.minutes, health.reason) == (1, 8, 45, None)
    assert gate_plans(slurm_of(PLAN), PLAN.jobs)[0].partition == "gpu", "with GPUs first"


def test_the_smoke_test_runs_on_every_partition_as_that_one() -> None:
    assert (gate_on("htc", "smoke").job, gate_on("htc", "smoke").settings) == ("smoke", ())
    assert gate_on("gpu", "smoke").job == "smoke"
    assert dict(gate_on("gpu", "smoke").settings) == {"PARTITION": "gpu", "VM_SIZE": "Standard_ND96isr_H100_v5"}


def test_a_gate_without_a_job_says_why() -> None:
    rows = gate_plans(slurm_of(PLAN), PLAN.jobs)
    assert [row for row in rows if (row.job is None) != (row.reason is not None)] == []
    assert gate_on("htc", "health").reason == "node-health needs whole GPUs, and Standard_D4as_v5 has none here"
    assert gate_on("amd", "health").reason == "node-health runs on GPUs of NVIDIA, not on AMD"
    assert gate_on("htc", "pairs").reason == "fabric-pairs needs nodes that InfiniBand connects"
    only = plan_from("slurm: {partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4}]}")
    assert [job.recipe for job in only.jobs] == ["smoke"]
    (row,) = [row for row in gate_plans(slurm_of(only), only.jobs) if row.name == "health"]
    assert row.reason
    assert row.reason == (
        "this deployment has no job of the recipe node-health on this partition; "
        "add {recipe: node-health, name: node-health-gpu, partition: gpu} to jobs.add_validation and build again"
    )


def test_the_training_gate_is_the_example_of_own_on_every_partition() -> None:
    """The example trains with or without GPUs, so the gate has a job everywhere; it is the last one of standard."""
    rows = [gate_on(partition, "training") for partition in ("htc", "gpu", "amd")]
    recipes = {job.name: job.recipe for job in PLAN.jobs}
    assert [recipes[row.job or ""] for row in rows] == ["own"] * 3
    assert {row.reason for row in rows} == {None}
    assert all(row.minutes > 0 for row in rows)
    assert [gate.name for gate in gates() if gate.level == "standard"][-1] == "training"


def test_gates_have_names_of_their_own_and_finders_that_exist() -> None:
    names = [gate.name for gate in gates()]
    assert len(set(names)) == len(names)
    assert {gate.finder for gate in gates() if gate.finder} == {gate.name for gate in gates() if gate.level == "finder"}
    levels = [gate.level for gate in gates()]
    assert levels == sorted(levels, key=["quick", "standard", "burn", "finder"].index)
    known = {name for gate in gates() for name, _ in gate.settings}
    of_recipes = {name for each in recipe_names() if (found := recipe(each)) for name, _ in found.default_settings}
    assert known <= of_recipes


def test_the_table_has_a_line_per_gate_and_partition() -> None:
    rendered = prove.render(PLAN)
    lines = rendered[PurePosixPath("jobs/prove.tsv")].content.decode().splitlines()
    assert lines[0] == "#" + "\t".join(COLUMNS)
    assert {len(line.split("\t")) for line in lines} == {len(COLUMNS)}
    assert len(lines) == 1 + 3 * len(gates())
    assert all(field for line in lines for field in line.split("\t")), "a shell skips empty fields"
    assert rendered[PurePosixPath("jobs/prove.sh")].executable
    assert not set(rendered) & set(jobs.render(PLAN))
    assert prove.render(plan_from("{slurm: null, jobs: null}")) == {}


def test_shellcheck_accepts_the_program() -> None:
    assert len(rendered_files()) > 1
    done = subprocess.run(
        [SHELLCHECK, "-x", rendered_files()[0]], capture_output=True, text=True, check=False, cwd=assets.root()
    )
    assert done.stdout == ""


FLATTEN = assets.folder("recipes") / "prove" / "prove.d" / "json.awk"
BROKEN = (
    "",
    "{",
    '{"a": 1',
    '{"a" 1}',
    '{"a": 1}}',
    '{"a": 1} {',
    "[1,]",
    '{"a":1,}',
    '{"a": tru}',
    '"x',
    ",",
    '{"a":[1}',
    '{"a": 01x}',
)
"""What is not one whole JSON value."""


def values_of(value: object, path: str = "") -> dict[str, str]:
    """What the flattened lines must say, by Python's reader."""
    if isinstance(value, dict | list):
        rows = value.items() if isinstance(value, dict) else enumerate(value)
        return {
            name: text
            for key, item in rows
            for name, text in values_of(item, f"{path}.{key}" if path else f"{key}").items()
        }
    return {path: json.dumps(value) if not isinstance(value, str) else value}


@pytest.mark.parametrize("awk", ["mawk", "gawk"])
def test_json_is_read_whole_or_not_at_all(awk: str, tmp_path: Path) -> None:
    """Ubuntu has mawk, AlmaLinux gawk."""
    if shutil.which(awk) is None:
        pytest.skip(f"{awk} is not installed")
    document = {
        "a": [1, -2.5, True, None, [], {}, [[3]]], "text": 'quoted " and \\ back/slash',
        "deep": {"er": {"list": ["x", "y" * 5000]}}, "long": list(range(3000)), "series": [{"points": [[1, 2]]}],
    }  # fmt: skip
    path = tmp_path / "whole.json"
    for indent in (None, 1):
        path.write_text(json.dumps(document, indent=indent))
        done = subprocess.run(
            [awk, "-v", "SKIP=series", "-f", FLATTEN, path],
            env={"LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        )
        rows = dict(line.split("\t", 2)[::2] for line in done.stdout.splitlines())
        assert rows == {name: text for name, text in values_of(document).items() if not name.startswith("series")}
    loop = 'for text; do printf %s "$text" | "$AWK" -f "$FLATTEN" >/dev/null; echo "$?"; done'
    environment = {"AWK": awk, "FLATTEN": str(FLATTEN), "PATH": "/usr/bin:/bin"}
    command = ["bash", "-c", loop, "bash", *BROKEN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * len(BROKEN)
