"""The entries of the catalogue: complete, safe as names, and the same as what projects and nodes are told."""

from __future__ import annotations

import re

import pytest

from generator import catalog
from generator.blobs import Blob, pinned
from generator.blobs.pins import table
from generator.files import assets
from generator.projects.ini import read_project
from generator.references import documents
from generator.rules.budgets import job_budget_bytes

BLOBS = tuple(pinned().values())
PROJECTS = sorted(path.parent.name for path in assets.folder("projects").glob("*/project.ini"))
ASCII = re.compile(r"[ -~]+")


def test_no_entry_is_lost() -> None:
    """Two entries of one name would be one."""
    assert len(BLOBS) == len(catalog.blobs().blobs) > 0
    assert list(pinned()) == sorted(pinned())


@pytest.mark.parametrize("blob", BLOBS, ids=lambda blob: blob.file)
def test_every_field(blob: Blob) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}", blob.file), "a name that URLs, Bash and project.ini take"
    assert "," not in blob.file, "commas separate the files of project.ini"
    assert blob.project in PROJECTS if blob.is_for_nodes else blob.project == "tests"
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.+~-]*", blob.version)
    assert blob.version.partition("-")[0] in blob.file, "blobs of a locker have no version but their name"
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", blob.repository)
    assert re.fullmatch(r"[0-9a-f]{40}", blob.commit)
    assert re.fullmatch(r"[0-9a-f]{64}", blob.sha256)
    assert 0 < blob.size_bytes < job_budget_bytes(), "it could not travel"
    assert blob.url.startswith("https://")
    assert blob.needed in ("always", "without_built_in_containers", "by_tests")
    assert re.fullmatch(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*", blob.license), "an SPDX expression"
    assert ASCII.fullmatch(blob.used_for)
    assert blob.used_for.endswith(".")
    assert ASCII.fullmatch(blob.without)
    assert not blob.without.endswith("."), "a clause of a message"
    assert blob.commit in blob.url, "an archive of a branch or tag changes"
    assert blob.size_bytes % 512 == 0
    assert blob.members
    assert all(glob and not glob.startswith("/") and ".." not in glob.split("/") for glob in blob.members)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_lists_its_blobs_and_no_other(name: str) -> None:
    listed = read_project(assets.folder("projects") / name).blobs
    assert sorted(listed) == [blob.file for blob in BLOBS if blob.project == name]


@pytest.mark.parametrize("name", sorted({blob.project for blob in BLOBS if blob.is_for_nodes}))
def test_nodes_accept_what_is_pinned(name: str) -> None:
    path = f"projects/{name}/specs/default/cluster-init/files/blobs.tsv"
    assert documents()[path]() == table(name) == (assets.root() / path).read_text(encoding="ascii")
    rows = [line.split("\t") for line in table(name).splitlines() if not line.startswith("#")]
    assert rows == [[blob.file, blob.version, blob.sha256] for blob in BLOBS if blob.project == name]


def test_no_blob_lies_in_the_source_tree() -> None:
    assert list(assets.folder("projects").glob("*/blobs/*")) == []
