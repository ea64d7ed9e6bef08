"""The tree of a YAML file as plain data: types by the core schema, variables filled in, merge keys, places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from ...problems.problem import KeyPath, Place, Problem, Related
from ...words.suggestions import suggestion
from . import tree as yaml_tree
from .interpolation import Filled, fill, has_variable, is_one_variable, one_variable
from .rules import (
    BadMerge,
    DuplicateKey,
    ForbiddenCharacter,
    KeyNotText,
    MalformedVariable,
    MissingVariableInText,
    TextRule,
    TooLarge,
    UnknownTag,
    UnusableVariable,
)

_INVISIBLE = re.compile("[\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000]")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,39})|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,32}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_TAGS = {
    f"tag:yaml.org,2002:{name}": kind
    for name, kind in (("str", str), ("int", int), ("float", float), ("bool", bool), ("null", None))
}
KINDS: dict[type | None, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
    list: "a list",
    dict: "a mapping",
    str: "text",
}


class MissingVariable(Struct, frozen=True):
    """A value that consists of one environment variable, which is not set: the model may ask for it at deployment."""

    name: str


class VariableUse(NamedTuple):
    """A variable that the definition names, with its default (None: it has none) and the value that uses it."""

    name: str
    default: str | None
    path: KeyPath


def resolve(text: str) -> Any:
    """A plain scalar by the core schema; numbers with leading zeros stay text, because readers disagree on them."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


