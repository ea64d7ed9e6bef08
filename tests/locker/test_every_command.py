"""The life of a project in a locker, by every way to sign in: each command as people type it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.locker.azurite import KEY, Container
from tests.locker.command import Command, commands, tree
from tests.locker.ground import FILES, assert_whole, contents, project, stored
from tests.locker.identity import Identity

DEFINITION = """\
name: team
location: southcentralus
admin:
  username: ccadmin
  ssh_public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPZ8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8 me
slurm:
  partitions:
    - {name: cpu, vm_size: Standard_D4ds_v5, max_nodes: 2, default: true, extra_projects: [site]}
projects:
  - {name: site, path: site}
"""
BLOBS = {"tools/data.tar": b"a large file"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Command]:
    yield from commands(monkeypatch, capsys, tmp_path)


@pytest.fixture(params=["key", "sas", "login"])
def locker(
    request: pytest.FixtureRequest, run: Command, container: Container, container_tls: Container,
    token_server: Identity,
) -> Container:  # fmt: skip
    """An empty locker, and we are signed in."""
    if request.param == "login":
        certificate = container_tls.server.certificate
        assert certificate
        run.environment(REQUESTS_CA_BUNDLE=str(certificate.certificate), **token_server.environment)
        chosen = container_tls
    else:
        run.sign_in(request.param, KEY if request.param == "key" else container.sas())
        chosen = container
    run.environment(CYCLEFORGE_LOCKER=chosen.url)
    return chosen


def test_the_life_of_a_project(run: Command, locker: Container) -> None:
    first = contents(project(Path("site"), blobs=BLOBS))
    assert run("upload", "site", "--dry-run")[0] == 0
    assert locker.names() == set()
    assert run("locker", "verify", "site")[0] == 1
    assert run("upload", "site")[0] == 0
    assert stored(locker) == first
    assert run("upload", "site")[1] == "site 1.0.0: unchanged, 5 files\n"
    assert run("locker", "verify", "site", "--content")[:2] == (0, "site 1.0.0: as here, 5 files\n")

    # What was built, what is there, and what comes back are the same files with the same modes.
    assert run("project", "build", "site")[0] == 0
    assert run("locker", "pull", "site:1.0.0")[0] == 0
    assert tree(Path("pulled/site/1.0.0")) == tree(Path("build/site"))
    assert tree(Path("pulled/site/blobs")) == tree(Path("site/blobs"))

    # Another content: refused, then replaced, then given a version of its own.
    project(Path("site"), {"files/data": b"changed\n"}, blobs=BLOBS)
    assert run("upload", "site")[0] == 1
    assert stored(locker) == first
    assert run("upload", "site", "--force")[0] == 0
    second = contents(Path("site"))
    assert stored(locker) == second
    project(Path("site"), {**FILES, "files/new": b"new\n"}, blobs=BLOBS, version="1.1.0")
    assert run("upload", "site")[0] == 0
    assert stored(locker) == second | contents(Path("site"))
    assert_whole(locker, second, contents(Path("site")))
    code, out, _ = run("locker", "ls")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["site", "1.0.0"],
        ["site", "1.1.0"],
        ["site", "blobs"],
    ]

    # A definition that uses the new version: the old one may go, the blob stays.
    Path("team.yaml").write_text(DEFINITION)
    assert run("locker", "prune", "team", "--dry-run")[0] == 0
    assert stored(locker) == second | contents(Path("site"))
    assert run("locker", "prune", "team", "--yes")[0] == 0
    assert stored(locker) == contents(Path("site"))


def test_a_copy_as_a_node_makes_it(run: Command, locker: Container) -> None:
    """The manifest says which version and blobs there are; then everything below the spec's name is taken."""
    folder = project(Path("site"), blobs=BLOBS)
    assert run("upload", "site")[0] == 0
    client = locker.client()
    manifest = client.download_blob("projects/site/1.0.0/manifest.json").readall()
    assert b'"version": "1.0.0"' in manifest
    prefix = "projects/site/1.0.0/default/cluster-init/"
    copied = {
        name.removeprefix(prefix): client.download_blob(name).readall()
        for name in client.list_blob_names(name_starts_with=prefix)
    }
    source = folder / "specs/default/cluster-init"
    assert copied == {path: content for path, (content, _) in tree(source).items()}
