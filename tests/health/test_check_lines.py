"""Results as the nodes lay them out are read by line: whatever the bytes, to the same end as any other JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from generator.health.check_lines import CheckLines
from generator.health.read import Content, read_bytes
from tests.health.results import as_on_a_node, check, gpus, reduce, result


class AsAnyJson(CheckLines):
    """Knows no layout."""

    def split(self, text: str) -> None:
        """Nothing is laid out as it likes."""


def test_lines_are_understood_and_those_that_say_the_same_are_one_object() -> None:
    """Every field, and a cure where a node writes one."""
    lines = CheckLines()
    first = _read(as_on_a_node(result("hpc-1", "quick", gpus(), reduce("437.9"), _sick())), lines)
    second = _read(as_on_a_node(result("hpc-2", "quick", gpus(), _sick())), lines)
    one, two = first.results[0].result.checks, second.results[0].result.checks
    assert [each.check for each in one] == ["gpu_count", "nccl_all_reduce", "xid"]
    assert (one[2].verdict, one[2].cure, one[2].detail) == ("fail", "reboot", "XID 79 on GPU 3")
    assert one[0] is two[0]
    assert one[2] is two[1]


def test_the_layout_is_that_of_the_nodes() -> None:
    """Otherwise the quick way would be no way at all; test_nodes.py reads what results.sh itself wrote."""
    split = CheckLines().split(as_on_a_node(result()))
    assert split is not None
    assert "checks" not in json.loads(split[0])


_PIECES = (
    *'{}[]"\\,: \n\x01é1',
    ",\n    ",
    ',\n  "checks": [\n    ',
    "\n  ]\n}\n",
    '"checks": [], ',
    ', "cure": ""',
    '{"check": "a"}',
    "null",
    "\\u0041",
)
_CHANGES = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 40), st.sampled_from(("", *_PIECES))), min_size=1, max_size=3
)


@given(_CHANGES)
def test_a_changed_file_is_read_to_the_same_end(changes: list[tuple[int, int, str]]) -> None:
    """Pieces cut out and put in anywhere: the same result or the same problem as without lines."""
    text = as_on_a_node(result("hpc-1", "quick", gpus(), reduce("437.9"), _sick()))
    lines = CheckLines()
    _read(text, lines)
    for place, length, piece in changes:
        at = place % (len(text) + 1)
        text = text[:at] + piece + text[at + length :]
    assert _read(text, lines) == _read(text, AsAnyJson())


def _read(text: str, lines: CheckLines) -> Content:
    return read_bytes(text.encode(), "x", lines)


def _sick() -> dict[str, Any]:
    return check("xid", "fail", detail="XID 79 on GPU 3", cure="reboot")
