"""A value that is one variable means what its key says, however it is quoted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from generator.definition.model.fields import plain_values
from generator.definition.read import read_model
from generator.definition.text.source import load
from tests.rules.test_good import EVERYTHING

STYLES: dict[str, Callable[[str], str]] = {
    "between brackets": lambda name: f"${{{name}}}",
    "double quotes": lambda name: f'"${{{name}}}"',
    "single quotes": lambda name: f"'${{{name}}}'",
    "as a default": lambda name: f'"${{NOT_SET:-{name}}}"',
}


def flow(value: Any, leaf: Callable[[Any], str]) -> str:
    """A value in brackets; `leaf` writes what is neither a list nor a mapping."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(below, leaf)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(below, leaf) for below in value) + "]"
    return leaf(value)


def read(text: str, env: dict[str, str]) -> Any:
    """The definition as plain values; there must be no problem."""
    source = load(text, "x.yaml", env)
    assert source.problems == ()
    reading = read_model(source.data, source.written, source.from_one_variable)
    assert reading.problems == ()
    return plain_values(reading.definition)


def as_text(value: Any) -> Any:
    """Keys that take texts and numbers alike print both the same."""
    if isinstance(value, dict):
        return {key: as_text(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(below) for below in value]
    return str(value).lower()


@pytest.mark.parametrize("style", STYLES)
def test_every_key_reads_a_variable_in_every_style(style: str) -> None:
    text = EVERYTHING.decode() if isinstance(EVERYTHING, bytes) else EVERYTHING
    data = load(text, "x.yaml", {}).data
    env: dict[str, str] = {}

    def leaf(value: Any) -> str:
        if not isinstance(value, str | int | float) or (isinstance(value, str) and "${" in value):
            return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("...\n").strip()
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if style == "as a default":
            return STYLES[style](text) if text and not set(text) & set('{}$"\\\n') else repr(value)
        env[f"V{len(env)}"] = text
        return STYLES[style](f"V{len(env) - 1}")

    with_variables = flow(data, leaf)
    assert as_text(read(with_variables, env)) == as_text(read(text, {}))


@pytest.mark.parametrize("written", ["${X}", '"${X}"', "'${X}'", "{vm_size: A, x: ${X}}"])
def test_a_text_that_looks_like_a_number_stays_text_where_the_key_wants_text(written: str) -> None:
    """`8.10` is a release, not 8.1."""
    value = "${X}" if written.startswith("{") else written
    text = f"name: x\nlocation: eastus\nserver: {{release: {value}}}\nslurm: {{partitions: []}}\n"
    source = load(text, "x.yaml", {"X": "8.10"})
    definition = read_model(source.data, source.written, source.from_one_variable).definition
    assert definition is not None
    assert definition.server.release == "8.10"


@pytest.mark.parametrize("written", ["${N}", '"${N}"', '"${NOT_SET:-many}"'])
def test_a_variable_that_is_no_number_is_refused_where_the_key_wants_one(written: str) -> None:
    partition = f"{{name: a, vm_size: Standard_D2as_v5, max_nodes: {written}}}"
    text = f"name: x\nlocation: eastus\nslurm: {{partitions: [{partition}]}}\n"
    source = load(text, "x.yaml", {"N": "many"})
    (problem,) = read_model(source.data, source.written, source.from_one_variable).problems
    assert problem.rule_id == "E0104"
    assert "'many'" not in problem.message


@pytest.mark.parametrize(
    ("key", "written", "message", "hint"),
    [
        ("max_nodes", "!!int ${N}", "the variable N does not hold a whole number, which the tag !!int demands",
         "give the variable such a value"),
        ("spot", '!!bool "${N}"', "the variable N does not hold true or false, which the tag !!bool demands",
         "give the variable such a value"),
        ("max_nodes", "!!int ${M:-many}",
         "the variable M, or its default, does not hold a whole number, which the tag !!int demands",
         "give the variable such a value"),
        ("max_nodes", "!!int many", "the value does not fit its tag !!int", "remove the tag"),
        ("max_nodes", "${N}",
         "max_nodes of partition 'a' must be a whole number (nodes): the variable N does not hold a whole number",
         None),
        ("spot", "'${N}'", "spot of partition 'a' must be true or false: the variable N does not hold true or false",
         None),
        ("max_nodes", "${ZERO}",
         "max_nodes of partition 'a' must be at least 1 (nodes): the variable ZERO holds another number", None),
    ],
)  # fmt: skip
def test_a_variable_without_a_fitting_value_is_named_and_its_value_is_not(
    key: str, written: str, message: str, hint: str | None
) -> None:
    keys = {"max_nodes": "2", key: written}
    partition = ", ".join(f"{name}: {value}" for name, value in keys.items())
    text = f"name: x\nlocation: eastus\nslurm: {{partitions: [{{name: a, vm_size: Standard_D2as_v5, {partition}}}]}}\n"
    source = load(text, "x.yaml", {"N": "s3cret-many", "ZERO": "0"})
    reading = read_model(source.data, source.written, source.from_one_variable)
    (problem, *_) = (*source.problems, *reading.problems)
    assert problem.message == message
    assert problem.hint == hint
    assert "s3cret" not in str((*source.problems, *reading.problems))
