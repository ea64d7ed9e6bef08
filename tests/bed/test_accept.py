"""What `make accept` says; that pages and snapshots agree is what other tests compare."""

from __future__ import annotations

from pathlib import Path

from tests import accept


def test_what_came_and_went_is_counted() -> None:
    before = {"same": "a\n", "longer": "a\nb\n", "gone": "a\n"}
    after = {"same": "a\n", "longer": "a\n--- c\n+++ d\n", "new": "a\nb\n"}
    assert accept.changes(before, after) == [
        "gone: +0 -1 lines (gone)",
        "longer: +2 -1 lines",
        "new: +2 -0 lines (new)",
    ]
    assert accept.changes(before, before) == []


def test_sizes_name_the_longest_snapshots() -> None:
    texts = {
        "docs/rules.md": "a\n" * 9000,
        "tests/x/__snapshots__/a.ambr": "a\n" * 1200,
        "y/__snapshots__/b.ambr": "b\n",
    }
    assert accept.sizes(texts) == "snapshots: 1,201 lines in 2 files; longest: a.ambr 1,200, b.ambr 1"


def test_every_page_and_snapshot_is_accepted_and_no_lock() -> None:
    names = set(accept.accepted())
    assert {"docs/rules.md", "docs/definition.md", "cluster_defs/reference.yaml"} <= names
    assert not [name for name in names if "lock" in Path(name).name and "__snapshots__" not in name]
    folders = {Path(name).parts[1] for name in names if "__snapshots__" in name}
    assert {path.relative_to(accept.ROOT).parts[1] for path in accept.tests_with_snapshots()} == folders
