"""`effective.yaml` says of every job what its files say: shipped definitions, variants, given settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from generator import pipeline
from generator.files.file import Files
from generator.output.diff import Change, compare
from tests.bed.yaml_data import yaml_data
from tests.definitions import test_variants
from tests.definitions.build import NAMES, rendered

folder = test_variants.folder
_A100_80, _A100_40 = "Standard_ND96amsr_A100_v4", "Standard_ND96asr_v4"
GIVEN = {
    "as-it-is": "",
    "message-size-of-the-recipe": "jobs: {validation: [{recipe: nccl-allreduce, settings: {MESSAGE_SIZE: 16G}}]}",
    "defaults-repeated": "jobs: {training: [{recipe: opt-175b, settings: {ITERATIONS: 100, RESUME: false}}]}",
    "other-folder": "jobs: {training: [{recipe: gpt3-175b, nodes: 16, settings: {DATA_DIR: /archive/}}]}",
    "stage-path": "jobs: {training: [{recipe: gpt3-175b, nodes: 16, settings: {STAGE_PATH: /mnt/scratch/x}}]}",
    "fewer-gpus": "jobs: {training: [{recipe: opt-175b, nodes: 4, settings: {GPUS_PER_NODE: 4}}]}",
    "own-model": """
jobs:
  training: [{recipe: mpt, nodes: 4, settings: {MODEL: mpt-7b, GLOBAL_BATCH: 512, MICRO_BATCH: 8, SEQUENCE: 2048}}]
""",
    "odd-text": """
jobs: {validation: [{recipe: smoke, partition: htc, settings: {X: "a 'b' \\"c\\" $HOME `id` \\\\ ; *"}}]}
""",
}


def definition(jobs: str, size: str = _A100_80) -> bytes:
    """A definition with Lustre at /data and an NFS server at /archive."""
    return f"""
name: lab
location: southcentralus
storage:
  mounts:
    - {{path: /data, type: amlfs, tier: 250, size_tib: 128}}
    - {{path: /archive, type: existing, address: 10.0.0.4, export_path: /export}}