class TooMuchError(Exception):
    """A limit was passed; reading stops."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Reader:
    """Walks the tree once and writes down data, places, variables and problems."""

    def __init__(self, text: str, env: Mapping[str, str] | None) -> None:
        self.problems: list[Problem] = []
        self.variables: list[VariableUse] = []
        self.keys: dict[KeyPath, Place] = {}
        self.values: dict[KeyPath, Place] = {}
        self.written: dict[KeyPath, str] = {}
        self.from_one_variable: dict[KeyPath, str] = {}
        """The text of each value that is one variable, however it is quoted."""
        self._text = text
        self._env = env
        self._count = 0
        self._checked: set[int] = set()
        """Mappings whose own keys were checked; an alias visits them again."""

    def value(self, node: yaml_tree.Node, path: KeyPath) -> Any:
        """The plain value of a node."""
        self._count_one(node, path)
        self.values[path] = node.place
        if isinstance(node, yaml_tree.Alias):
            node = node.target
        if isinstance(node, yaml_tree.Sequence):
            self._collection_tag(node, path, "seq")
            return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
        if isinstance(node, yaml_tree.Mapping):
            self._collection_tag(node, path, "map")
            return self._mapping(node, path)
        return self._scalar(node, path)

    # ------------------------------------------------------------ mappings

    def _mapping(self, node: yaml_tree.Mapping, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, (key_node, value_node) in self._pairs(node, path).items():
            below = (*path, key)
            self.keys[below] = key_node.place
            result[key] = self.value(value_node, below)
            if result[key] is None and self.values[below].column == self.values[below].end_column:
                self.values[below] = key_node.place
        return result

    def _pairs(self, node: yaml_tree.Mapping, path: KeyPath) -> dict[str, tuple[yaml_tree.Node, yaml_tree.Node]]:
        """Own keys, then what `<<` adds; own keys win, then the earlier merged mapping."""
        own: dict[str, tuple[yaml_tree.Node, yaml_tree.Node]] = {}
        merged: list[yaml_tree.Mapping] = []
        is_first = id(node) not in self._checked
        self._checked.add(id(node))
        for key_node, value_node in node.pairs:
            self._count_one(key_node, path)
            if isinstance(key_node, yaml_tree.Scalar) and key_node.plain and key_node.value == "<<":
                merged += self._merged(value_node, path, report=is_first)
                continue
            key = self._key(key_node, path, report=is_first)
            if key is None:
                continue
            if key not in own:
                own[key] = (key_node, value_node)
            elif is_first:
                first = Related(f"the first '{key}' is here", place=own[key][0].place)
                message = f"the key '{key}' is here a second time"
                self._report(DuplicateKey, (*path, key), message, place=key_node.place, related=(first,))
        for mapping in merged:
            for key, pair in self._pairs(mapping, path).items():
                own.setdefault(key, pair)
        return own

    def _merged(self, node: yaml_tree.Node, path: KeyPath, *, report: bool) -> list[yaml_tree.Mapping]:
        place = node.place
        if isinstance(node, yaml_tree.Alias):
            node = node.target
        parts = node.items if isinstance(node, yaml_tree.Sequence) else [node]
        targets = [part.target if isinstance(part, yaml_tree.Alias) else part for part in parts]
        mappings = [part for part in targets if isinstance(part, yaml_tree.Mapping)]
        if report and len(mappings) < len(targets):
            self._report(BadMerge, path, "'<<' adds the keys of a mapping, and this is not a mapping", place=place,
                         hint="give it an alias of a mapping: `<<: *name`")  # fmt: skip
        return mappings

    def _key(self, node: yaml_tree.Node, path: KeyPath, *, report: bool) -> str | None:
        place = node.place
        if isinstance(node, yaml_tree.Alias):
            node = node.target
        if not isinstance(node, yaml_tree.Scalar):
            if report:
                kind = "a list" if isinstance(node, yaml_tree.Sequence) else "a mapping"
                message, hint = f"{kind} cannot be a key", None
                if isinstance(node, yaml_tree.Mapping):
                    # `key: {{ name }}` and `{{ name }}: value` are how other tools write variables.
                    hint = "put the value into quotes if the braces belong to it; a variable is written ${NAME}"
                self._report(KeyNotText, path, message, place=place, hint=hint)
            return None
        value = resolve(node.value) if node.plain else node.value
        if not isinstance(value, str):
            if report:
                shown = node.value or "(nothing)"
                message = f"the key {shown} is not text" + (f" but {KINDS[type(value)]}" if value is not None else "")
                self._report(KeyNotText, path, message, place=place, hint=f'write "{node.value}"')
            return None
        if not report:
            return value
        if "${" in value and self._env is not None:
            self._report(
                KeyNotText, (*path, value), "a variable is not allowed in a key", place=place, hint="write the key out"
            )
        if hidden := _INVISIBLE.search(value):
            message = f"the key holds the invisible character U+{ord(hidden[0]):04X}"
            self._report(
                ForbiddenCharacter,
                (*path, value),
                message,
                place=place,
                hint="type the key and the space before it again",
            )
        return value

    def _collection_tag(self, node: yaml_tree.Sequence | yaml_tree.Mapping, path: KeyPath, kind: str) -> None:
        if node.tag not in (None, "!", f"tag:yaml.org,2002:{kind}"):
            self._tag_problem(node.tag, path, node.place)

    # ------------------------------------------------------------ scalars

    def _scalar(self, node: yaml_tree.Scalar, path: KeyPath) -> Any:
        self.written[path] = node.value
        text = node.value
        if self._env is not None and has_variable(text):
            filled = self._filled(fill(text, self._env), node, path)
            if isinstance(filled, MissingVariable):
                return filled
            if is_one_variable(text):
                self.from_one_variable[path] = filled.strip()
            text = filled
        if node.tag in (None, "!"):
            return resolve(text) if node.plain else text
        if node.tag not in _TAGS:
            self._tag_problem(node.tag, path, node.place)
            return text
        return self._tagged(text, node, path)

    def _tagged(self, text: str, node: yaml_tree.Scalar, path: KeyPath) -> Any:
        kind = _TAGS[node.tag or ""]
        value = resolve(text)
        if kind is str:
            return text
        if kind is None and value is None:
            return None
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is kind:
            return value
        short = (node.tag or "").rpartition(":")[2]
        if (variable := one_variable(node.value)) and self._env is not None:
            message = f"{variable} does not hold {KINDS[kind or type(None)]}, which the tag !!{short} demands"
            self._report(UnknownTag, path, message, hint="give the variable such a value")
        else:
            self._report(UnknownTag, path, f"the value does not fit its tag !!{short}", hint="remove the tag")
        return text

    def _filled(self, filled: Filled, node: yaml_tree.Scalar, path: KeyPath) -> str | MissingVariable:
        self.variables += [VariableUse(use.name, use.default, path) for use in filled.uses]
        for index in filled.malformed:
            place = self._inside(node, "${", node.value.count("${", 0, index), 2)
            hint = "write ${NAME} or ${NAME:-default}; for a literal ${ write $${"
            self._report(
                MalformedVariable, path, "'${' is not followed by a variable name and '}'", place=place, hint=hint
            )
        if filled.is_missing_alone:
            return MissingVariable(filled.missing[0].name)
        for use in filled.missing + filled.unusable:
            start = "${" + use.name
            place = self._inside(node, start, node.value.count(start, 0, use.index), len(start) + 1)
            if use in filled.missing:
                hint = f"export {use.name}=…, or write ${{{use.name}:-default}}"
                message = f"the environment variable {use.name} is not set"
                self._report(MissingVariableInText, path, message, place=place, hint=hint)
            else:
                message = f"the environment variable {use.name} holds control characters or bytes that are not text"
                self._report(UnusableVariable, path, message, place=place, hint="set it again")
        broken = filled.missing or filled.unusable or filled.malformed
        return node.value if broken else filled.text

    def _inside(self, node: yaml_tree.Scalar, needle: str, occurrence: int, length: int) -> Place:
        """The place of the n-th `needle` in the written scalar; that of the whole scalar if escapes hide it."""
        index = node.start - 1
        for _ in range(occurrence + 1):
            index = self._text.find(needle, index + 1, node.end)
            if index < 0:
                return node.place
        line_start = node.start - (node.place.column - 1)
        return yaml_tree.place_after(self._text, index, length, node.place.line, line_start)

    # ------------------------------------------------------------ limits, problems

    def _count_one(self, node: yaml_tree.Node, path: KeyPath) -> None:
        self._count += 1
        if self._count > yaml_tree.MAX_NODES:
            message = f"the file grows to more than {yaml_tree.MAX_NODES:,} values because of its aliases"
        elif len(path) > yaml_tree.MAX_DEPTH:
            message = f"the file is nested deeper than {yaml_tree.MAX_DEPTH} levels because of its aliases"
        else:
            return
        raise TooMuchError(TooLarge.problem(path, message, place=node.place))

    def _tag_problem(self, tag: str | None, path: KeyPath, place: Place) -> None:
        shown = (tag or "").replace("tag:yaml.org,2002:", "!!")
        known = [f"!!{name.rpartition(':')[2]}" for name in _TAGS]
        hint = suggestion(shown, known) or "remove the tag, or put the value into quotes if '!' belongs to it"
        self._report(UnknownTag, path, f"the tag {shown} is not known here", place=place, hint=hint)

    def _report(
        self, rule: type[TextRule], path: KeyPath, message: str, *, hint: str | None = None, place: Place | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:  # fmt: skip
        self.problems.append(rule.problem(path, message, hint, place=place, related=related))
