"""What changes between two plans, and at what cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.output.changes import Changes
from generator.output.diff import ABSENT, Change, compare, files_text, table, value_text, worst
from generator.problems.problem import KeyPath

OLD: dict[str, Any] = {
    "name": "lab",
    "slurm": {
        "partitions": [
            {"name": "hpc", "vm_size": "A", "max_nodes": 2},
            {"name": "htc", "vm_size": "B", "max_nodes": 8},
        ],
        "login": None,
        "extra": ["a", "b"],
    },
}


def cost_of(path: KeyPath) -> str:
    """Costs by the last key; indexes arrive as numbers."""
    assert all(not (isinstance(step, str) and step in ("hpc", "htc", "gpu")) for step in path)
    return {"vm_size": "node restart", "name": "recreate"}.get(str(path[-1]), "in place")


def changed(**slurm: Any) -> dict[str, Any]:
    return {**OLD, "slurm": {**OLD["slurm"], **slurm}}


def short(changes: tuple[Change, ...]) -> list[tuple[str, Any, Any, str]]:
    return [(each.where, each.old, each.new, each.cost) for each in changes]


def test_equal_plans() -> None:
    assert compare(OLD, json.loads(json.dumps(OLD)), cost_of) == ()
    assert worst(()) is None


def test_items_are_matched_by_name() -> None:
    """A partition in front moves the others without changing them."""
    htc, hpc = OLD["slurm"]["partitions"][1], OLD["slurm"]["partitions"][0]
    gpu = {"name": "gpu", "vm_size": "C", "max_nodes": 1}
    new = changed(partitions=[gpu, hpc | {"vm_size": "Z"}, htc])
    assert short(compare(OLD, new, cost_of)) == [
        ("slurm.partitions[gpu]", ABSENT, gpu, "in place"),
        ("slurm.partitions[hpc].vm_size", "A", "Z", "node restart"),
    ]
    assert compare(OLD, new, cost_of)[1].path == ("slurm", "partitions", "hpc", "vm_size")


def test_removed_items_and_keys() -> None:
    new = changed(partitions=OLD["slurm"]["partitions"][:1])
    del new["slurm"]["extra"]
    assert short(compare(OLD, new, cost_of)) == [
        ("slurm.partitions[htc]", OLD["slurm"]["partitions"][1], ABSENT, "in place"),
        ("slurm.extra", ["a", "b"], ABSENT, "in place"),
    ]


def test_order_counts_once() -> None:
    new = changed(partitions=OLD["slurm"]["partitions"][::-1])
    assert short(compare(OLD, new, cost_of)) == [
        ("slurm.partitions (order)", ["hpc", "htc"], ["htc", "hpc"], "in place")
    ]


@pytest.mark.parametrize("key", ["path", "recipe", "rule"])
def test_items_without_a_name_are_matched_by_what_takes_its_place(key: str) -> None:
    """So the cost is that of the setting that changed, not that of the whole list."""
    old = [{key: "a", "name": None, "vm_size": 1}, {key: "b", "name": None, "vm_size": 1}]
    new = [{key: "b", "name": None, "vm_size": 2}, {key: "a", "name": None, "vm_size": 1}]
    assert short(compare({"k": old}, {"k": new}, cost_of)) == [
        ("k[b].vm_size", 1, 2, "node restart"),
        ("k (order)", ["a", "b"], ["b", "a"], "in place"),
    ]


@pytest.mark.parametrize(("old", "new"), [(True, 1), (0, False), ("1", 1), (None, ""), ([1], [True]), ({"a": 1}, None)])
def test_values_of_another_type_differ(old: Any, new: Any) -> None:
    assert [(each.old, each.new) for each in compare({"k": old}, {"k": new}, cost_of)] == [(old, new)]


def test_one_and_one_point_zero_are_the_same() -> None:
    """YAML may write either."""
    assert compare({"k": 1}, {"k": 1.0}, cost_of) == ()


@pytest.mark.parametrize(
    "items", [[{"name": "a"}, {"name": "a"}], [{"name": 1}], [{"x": 1}], ["a"], [{"name": "a"}, "b"]]
)
def test_lists_without_usable_names_are_compared_as_a_whole(items: list[Any]) -> None:
    assert short(compare({"k": items}, {"k": []}, cost_of)) == [("k", items, [], "in place")]


def test_the_worst_cost() -> None:
    new = {**changed(login={"count": 1}), "name": "other"}
    assert worst(compare(OLD, new, cost_of)) == "recreate"


def test_table_and_json() -> None:
    """Aligned for people; absent values have no key for machines."""
    new = changed(login={"count": 1}, extra=["a"], text="x" * 100)
    changes = compare(OLD, new, cost_of)
    assert table(changes).splitlines() == [
        "setting      old     new                                       cost",
        "slurm.login  null    {count: 1}                                in place",
        "slurm.extra  [a, b]  [a]                                       in place",
        "slurm.text   —       " + "x" * 39 + "…  in place",
    ]
    assert [sorted(each.as_json()) for each in changes][2] == ["cost", "new", "path", "where"]
    json.dumps([each.as_json() for each in changes])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "true"),
        (None, "null"),
        (ABSENT, "—"),
        ("a\nb", "a⏎b"),
        ({"a": [1, False]}, "{a: [1, false]}"),
        (1.5, "1.5"),
    ],
)
def test_values_as_text(value: Any, expected: str) -> None:
    assert value_text(value) == expected


def test_long_texts_are_shown_from_where_they_differ() -> None:
    """A node attribute of a VM size is a line of a thousand characters, of which one floor changed."""
    start = "1 standard_nd96isr_h100_v5 | from a | gpu_copy_to_device floor_gb_per_s=48 | nccl_all_reduce ranks=8 "
    old, new = f"{start}floor_gb_per_s=460 attempts=2 | x", f"{start}floor_gb_per_s=480 attempts=2 | x"
    (_, row) = table((Change(("a",), old, new, "node restart", "a"),)).splitlines()
    assert "…floor_gb_per_s=460 attempts=2 | x" in row
    assert "…floor_gb_per_s=480 attempts=2 | x" in row
    (_, row) = table((Change(("a",), "x" * 50, "y" * 50, "node restart", "a"),)).splitlines()
    assert f"{'x' * 39}…" in row
    assert f"{'y' * 39}…" in row


def test_summary_of_files() -> None:
    assert files_text(Changes(added=("a",), unchanged=("b", "c"))) == "files: 1 added, 2 unchanged"
    assert files_text(Changes()) == "files: none"
