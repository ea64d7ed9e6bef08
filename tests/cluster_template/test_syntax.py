"""The reader of the template format: structure, positions, and errors that name a line."""

from __future__ import annotations

import pytest

from generator.cctemplate.expressions import Constant, Duration, Name
from generator.cctemplate.syntax import read
from generator.cctemplate.values import Expression, Interpolation, Listing, known_value, references
from tests.cluster_template.rendered import parse

SAMPLE = """\
# a comment
[cluster Demo]
FormLayout = selectionpanel

\t[[node defaults]]
    MachineType = $Size\x20\x20
        [[[configuration cyclecloud.mounts.data]]]
        options = rw,hard
        [[[cluster-init cyclecloud/slurm:default:4.0.9]]]   # trailing comment
[parameters Required Settings]
    [[parameters Machines]]
        [[[parameter Size]]]
        Config.Entries := {[Label="A # b"; Value="a"], [Value=1]}
            [[[[list Config.Entries]]]]
            Name = Terminate
"""


def test_sections_nest_by_rank_and_know_their_lines() -> None:
    template = parse(SAMPLE)
    (cluster,) = template.clusters
    (defaults,) = cluster.sections
    configuration, spec = defaults.sections
    assert (cluster.name, cluster.line) == ("Demo", 2)
    assert (defaults.kind, defaults.rank, defaults.line) == ("node", 2, 5)
    assert (configuration.name, spec.name) == ("cyclecloud.mounts.data", "cyclecloud/slurm:default:4.0.9")
    (size,) = template.parameters
    assert (size.name, size.rank, size.sections[0].kind) == ("Size", 3, "list")


def test_attributes_know_their_lines_and_are_found_without_case() -> None:
    (cluster,) = parse(SAMPLE).clusters
    machine = cluster.sections[0].attribute("machinetype")
    assert machine is not None
    assert (machine.name, machine.line) == ("MachineType", 6)
    assert machine.value == Expression("$Size", Name("Size"))


def one(text: str) -> object:
    """The value of `X` in a file that sets nothing else."""
    return parse(f"[cluster c]\nX {text}\n").clusters[0].attributes[0].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("= foo bar", "foo bar"),
        ("= 1", 1),
        ("= -1", -1),
        ("= 1.5", 1.5),
        ("= 8.9.1", "8.9.1"),
        ("= TRUE", True),
        ('= "true"', "true"),
        ('= "a, b"', "a, b"),
        ('= "$5"', "$5"),
        ("= a, b", ["a", "b"]),
        ('= "a, b", 2', ["a, b", 2]),
        ("=", ""),
        (":= undefined", None),
        ("= =undefined", None),
        (':= "say \\"hi\\"\\n\\101"', 'say "hi"\nA'),
        (':= {"a", 1}', ["a", 1]),
        (":= -1", -1),
        ("= it's # no comment", "it's # no comment"),
        ("= '''one'''", "one"),
        ("= '''one\n  [two]\n# three\n'''", "one\n  [two]\n# three\n"),
        ("= costs 5$ or $ 6", "costs 5$ or $ 6"),
    ],
)
def test_values_are_typed_as_cyclecloud_types_them(text: str, value: object) -> None:
    assert known_value(one(text), {}) == value  # type: ignore[arg-type]


def test_values_with_parameters() -> None:
    assert one("= ${A && !B}") == Expression("${A && !B}", one(":= A && !B").tree)  # type: ignore[attr-defined]
    assert one("= ${ClusterName}-x") == Interpolation((Name("ClusterName"), "-x"))
    assert one("= $A, $B") == Listing((Expression("$A", Name("A")), Expression("$B", Name("B"))))
    assert one("= `10m`") == Duration("10m")
    assert references(one("= $A and ${f(B, C)}, $A")) == ("A", "B", "C")  # type: ignore[arg-type]
    assert one('= ${A == "}" ? {1} : B}') != Constant("")


def test_text_after_a_multiline_value_is_read_with_the_right_line() -> None:
    template = parse("[cluster c]\nX = '''a\nb'''\nY = 1\n")
    assert [(a.name, a.line) for a in template.clusters[0].attributes] == [("X", 2), ("Y", 4)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[cluster c", 1, "brackets"),
        ("[cluster c]\n[[node n]\n", 2, "brackets"),
        ("[cluster c]\n[[[configuration]]]\n", 2, "rank 3 cannot be in one of rank 1"),
        ("\n\n[[node n]]\n", 3, "rank 2"),
        ("[]\n", 1, "kind"),
        ("Name = x\n", 1, "outside of any section"),
        ("[cluster c]\nno assignment\n", 2, "expected a section"),
        ("[cluster c]\nX = '''never closed\n\n", 2, "not closed"),
        ("[cluster c]\nX = '''a\nb''' tail\n", 3, "'tail'"),
        ("[cluster c]\nX = ${A\n", 2, "'${' is not closed"),
        ("[cluster c]\nX = ${}\n", 2, "expected a value"),
        ('[cluster c]\nX := "open\n', 2, "cannot read"),
        ("[cluster c]\nX := {1, 2\n", 2, "expected ','"),
        ("[cluster c]\nX := f(1 2)\n", 2, "expected ','"),
        ("[cluster c]\nX := [1=2]\n", 2, "field name"),
        ("[cluster c]\nX := [a=2\n", 2, "expected ']'"),
        ("[cluster c]\nX := 1 2\n", 2, "unexpected '2'"),
        ("[cluster c]\nX := a ? b\n", 2, "expected ':'"),
        ("[cluster c]\nX := (a\n", 2, "expected ')'"),
        ("[cluster c]\nX := a &\n", 2, "cannot read"),
        ("[cluster c]\nX := }\n", 2, "expected a value"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    first, *_ = read(text)[1]
    assert first.place is not None
    assert first.place.line == line
    assert message in first.message


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    assert parse("\ufeff[cluster c]\r\nX = a\r\n") == parse("[cluster c]\nX = a\n")
