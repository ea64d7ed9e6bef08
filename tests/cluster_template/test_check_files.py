"""`template check` of whatever someone gives it: a clear problem with a place, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.cctemplate.files import MAX_BYTES, CheckedFile, check_files, read_parameters
from generator.plan.deployment import Plan
from generator.problems.text import as_json, render
from generator.render.cluster_template import render as cluster_files
from tests.cluster_template.own import FILER, PBS
from tests.cluster_template.plans import ALL
from tests.cluster_template.test_checks import GOOD

PIECES = st.sampled_from([
    "[cluster c]", "[[node defaults]]", "[[nodearray a]]", "[[[configuration]]]", "[[[cluster-init a:b]]]",
    "[parameters p]", "[[[parameter x]]]", "Extends = a", "Extends = $x", "Abstract = ${x}", "slurm.role = execute",
    'slurm.hpc = ${1 / 0 == regexp("(", "a")}', "MaxCount := -x", "x := f(", "y = '''", 'z = "', "", "'''", "\t# c",
    "DefaultValue := {[a=1], 2}", "Required = true", "Version = 1, 2", "Project := undefined", "a = 1e999", "b = $",
])  # fmt: skip
SIGNS = st.sampled_from("[]{}()$'\"`=:,;ab1. \n\\#")
VALUES = {
    "Region": "westeurope",
    "MaxCores": 480,
    "Autoscale": True,
    "SubnetId": "group/network/compute",
    "PublicServer": False,
    "ServerSpecs": None,
}


def printed(checked: tuple[CheckedFile, ...]) -> str:
    """All problems as text; as JSON, too, to see that both work."""
    for each in checked:
        assert json.dumps(as_json(each.problems, each.source))
    return "".join(render(each.problems, each.source) for each in checked)


def of_template(content: bytes) -> tuple[str, ...]:
    """Rule ids of a template."""
    (checked,) = check_files(("t.txt", content))
    assert printed((checked,)).count("error") or not checked.problems
    return tuple(problem.rule_id for problem in checked.problems)


@pytest.mark.parametrize(
    ("content", "rule_id"),
    [
        (b"", "E2009"),
        (b"# only a comment\n", "E2009"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "E2010"),
        (b"\x89PNG\r\n\x1a\n", "E2007"),
        (FILER.encode("utf-16"), "E2007"),
        ("[cluster Größe]\n".encode("latin-1"), "E2007"),
        (b"x" * (MAX_BYTES + 1), "E2008"),
        (b'{"a": 1}', "E2001"),
        (b"name: lab\nlocation: x\n", "E2001"),
        (b"[cluster c]\n[[node n]]\nX = \x00\n", "E2010"),
    ],
)
def test_what_is_no_template_is_named(content: bytes, rule_id: str) -> None:
    (checked,) = check_files(("t.txt", content))

    assert rule_id in [problem.rule_id for problem in checked.problems]
    assert not checked.is_understood
    assert "t.txt:1:" in printed((checked,)) or rule_id == "E2010"


def test_the_whole_text_of_a_problem() -> None:
    text = FILER.replace("StorageAccountType", "StorageAcountType")

    assert printed(check_files(("filer.txt", text.encode()))) == (
        "filer.txt:12:5: error E2106: volume 'data' has no attribute 'StorageAcountType'\n"
        "   12 |     StorageAcountType = Premium_LRS\n"
        "      |     ^^^^^^^^^^^^^^^^^\n"
        "      = hint: did you mean 'StorageAccountType'?\n"
        "      = more: cycleforge explain E2106\n"
    )


@pytest.mark.parametrize(
    ("change", "rule_id", "line", "column"),
    [
        ({"MaxCore": 1}, "E2204", 8, 3),
        ({"MaxCores": "480"}, "E2206", 3, 15),
        ({"Autoscale": "true"}, "E2206", 4, 16),
        ({"ServerSpecs": ["a"]}, "E2206", 7, 18),
    ],
)
def test_values_are_judged_at_their_place(change: dict[str, object], rule_id: str, line: int, column: int) -> None:
    text = json.dumps(VALUES | change, indent=2)

    template, parameters = check_files(("t.txt", PBS.encode()), ("p.json", text.encode()))

    assert template.problems == ()
    assert f"p.json:{line}:{column}: error {rule_id}: " in printed((parameters,))


def test_a_required_value_that_is_missing_is_reported_at_its_declaration() -> None:
    values = {name: value for name, value in VALUES.items() if name != "SubnetId"}

    template, parameters = check_files(("t.txt", PBS.encode()), ("p.json", json.dumps(values).encode()))

    assert parameters.problems == ()
    assert [problem.message for problem in template.problems] == ["required parameter 'SubnetId' has no value"]


def test_a_required_value_that_is_null_comes_with_the_import() -> None:
    values = json.dumps(VALUES | {"SubnetId": None}).encode()

    assert [each.problems for each in check_files(("t.txt", PBS.encode()), ("p.json", values))] == [(), ()]


@pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
def test_what_is_rendered_is_clean_as_a_user_checks_it(make: Callable[[], Plan]) -> None:
    written = {path.suffix: file.content for path, file in cluster_files(make()).items()}

    checked = check_files(("c.txt", written[".txt"]), ("c.params.json", written[".json"]))

    assert [each.problems for each in checked] == [(), ()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "this is not JSON: Expecting value"),
        ("{", "expected a name in double quotes"),
        ('{"a": 1,}', "expected a name in double quotes"),
        ('{"a": 1 "b": 2}', "expected ','"),
        ('{"a"}', "expected ':'"),
        ('{"a": }', "Expecting value"),
        ('{"a": nul}', "Expecting value"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("{'a': 1}", "expected a name in double quotes"),
        ("[1]", "is not an object"),
        ('"x"', "is not an object"),
        ('{"a": 1} x', "something follows the object"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "too many digits"),
        ('{"a": 1, "a": 2}', "'a' is set twice"),
    ],
)
def test_what_is_no_parameter_file_is_named(text: str, words: str) -> None:
    _, checked = check_files(("t.txt", PBS.encode()), ("p.json", text.encode()))

    assert words in printed((checked,))
    assert "E2011" in [problem.rule_id for problem in checked.problems]


def test_a_parameter_file_that_is_not_text_is_named() -> None:
    _, checked = check_files(("t.txt", PBS.encode()), ("p.json", b"\xff\xfe{"))

    assert [problem.rule_id for problem in checked.problems] == ["E2007"]
    assert not checked.is_understood


@pytest.mark.parametrize(
    ("text", "rule_id"),
    [
        ("".join(f"[[node n{n}]]\nExtends = n{n + 1}\n" for n in range(3000)), "E2302"),
        ("".join(f"[[node {s}{n}]]\nExtends = a{n + 1}, b{n + 1}\n" for n in range(60) for s in "ab"), "E2302"),
        ("\n".join("[" * rank + "node x" + "]" * rank for rank in range(2, 2000)), "E2003"),
        ("".join(f"[[node n{n}]]\nExtends = z{n}\n" for n in range(2000)), "E2301"),
        ("x := " + "!" * 5000 + "x", "E2005"),
        ("x := " + "a + " * 20000 + "x", "E2202"),
    ],
    ids=["chain", "diamonds", "deep", "many", "signs", "long"],
)
def test_beyond_reason(text: str, rule_id: str) -> None:
    assert rule_id in of_template(f"[cluster c]\n{text}\n".encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=6), st.sampled_from([None, 0, 3]))
def test_parameters_are_read_as_json_reads_them(values: dict[str, object], indent: int | None) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    read = read_parameters(text)

    assert read.values == json.loads(text)
    assert read.problems == ()
    lines = text.split("\n")
    for name, place in read.keys.items():
        assert json.loads(lines[place.line - 1][place.column - 1 : place.end_column - 1]) == name


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200)
    | (st.lists(PIECES, max_size=20).map("\n".join) | st.text(SIGNS, max_size=80)).map(str.encode),
    st.binary(max_size=60),
)
@example(b"[cluster c]\n[[node n]\nExtends = n\n[[[volume v]]\n]", b'{"a": 1')
@example(b"[cluster c]\nx = " + b"9" * 5000, b"")
@example(b"[cluster c]\nx := " + b"9" * 5000, b"")
@example(b"[cluster c]\nx := " + b"(" * 5000, b"")
@example(b"[cluster c]\n[[node n]]\nMaxCount := " + b"1+" * 5000 + b"1", b"")
def test_any_bytes(template: bytes, parameters: bytes) -> None:
    checked = check_files(("t.txt", template), ("p.json", parameters))

    text = printed(checked)
    assert all(each.is_understood or each.problems for each in checked)
    assert "Traceback" not in text


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from([PBS, GOOD]), st.booleans())
def test_a_good_template_with_any_line_or_one_moved(data: st.DataObject, text: str, insert: bool) -> None:
    lines = text.split("\n")
    number, piece = data.draw(st.integers(0, len(lines) - 1)), data.draw(PIECES | st.text(SIGNS, max_size=20))
    if data.draw(st.booleans()):
        piece = lines.pop(data.draw(st.integers(0, len(lines) - 1)))
    lines[number : number if insert else number + 1] = [piece]

    checked = check_files(("t.txt", "\n".join(lines).encode()), ("p.json", json.dumps(VALUES).encode()))

    assert printed(checked) is not None
    for problem in checked[0].problems:
        assert problem.place is not None
        assert 1 <= problem.place.line <= len(checked[0].source.lines)