slurm:
  partitions:
    - {{name: hpc, vm_size: {size}, max_nodes: 16}}
    - {{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true}}
{jobs}
""".encode()


def built(content: bytes, folder: Path) -> Files:
    plan = pipeline.check(content, "lab.yaml", {}, folder).plan
    assert plan is not None, pipeline.check(content, "lab.yaml", {}, folder).problems
    return pipeline.render(plan, folder)


def derived(files: Files) -> dict[str, Any]:
    content: dict[str, Any] = yaml_data(files[PurePosixPath("effective.yaml")].content)["derived"]
    return content


def pairs(text: str) -> dict[str, str]:
    """Names and values of a file that a shell reads."""
    return dict(word.split("=", 1) for word in shlex.split(text, comments=True))


def baselines(table: str) -> list[dict[str, Any]]:
    """The figures that a job judges by, as the plan has them."""

    def number(value: str) -> float | None:
        return None if value == "-" else float(value)

    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    return [
        {
            "kind": kind,
            "collectives": collectives.split(","),
            "nodes": int(nodes.removesuffix("+")),
            "or_more": nodes.endswith("+"),
            "message_size": message.removesuffix("+"),
            "or_larger": message.endswith("+"),
            "metric": metric,
            "algorithms": [] if algorithms == "any" else algorithms.split(","),
            "fabric": None if fabric == "any" else fabric,
            "expected": number(expected),
            "warn": number(warn),
            "fail": number(fail),
            "formula": None if formula == "-" else formula,
            "source": source,
        }
        for kind, collectives, nodes, message, metric, algorithms, fabric, expected, warn, fail, formula, source in rows
    ]


def header(text: str) -> dict[str, Any]:
    """Options of a batch file as they are there; one without a value is true."""
    found = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", text, re.MULTILINE)
    return {name: value or True for name, value in found}


def as_text(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value if value is True else str(value) for name, value in options.items()}


WAIT = 'sbatch --wait job.sbatch; echo "exit status $?"'


def submission(job: dict[str, Any]) -> str:
    """How the README has a job submitted: validation jobs of one step are rows of a table, with one line for all."""
    lines = "\n".join(job["commands"])
    if job["kind"] != "validation" or len(job["steps"]) > 1:
        return lines
    row = f"| {job['name']} | {job['title']} | {job['partition']} | {job['nodes']} × {job['vm_size']} |"
    assert lines == f"cd ~/jobs/{job['name']} && {WAIT}"
    return row


def check_jobs(files: Files) -> int:
    """Compares every job folder with the plan; the number of settings that were compared."""
    text = {str(path): file.content.decode() for path, file in files.items() if path.parts[0] in ("jobs", "README.md")}
    jobs = {job["name"]: job for job in derived(files)["jobs"]}
    beside = {"lib", "prove.sh", "prove.d", "prove.tsv"} if jobs else set()
    assert {path.split("/")[1] for path in text if path.startswith("jobs/")} == set(jobs) | beside
    gates = [line.split("\t") for line in text.get("jobs/prove.tsv", "").splitlines()[1:]]
    assert {row[5] for row in gates} <= {*jobs, "-"}
    for name, job in jobs.items():
        settings = pairs(text[f"jobs/{name}/settings.env"])
        assert settings == job["settings"]
        assert pairs(text[f"jobs/{name}/nccl.env"]) == job["nccl"]
        assert pairs(text.get(f"jobs/{name}/sharp.env", "")) == job["sharp"]
        table = text.get(f"jobs/{name}/baselines.tsv")
        assert (baselines(table) if table else None) == job["baselines"]
        batch = {path for path in text if path.startswith(f"jobs/{name}/") and path.endswith(".sbatch")}
        assert batch == {f"jobs/{name}/{step['file']}" for step in job["steps"]}
        for step in job["steps"]:
            content = text[f"jobs/{name}/{step['file']}"]
            assert header(content) == as_text(step["options"])
            assert step["title"] in content
            assert f"exec ./{step['script']}\n" in content
        own = job["steps"][-1]["options"]
        assert (settings["NODES"], settings["PARTITION"]) == (str(own["nodes"]), own["partition"])
        assert (job["nodes"], job["partition"]) == (own["nodes"], own["partition"])
        assert settings.get("MODEL") == job["model"]
        assert submission(job) in text["README.md"]
        assert job["kind"] != "validation" or f'cd ~/jobs/"${{job}}" && {WAIT}\n' in text["README.md"]
        assert job["title"] in text["README.md"]
    return sum(len(job["settings"]) for job in jobs.values())


@pytest.mark.parametrize("name", NAMES)
def test_shipped_definitions(name: str) -> None:
    assert check_jobs(rendered(name)) > 10


@pytest.mark.parametrize("name", test_variants.VARIANTS)
def test_variants_too(name: str, folder: Path) -> None:
    assert check_jobs(test_variants.built(name, folder).files) > 10


@pytest.mark.parametrize("size", [_A100_80, _A100_40])
@pytest.mark.parametrize("name", GIVEN)
def test_given_settings(name: str, size: str, tmp_path: Path) -> None:
    content = definition(GIVEN[name], size)
    files = built(content, tmp_path)
    assert check_jobs(files) > 10
    given = yaml_data(content).get("jobs") or {}
    for kind, settings in ((kind, job["settings"]) for kind, jobs in given.items() for job in jobs):
        plans = [job["settings"] for job in derived(files)["jobs"] if job["kind"] == kind]
        expected = {key: "0" if value is False else str(value) for key, value in settings.items()}
        assert [{key: plan[key] for key in expected} for plan in plans] == [expected]


# ---------------------------------------------------------------- what diff says


def changes(old: str, new: str, folder: Path, size: str = _A100_80) -> dict[str, Change]:
    before, after = (
        yaml_data(built(definition(jobs, size), folder)[PurePosixPath("effective.yaml")].content) for jobs in (old, new)
    )
    return {change.where: change for change in compare(before, after, lambda _: "in place")}


def test_diff_names_a_setting_that_was_given(tmp_path: Path) -> None:
    nccl = "jobs: {validation: [{recipe: nccl-allreduce%s}]}"
    found = changes(nccl % "", nccl % ", settings: {MESSAGE_SIZE: 16G}", tmp_path)
    change = found["derived.jobs[nccl-allreduce].settings.MESSAGE_SIZE"]
    assert (change.old, change.new) == ("8G", "16G")
    assert not [where for where in found if "baselines" in where], "they hold for the size, whatever is asked"


def test_diff_names_every_setting_that_follows(tmp_path: Path) -> None:
    """Another number of nodes: the model, its layout, batches, header and checkpoints."""
    old, new = (f"jobs: {{validation: [], training: [{{recipe: opt-175b, nodes: {nodes}}}]}}" for nodes in (2, 16))
    settings = {
        "NODES",
        "MODEL",
        "GLOBAL_BATCH",
        "NUM_LAYERS",
        "HIDDEN_SIZE",
        "NUM_ATTENTION_HEADS",
        "PIPELINE_PARALLEL",
    }
    found = changes(old, new, tmp_path)
    expected = {f"derived.jobs[opt-175b].settings.{name}" for name in settings}
    assert expected <= set(found)
    assert found["derived.jobs[opt-175b].steps[job.sbatch].options.nodes"].new == 16
    assert "derived.jobs[opt-175b].checkpoint.checkpoint_bytes" in found


def test_diff_names_nothing_where_a_default_is_given_that_decides_anyway(tmp_path: Path) -> None:
    job = "jobs: {validation: [], training: [{recipe: opt-175b, nodes: 16%s}]}"
    found = changes(job % "", job % ", settings: {ITERATIONS: 100}", tmp_path)
    assert [where for where in found if where.startswith("derived.")] == []
