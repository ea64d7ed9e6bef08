"""What travels with the deployment has to fit."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from generator.definition.read import read_model
from generator.files.file import File, Files
from generator.rules import check_files
from generator.rules.base import Rendered, Site
from generator.rules.budgets import payload_budget_bytes

DATA = {
    "name": "case",
    "location": "southcentralus",
    "slurm": {"partitions": [{"name": "htc", "vm_size": "Standard_D4ads_v5", "max_nodes": 2}]},
}
PROJECTS = [
    {"name": "small", "path": "small"},
    {"name": "staged", "version": "1.0.0"},
    {"name": "large", "path": "large"},
]


def site(data: dict[str, Any]) -> Site:
    reading = read_model(data)
    assert reading.definition is not None
    assert reading.problems == ()
    return Site(reading.definition, {}, None, {})


SITE = site({**DATA, "projects": PROJECTS})
SHIPPED_ONLY = site(DATA)


def payload(size_bytes: int) -> Files:
    files = {PurePosixPath("bootstrap/payload/payload-00.bin"): File(b"x" * size_bytes)}
    files[PurePosixPath("projects/small/project.ini")] = File(b"x")
    files[PurePosixPath("projects/large/blobs/tool.tar")] = File(b"x" * 1000)
    files[PurePosixPath("projects/misc_ubuntu/blobs/more.tar")] = File(b"x" * 5000)
    return files


def test_a_payload_of_exactly_the_budget_fits() -> None:
    assert payload_budget_bytes() >= 1024 * 1024
    assert list(check_files(Rendered(SITE, payload(payload_budget_bytes())))) == []


def test_a_larger_one_is_reported_at_the_largest_local_project() -> None:
    (problem,) = check_files(Rendered(SITE, payload(payload_budget_bytes() + 1)))

    assert (problem.rule_id, problem.level, problem.path) == ("E1801", "error", ("projects", 2, "path"))
    assert problem.message == (
        "the content for the server has 1281 KiB, the deployment carries 1280 KiB; the largest local project is 'large'"
    )


def test_without_local_projects_it_is_reported_at_the_name() -> None:
    (problem,) = check_files(Rendered(SHIPPED_ONLY, payload(payload_budget_bytes() + 1)))

    assert problem.path == ("name",)
    assert problem.message.endswith("carries 1280 KiB; the largest fetched blob is 'more.tar' with 5 KiB")


def test_user_data_has_a_limit_of_its_own() -> None:
    files = {PurePosixPath("bootstrap/cloud-init.yaml"): File(b"x" * (64 * 1024 + 1))}

    (problem,) = check_files(Rendered(SITE, files))

    assert problem.message == "the user data of the server has 65 KiB, Azure accepts 64 KiB"
