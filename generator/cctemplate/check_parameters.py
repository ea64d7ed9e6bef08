"""Parameters: declared where used, used where declared, and given values that fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from ..problems.problem import Place, Problem
from . import rules
from .expressions import Constant
from .resolve import text_of
from .syntax import Section, Template
from .values import Value, known_value, references
from .vocabulary import BUILTIN_PARAMETERS, DISPLAY_ONLY_PLUGIN, PARAMETER_TYPES, PLUGINS, knows, meant, misspelt

_LONGEST = 60
"""Characters of a value that a message shows."""


def check_parameters(template: Template, values: Mapping[str, Value] | None, late: Set[str]) -> Iterator[Problem]:
    """Findings about parameters; `values` is the parameter file, `late` are filled in on the server."""
    declared: dict[str, Section] = {}
    for section in template.parameters:
        if section.name in declared:
            first = declared[section.name].line
            text = f"parameter {section.name!r} was declared in line {first}"
            yield rules.DuplicateParameter.problem((), text, place=section.place)
        declared.setdefault(section.name, section)
    used: dict[str, Place] = {}
    for name, place in _uses(template):
        used.setdefault(name, place)
    yield from _undeclared(used, frozenset(declared))
    for name, section in declared.items():
        display_only = text_of(section, "Config.Plugin") == DISPLAY_ONLY_PLUGIN
        if name not in used and not display_only:
            text = f"parameter {name!r} is declared, but nothing uses it"
            yield rules.UnusedParameter.problem((), text, place=section.place)
    for section in template.parameters:
        yield from _declaration(section)
    if values is not None:
        yield from _values(declared, values, late)


def _uses(template: Template) -> Iterator[tuple[str, Place]]:
    """(name, place) of parameters that the cluster reads or that conditions of the form depend on."""
    for section in template.walk():
        in_form = section.kind in ("parameter", "parameters")
        for attribute in section.attributes:
            # Filters and entries of the form look at records of their own, not at parameters.
            if in_form and not attribute.name.lower().startswith("conditions."):
                continue
            for name in references(attribute.value):
                yield name, attribute.value_place


def _undeclared(used: Mapping[str, Place], declared: frozenset[str]) -> Iterator[Problem]:
    for name, place in used.items():
        if name not in declared | BUILTIN_PARAMETERS:
            text = f"parameter {name!r} is used, but not declared"
            yield rules.UndeclaredParameter.problem((), text, meant(name, declared), place=place)


def _values(declared: Mapping[str, Section], values: Mapping[str, Value], late: Set[str]) -> Iterator[Problem]:
    for name, value in values.items():
        section = declared.get(name)
        if section is None:
            text = f"the parameter file sets {name!r}, which is not declared"
            yield rules.UnknownValue.problem((name,), text, meant(name, frozenset(declared)), on_key=True)
        elif value is not None:
            yield from _one_value(section, value)
    for name in sorted(late):
        if name not in declared:
            yield rules.LateValue.problem((name,), f"{name!r} is filled in on the server, but is not declared")
        elif values.get(name) is not None:
            yield rules.LateValue.problem((name,), f"{name!r} is filled in on the server, but has a value")
    for name, section in declared.items():
        required = section.attribute("Required")
        is_required = required is not None and required.value == Constant(True)
        has_default = section.attribute("DefaultValue") is not None
        if is_required and values.get(name) is None and name not in late and not (has_default and name not in values):
            text = f"required parameter {name!r} has no value"
            yield rules.MissingValue.problem((), text, place=section.place)


def _one_value(section: Section, value: Value) -> Iterator[Problem]:
    kind = text_of(section, "ParameterType")
    if kind == "Password":
        text = f"the parameter file holds a value of the password {section.name!r}"
        yield rules.SecretValue.problem((section.name,), text, "leave it null", hide_value=True)
        return
    expected = _expected(section, kind, value)
    if expected:
        yield rules.ValueType.problem((section.name,), f"parameter {section.name!r} is {expected}, not {_shown(value)}")


_SWITCH, _NUMBER, _WHOLE_NUMBER = "true or false", "a number", "a whole number"


def _expected(section: Section, kind: str, value: Value) -> str | None:
    """Say what the value should be; None when it fits or its type is not known."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "Boolean" or "BooleanCheckBox" in text_of(section, "Widget.Plugin"):
        return None if isinstance(value, bool) else _SWITCH
    if text_of(section, "Config.IntegerOnly") == "True" and (not is_number or isinstance(value, float)):
        return _WHOLE_NUMBER
    if text_of(section, "Config.Plugin") == "pico.form.NumberTextBox" and not is_number:
        return _NUMBER
    if kind in ("Record", "Cloud.ClusterInitSpecs"):
        return None if isinstance(value, dict) else "a record"
    if kind.startswith(("Azure.", "Cloud.M", "Cloud.I", "Cloud.R", "Cloud.Cr")):
        return _expected_choice(value, may_be_several=text_of(section, "Config.MultiSelect").lower() == "true")
    return None


def _expected_choice(value: Value, *, may_be_several: bool) -> str | None:
    """Say what a choice should be: a list where the form takes several, otherwise a text; None when it fits."""
    if isinstance(value, str):
        return None
    if not may_be_several:
        return "text"
    fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return None if fits else "text or a list of texts"


def _shown(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# ---------------------------------------------------------------- declarations


def _declaration(section: Section) -> Iterator[Problem]:
    """Type, form and default value of one parameter."""
    for name, known, rule in (
        ("ParameterType", PARAMETER_TYPES, rules.UnknownParameterType),
        ("Config.Plugin", PLUGINS, rules.UnknownPlugin),
        ("Widget.Plugin", PLUGINS, rules.UnknownPlugin),
    ):
        attribute, word = section.attribute(name), text_of(section, name)
        if attribute is not None and word and not knows(known, word) and misspelt(word, known):
            text = f"parameter {section.name!r} has the {name} {word!r}"
            yield rule.problem((), text, meant(word, known), place=attribute.value_place)
    default = section.attribute("DefaultValue")
    least, largest = _number(section, "Config.MinValue"), _number(section, "Config.MaxValue")
    if least is not None and largest is not None and least > largest:
        text = f"parameter {section.name!r} has the smallest value {least:g} and the largest value {largest:g}"
        yield rules.EmptyRange.problem((), text, place=section.place)
    if default is None:
        return
    value = known_value(default.value, {})
    wanted = None if value is None else _expected(section, text_of(section, "ParameterType"), value)
    # What a form shows as text is read as text, too; only numbers and switches are told from it.
    if wanted in (_SWITCH, _NUMBER, _WHOLE_NUMBER):
        text = f"the default value of parameter {section.name!r} is {_shown(value)}, not {wanted}"
        yield rules.DefaultType.problem((), text, place=default.value_place)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        limit = (
            f"at least {least:g}" if least is not None and value < least
            else f"at most {largest:g}" if largest is not None and value > largest
            else None
        )  # fmt: skip
        if limit:
            text = f"the default value of parameter {section.name!r} is {value:g}, and it must be {limit}"
            yield rules.DefaultType.problem((), text, place=default.value_place)


def _number(section: Section, name: str) -> float | None:
    attribute = section.attribute(name)
    value = attribute.value.value if attribute is not None and isinstance(attribute.value, Constant) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
