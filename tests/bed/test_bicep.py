"""The evaluator of Bicep: what it knows it evaluates as Bicep does, what it does not know stops it."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import Any

import pytest

from generator.files.file import Files, text
from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.bicep.values import EvaluationError, Late, Resource, UndecidedError
from tests.bicep.variants import VARIANTS, rendered_files

HEAD = "targetScope = 'subscription'\n"
GROUP = "resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {\n  name: 'rg'\n  location: 'here'\n}\n"
SCOPE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"


def deployed(module: str, parameters: str = "", **options: Any) -> list[Resource]:
    """What a module in a resource group leads to, without the group and the deployment of the module."""
    main = f"{HEAD}{GROUP}module m 'm.bicep' = {{\n  name: 'm'\n  scope: group\n  params: {{ {parameters} }}\n}}\n"
    files: Files = {PurePosixPath("main.bicep"): text(main), PurePosixPath("m.bicep"): text(module)}
    return resources_of(files, **options)[2:]


def value_of(expression: str, declarations: str = "") -> Any:
    resource = f"resource r 'P.Q/r@2025-01-01' = {{\n  name: 'r'\n  properties: {{ value: {expression} }}\n}}\n"
    (found,) = deployed(declarations + resource)
    return found.properties["value"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3 - 8 / 3 % 2", 7),
        ("-7 / 2", -3),
        ("true || false && false", True),
        ("!(1 >= 2) ? 'yes' : 'no'", "yes"),
        ("null ?? 'other'", "other"),
        ("{ a: [1, 2] }.a[1]", 2),
        ("{ a: 1 }.?b", None),
        ("[1][?1]", None),
        ("'it\\'s ${'$'}{x} \\u{e9} ${1 + 1}'", "it's ${x} é 2"),
        ("'''\na\n'b'.'''", "a\n'b'."),
        ("[\n1\n\n2, 3\n]", [1, 2, 3]),
        ("[...[1, 2], 3]", [1, 2, 3]),
        ("{ ...{ a: 1 }, b: 2 }", {"a": 1, "b": 2}),
        ("[for (x, i) in ['a', 'b']: '${x}${i}']", ["a0", "b1"]),
        ("[for x in [1, 2, 3]: if (x > 1) { v: x }]", [{"v": 2}, {"v": 3}]),
        ("map(filter([1, 2, 3], x => x > 1), (x, i) => x * 10 + i)", [20, 31]),
        ("toObject([{ k: 'a', v: 1 }], each => each.k, each => each.v)", {"a": 1}),
        ("union({ a: { b: 1 } }, { a: { c: 2 } })", {"a": {"b": 1, "c": 2}}),
        ("mapValues({ a: 1 }, x => x + 1)", {"a": 2}),
        ("contains({ Ab: 1 }, 'aB')", True),
        ("join(split('a/b', '/'), ',')", "a,b"),
        ("format('{0}-{{{1}}}', 'a', 1)", "a-{1}"),
        ("length(uniqueString('a'))", 13),
        ("uniqueString('a') == uniqueString('b')", False),
        ("base64('ü')", "w7w="),
        ("string({ a: [1, true, null] })", '{"a":[1,true,null]}'),
        ("environment().suffixes.storage", "core.windows.net"),
        ("resourceGroup().id", SCOPE),
        ("resourceId('A.B/c/d', 'x', 'y')", f"{SCOPE}/providers/A.B/c/x/d/y"),
        ("resourceId('s', 'g', 'A.B/c', 'x')", "/subscriptions/s/resourceGroups/g/providers/A.B/c/x"),
        ("subscriptionResourceId('A.B/c', 'x')", f"/subscriptions/{SUBSCRIPTION}/providers/A.B/c/x"),
    ],
)  # fmt: skip
def test_expressions(expression: str, expected: object) -> None:
    assert value_of(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "unknownFunction()",
        "missing",
        "{ a: 1 }.b",
        "[1][1]",
        "1 + ",
        "9223372036854775807 + 1",
        "toObject([1, 1], x => 'k')",
        "{ a: 1, a: 2 }",
        "1 ? 2 : 3",
        "`a`",
    ],
)
def test_what_is_not_known_or_wrong_stops_it(expression: str) -> None:
    with pytest.raises(EvaluationError):
        value_of(expression)


def test_a_variable_that_depends_on_itself_stops_it() -> None:
    with pytest.raises(EvaluationError, match="depends on itself"):
        value_of("a", "var a = b\nvar b = a\n")


@pytest.mark.parametrize(
    ("declaration", "given"),
    [
        ("param p string", ""),
        ("param p string", "p: 1"),
        ("param p string", "p: 'a', q: 1"),
        ("param p string[]", "p: [1]"),
        ("param p { a: string }", "p: { a: 'x', b: 'y' }"),
        ("param p { a: string }", "p: {}"),
        ("param p 'a' | 'b'", "p: 'c'"),
        ("@maxLength(2)\nparam p string", "p: 'abc'"),
        ("@allowed(['a'])\nparam p string", "p: 'b'"),
        ("@sealed()\nparam p string", "p: 'b'"),
        ("param p strange", "p: 'b'"),
    ],
)
def test_a_parameter_that_azure_refuses_stops_it(declaration: str, given: str) -> None:
    with pytest.raises(EvaluationError):
        deployed(declaration + "\n", given)


@pytest.mark.parametrize(
    ("declaration", "given"),
    [
        ("param p string?", ""),
        ("param p string = 'a'", ""),
        ("param p { a: string, *: int }", "p: { a: 'x', b: 1 }"),
        ("type t = {\n  a: 'x' | 'y'\n  b: int?\n}\nparam p t[]", "p: [{ a: 'x' }, { a: 'y', b: 1 }]"),
    ],
)
def test_a_parameter_that_fits_is_taken(declaration: str, given: str) -> None:
    assert deployed(declaration + "\n", given) == []


RESOURCES = """
param wanted bool = false
resource parent 'P.Q/a@2025-01-01' = {
  name: 'x'
  resource inner 'b' = {
    name: 'y'
  }
}
resource child 'P.Q/a/b/c@2025-01-01' = {
  parent: parent::inner
  name: 'z'
}
resource loop 'P.Q/n@2025-01-01' = [for i in range(0, 2): {
  name: 'n${i}'
}]
resource left 'P.Q/n@2025-01-01' = if (wanted) {
  name: 'left'
}
resource there 'P.Q/n@2025-01-01' existing = {
  name: 'there'
  scope: resourceGroup('other')
}
resource role 'R.S/t@2025-01-01' = {
  name: guid(there.id, loop[1].id, parent.properties.principal)
  scope: parent
  properties: { of: loop[1].name, note: '-${parent.properties.principal}-' }
}
"""


def test_ids_follow_from_parents_loops_and_scopes() -> None:
    found = {each.symbol.removeprefix("m/"): each for each in deployed(RESOURCES)}
    parent = f"{SCOPE}/providers/P.Q/a/x"
    role = found.pop("role")
    assert {symbol: each.id for symbol, each in found.items()} == {
        "parent": parent,
        "parent::inner": f"{parent}/b/y",
        "child": f"{parent}/b/y/c/z",
        "loop[0]": f"{SCOPE}/providers/P.Q/n/n0",
        "loop[1]": f"{SCOPE}/providers/P.Q/n/n1",
    }
    assert role.scope == parent
    assert role.properties["of"] == "n1"
    assert role.after == {"there", "loop", "parent"}
    assert isinstance(role.name, Late)
    assert isinstance(role.properties["note"], Late)
    assert role.undecided == ("name",)


def test_a_decision_about_something_late_stops_it() -> None:
    declared = "resource x 'P.Q/a@2025-01-01' existing = {\n  name: 'x'\n}\n"
    with pytest.raises(UndecidedError):
        value_of("x.properties.a == 'b' ? 1 : 2", declared)


def test_a_module_at_the_wrong_scope_stops_it() -> None:
    with pytest.raises(EvaluationError, match="is for a subscription"):
        deployed(HEAD)


@cache
def variant(name: str) -> list[Resource]:
    return resources_of(rendered_files(VARIANTS[name]()))


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_can_be_evaluated_and_names_no_resource_twice(name: str) -> None:
    found = [each.id.lower() for each in variant(name)]
    assert len(found) > 4
    assert len(set(found)) == len(found)


def test_what_if_knows_no_output_of_a_module() -> None:
    late = resources_of(rendered_files(VARIANTS["minimal"]()), outputs_are_late=True)
    known = {each.symbol: each for each in variant("minimal")}
    (nic,) = (each for each in late if each.symbol == "server/nic")
    subnet = nic.properties["ipConfigurations"][0]["properties"]["subnet"]["id"]
    assert isinstance(subnet, Late)
    subnets = known["network/vnet"].id + "/subnets/server"
    assert known["server/nic"].properties["ipConfigurations"][0]["properties"]["subnet"]["id"] == subnets
