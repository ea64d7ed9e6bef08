"""Inheritance between nodes."""

from __future__ import annotations

from generator.cctemplate.resolve import ResolvedNode, resolve
from generator.cctemplate.values import known_value
from tests.cluster_template.rendered import parse

TEMPLATE = """\
[cluster c]
    [[nodearray child]]
    Extends = first, second
    C = child
        [[[configuration deep.key]]]
        d = child
        [[[cluster-init own:default:1.0.0]]]
        [[[cluster-init cyclecloud/slurm:default]]]
    [[node defaults]]
    A = defaults
    B = defaults
    C = defaults
    E = defaults
        [[[configuration]]]
        deep.key.c = defaults
        deep.key.d = defaults
        [[[cluster-init cyclecloud/slurm:default]]]
    [[node first]]
    Abstract = true
    B = first
    E := undefined
        [[[cluster-init own:first:1.0.0]]]
    [[node second]]
    Extends = missing, second
    B = second
        [[[cluster-init other/own:second:1.0.0]]]
"""


def nodes() -> dict[str, ResolvedNode]:
    return resolve(parse(TEMPLATE).clusters[0])


def test_later_bases_win_and_the_node_itself_wins_last() -> None:
    child = nodes()["child"]
    values = {name: known_value(child.attributes[name].value, {}) for name in "abc"}
    assert values == {"a": "defaults", "b": "second", "c": "child"}
    assert {key: known_value(found.value, {}) for key, found in child.configuration.items()} == {
        "deep.key.c": "defaults",
        "deep.key.d": "child",
    }


def test_undefined_takes_an_inherited_attribute_away() -> None:
    assert "e" not in nodes()["first"].attributes
    # `second` has it from `defaults`, but those come before `first` and do not bring it back.
    assert "e" in nodes()["second"].attributes
    assert "e" not in nodes()["child"].attributes


def test_inherited_specs_run_first_and_once() -> None:
    assert [spec.key for spec in nodes()["child"].specs] == [
        "cyclecloud/slurm:default",
        "own:first:1.0.0",
        "other/own:second:1.0.0",
        "own:default:1.0.0",
    ]


def test_abstract_is_not_inherited() -> None:
    assert [name for name, node in nodes().items() if node.is_abstract] == ["defaults", "first"]
