"""Parameters: declared where used, used where declared, and given values that fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from .evaluate import Value
from .expressions import Constant
from .findings import Finding
from .resolve import text_of
from .syntax import Section, Template
from .values import references
from .vocabulary import BUILTIN_PARAMETERS, DISPLAY_ONLY_PLUGIN, suggestion


def check_parameters(template: Template, values: Mapping[str, Value] | None, late: Set[str]) -> Iterator[Finding]:
    """Findings about parameters; `values` is the parameter file, `late` are filled in on the server."""
    declared: dict[str, Section] = {}
    for section in template.parameters:
        if section.name in declared:
            first = declared[section.name].line
            yield Finding(
                "duplicate-parameter", section.line, f"parameter {section.name!r} was declared in line {first}"
            )
        declared.setdefault(section.name, section)
    used = dict(_uses(template))
    yield from _undeclared(used, frozenset(declared))
    for name, section in declared.items():
        display_only = text_of(section, "Config.Plugin") == DISPLAY_ONLY_PLUGIN
        if name not in used and not display_only:
            yield Finding("unused-parameter", section.line, f"parameter {name!r} is declared, but nothing uses it")
    if values is not None:
        yield from _values(declared, values, late)


def _uses(template: Template) -> Iterator[tuple[str, int]]:
    """(name, line) of parameters that the cluster reads or that conditions of the form depend on."""
    for section in template.walk():
        in_form = section.kind in ("parameter", "parameters")
        for attribute in section.attributes:
            # Filters and entries of the form look at records of their own, not at parameters.
            if in_form and not attribute.name.lower().startswith("conditions."):
                continue
            for name in references(attribute.value):
                yield name, attribute.line


def _undeclared(used: Mapping[str, int], declared: frozenset[str]) -> Iterator[Finding]:
    for name, line in used.items():
        if name not in declared | BUILTIN_PARAMETERS:
            close = suggestion(name, declared)
            hint = f"did you mean {close!r}?" if close else None
            yield Finding("undeclared-parameter", line, f"parameter {name!r} is used, but not declared", hint)


def _values(declared: Mapping[str, Section], values: Mapping[str, Value], late: Set[str]) -> Iterator[Finding]:
    for name, value in values.items():
        section = declared.get(name)
        if section is None:
            close = suggestion(name, frozenset(declared))
            hint = f"did you mean {close!r}?" if close else None
            yield Finding("unknown-value", 0, f"the parameter file sets {name!r}, which is not declared", hint)
        elif value is not None:
            yield from _one_value(section, value)
    for name in sorted(late):
        if name not in declared:
            yield Finding("late-value", 0, f"{name!r} is to be filled in on the server, but is not declared")
        elif values.get(name) is not None:
            yield Finding("late-value", 0, f"{name!r} is to be filled in on the server, but has a value")
    for name, section in declared.items():
        required = section.attribute("Required")
        is_required = required is not None and required.value == Constant(True)
        has_default = section.attribute("DefaultValue") is not None
        if is_required and values.get(name) is None and name not in late and not (has_default and name not in values):
            yield Finding("missing-value", section.line, f"required parameter {name!r} has no value")


def _one_value(section: Section, value: Value) -> Iterator[Finding]:
    kind = text_of(section, "ParameterType")
    if kind == "Password":
        yield Finding("secret-value", 0, f"the parameter file holds a value of the password {section.name!r}")
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    expected = None
    if (kind == "Boolean" or "BooleanCheckBox" in text_of(section, "Widget.Plugin")) and not isinstance(value, bool):
        expected = "true or false"
    elif text_of(section, "Config.IntegerOnly") == "True" and (not is_number or isinstance(value, float)):
        expected = "a whole number"
    elif text_of(section, "Config.Plugin") == "pico.form.NumberTextBox" and not is_number:
        expected = "a number"
    elif kind in ("Record", "Cloud.ClusterInitSpecs") and not isinstance(value, dict):
        expected = "a record"
    elif kind.startswith(("Azure.", "Cloud.M", "Cloud.I", "Cloud.R", "Cloud.Cr")) and not isinstance(value, str):
        expected = "text"
    if expected:
        yield Finding("value-type", 0, f"parameter {section.name!r} is {expected}, not {value!r}")
