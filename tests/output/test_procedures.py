"""Every change that recreates something leads to a section of operations.md that exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from generator.cli import main
from generator.definition.kinds import ListOf, kind_of, sections
from generator.definition.model.definition import Definition
from generator.definition.model.fields import Section
from generator.definition.pages.schema import cost_of
from generator.output.diff import ABSENT, Change
from generator.output.procedures import PROCEDURES, Step, procedure_of, steps
from generator.output.refusals import DNS_ZONE, NO_LONGER, REDUNDANCY, SMALLER_VOLUME, WAY_IN
from generator.render import readme
from tests.bed.plans import SMALL, plan_from
from tests.bicep.variants import EVERYTHING

ALL = """
server: {jumpbox: {vm_size: Standard_D2as_v5}}
slurm: {accounting: {type: new}}
"""


def keys(section: type[Section] = Definition, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every key of a definition that holds a value, with the cost of its change."""
    for name, declared in section.declared_keys.items():
        kind = kind_of(declared)
        below = sections(kind.item if isinstance(kind, ListOf) else kind)
        yield (*path, name), declared.change
        for each in below:
            yield from keys(each, (*path, name))


RECREATING = sorted({path for path, cost in keys() if cost == "recreate"})


def titles() -> set[str]:
    """Headings of the operations.md of a deployment that has everything."""
    text = readme.render(plan_from(EVERYTHING, ALL))[PurePosixPath("operations.md")].content.decode()
    return {line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")}


def changed(*path: str, old: Any = "a", new: Any = "b", cost: str = "recreate") -> Change:
    """A change of a key of the definition."""
    return Change(("definition", *path), old, new, cost, ".".join(("definition", *path)))


@pytest.mark.parametrize("path", RECREATING, ids=".".join)
def test_what_is_recreated_has_its_section(path: tuple[str, ...]) -> None:
    assert procedure_of(changed(*path), {}) in titles()


def test_every_title_is_a_section() -> None:
    by_hand = {DNS_ZONE, NO_LONGER, REDUNDANCY, SMALLER_VOLUME, WAY_IN}
    assert {title for _, title in PROCEDURES} | by_hand <= titles()
    assert len(RECREATING) > 40


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (changed("admin", "ssh_public_key", cost="in place"), "Another SSH key"),
        (changed("admin", "username"), "A new server"),
        (changed("server", "vm_size", cost="in place"), "Another size of a VM"),
        (changed("server", "release", cost="in place"), "Upgrade CycleCloud"),
        (changed("server", "jumpbox", new=None), NO_LONGER),
        (changed("server", "jumpbox", old=None, new={}, cost="in place"), None),
        (changed("storage", "mounts", "/data", new=ABSENT, cost="in place"), NO_LONGER),
        (changed("storage", "home", "size_gb"), "A new cluster"),
        (changed("storage", "locker", "account_name"), "A new locker"),
        (changed("azure", "resource_group"), "A second deployment"),
        (changed("tags", "owner", cost="in place"), None),
        (
            Change(("files", "bootstrap/cloud-init.yaml"), "x", "y", "recreate", "bootstrap/cloud-init.yaml"),
            "A new server",
        ),
    ],
)
def test_the_section_of_a_change(change: Change, title: str | None) -> None:
    effective = {"definition": {"storage": {"home": {"type": "nfs"}}}}
    assert procedure_of(change, effective) == title


def test_a_section_is_named_once() -> None:
    found = steps((changed("admin", "username"), changed("server", "image_id")), {})
    assert found == (Step("A new server", ("admin.username", "server.image_id")),)


def test_an_existing_server_keeps_its_image() -> None:
    assert cost_of(("derived", "server", "image", "version")) == "in place"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A definition whose folder is built."""
    (tmp_path / "minimal.yaml").write_text(SMALL)
    assert main(["build", str(tmp_path / "minimal.yaml"), "--out", str(tmp_path)]) == 0
    return tmp_path


def test_diff_says_where_to_read_on(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SMALL.replace("HRlc3Rz user", "HRlc3Ry second")
    assert text != SMALL
    (built / "minimal.yaml").write_text(text + "tags: {owner: lab}\nserver: {os_disk_gb: 256}\n")
    capsys.readouterr()
    assert main(["diff", str(built / "minimal.yaml"), "--out", str(built)]) == 0
    said = capsys.readouterr().out
    assert "see operations.md, 'Another SSH key': admin.ssh_public_key\n" in said
    assert "see operations.md, 'A new server': server.os_disk_gb\n" in said
    assert "tags" not in said.split("highest cost")[1]


def test_diff_says_what_another_first_boot_text_costs(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As after an update of CycleForge whose cloud-init.yaml differs."""
    manifest = built / "minimal/manifest.json"
    file = built / "minimal/bootstrap/cloud-init.yaml"
    content = json.loads(manifest.read_text())
    file.write_text("#cloud-config\n")
    content["files"]["bootstrap/cloud-init.yaml"] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["diff", str(built / "minimal.yaml"), "--out", str(built)]) == 0
    said = capsys.readouterr().out
    assert "highest cost: recreate\n" in said
    assert "see operations.md, 'A new server': bootstrap/cloud-init.yaml\n" in said
