"""Line and column of every key and value."""

from __future__ import annotations

import pytest

from generator.definition.text.source import load
from generator.problems.problem import KeyPath, Place

TEXT = """\
# comment
name: llm
admin: {user: a, keys: [k1, "k 2"]}
slurm:
  partitions:
    - name: 日本
      vm_size: X   # comment
    -   - deep
  empty:
  text: |
    line
last: *bad
"""


@pytest.mark.parametrize(
    ("path", "on_key", "expected"),
    [
        (("name",), False, (2, 7, 10)),
        (("name",), True, (2, 1, 5)),
        (("admin",), False, (3, 8, 36)),
        (("admin", "user"), False, (3, 15, 16)),
        (("admin", "user"), True, (3, 9, 13)),
        (("admin", "keys"), False, (3, 24, 35)),
        (("admin", "keys", 1), False, (3, 29, 34)),
        (("admin", "keys", 1), True, (3, 29, 34)),
        (("slurm",), False, (5, 3, 13)),
        (("slurm", "partitions"), False, (6, 5, 6)),
        (("slurm", "partitions", 0), False, (6, 7, 11)),
        (("slurm", "partitions", 0, "name"), False, (6, 13, 15)),
        (("slurm", "partitions", 0, "vm_size"), False, (7, 16, 17)),
        (("slurm", "partitions", 1, 0), False, (8, 11, 15)),
        (("slurm", "empty"), False, (9, 3, 8)),
        (("slurm", "text"), False, (10, 9, 10)),
        # not in the file: the nearest section above
        (("slurm", "partitions", 0, "max_nodes"), True, (6, 7, 11)),
        (("slurm", "partitions", 7), False, (5, 3, 13)),
        (("slurm", "missing", "deeper"), False, (4, 1, 6)),
        (("missing",), True, (2, 1, 5)),
        ((), False, (2, 1, 5)),
    ],
)
def test_position(path: KeyPath, on_key: bool, expected: tuple[int, int, int]) -> None:
    """Columns count characters from 1, whatever their width."""
    source = load(TEXT.replace("*bad", "1"), "c.yaml", {})
    assert source.position(path, on_key=on_key) == Place(*expected)


def test_values_of_aliases_stand_where_the_alias_is_and_their_content_at_the_anchor() -> None:
    """The alias is what to change for the value, the anchor for what is inside."""
    source = load("a: &x {b: 1}\nc: *x\n", "c.yaml", {})
    assert source.position(("c",)) == Place(2, 4, 6)
    assert source.position(("c", "b")) == Place(1, 11, 12)


def test_characters_beyond_the_basic_plane_count_once() -> None:
    """UTF-16 would count two."""
    source = load("😀: {a: 1}\n", "c.yaml", {})
    assert source.position(("😀", "a")) == Place(1, 8, 9)
