"""Bicep files → the template that Azure receives: what the stand-in `bicep` prints.

    template = compiled(Path("output/reference/main.bicep"))

It knows the part of the language that our files use, and refuses the rest. That it writes what the real compiler would
is shown where both are there: tests/arm/test_compiler.py compiles a file of which the real compiler's output is kept.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .emission import Emitter, Symbol, quoted
from .expressions import Call, Literal, Node, Object
from .parser import BicepFile, Declared, Output, Parameter, parse
from .types import AnyOf, ListOf, Named, Nullable, Only, Shape, Type
from .values import EvaluationError

DEPLOYMENT = "Microsoft.Resources/deployments"
DEPLOYMENT_VERSION = "2025-04-01"
_GROUP = "Microsoft.Resources/resourceGroups"
_SCHEMA = "https://schema.management.azure.com/schemas/{}#"
_SCHEMAS = {"resourceGroup": "2019-04-01/deploymentTemplate.json",
            "subscription": "2018-05-01/subscriptionDeploymentTemplate.json"}  # fmt: skip
_LIMITS = {"minLength": "minLength", "maxLength": "maxLength", "minValue": "minValue", "maxValue": "maxValue"}
_OWN = ("name", "parent", "scope", "dependsOn")


def compiled(path: Path) -> dict[str, Any]:
    """The template of a file."""
    try:
        return File(path, parse(path.read_text())).template()
    except EvaluationError as error:
        raise EvaluationError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Resource:
    """A declared resource or module, as expressions name it."""

    file: File
    declared: Declared
    parent: Resource | None = None
    place: str | None = None
    """Its place in its loop, as text."""

    @property
    def key(self) -> str:
        """Its symbolic name in the template."""
        return f"{self.parent.key}::{self.declared.symbol}" if self.parent else self.declared.symbol

    @property
    def above(self) -> Resource | None:
        """The resource that it is part of."""
        named = self.declared.body.entry("parent")
        found = self.file.emitter.symbol(named) if named is not None else self.parent
        assert found is None or isinstance(found, Resource)
        return found

    @property
    def kind(self) -> str:
        if self.declared.is_module:
            return DEPLOYMENT
        kind = self.declared.source.partition("@")[0]
        return f"{self.parent.kind}/{kind}" if self.parent and "/" not in kind else kind

    @property
    def version(self) -> str:
        version = self.declared.source.partition("@")[2]
        return version or (self.parent.version if self.parent else DEPLOYMENT_VERSION)

    def names(self, at: Emitter) -> list[str]:
        """The parts of its name, as text."""
        named = self.declared.body.entry("name")
        if named is None:
            raise EvaluationError(f"{self.key} has no name")
        loop = self.declared.loop
        if loop is not None and self.place is not None:
            at = at.turn(loop, self.place)
        return [*(self.above.names(at) if self.above else []), at.text(named)]

    def id_text(self, at: Emitter) -> str:
        names = ", ".join([quoted(self.kind), *self.names(at)])
        scope = self.scope(at)
        if isinstance(scope, Resource):
            if scope.kind != _GROUP:
                return f"extensionResourceId({scope.id_text(at)}, {names})"
            pattern = quoted("/subscriptions/{0}/resourceGroups/{1}")
            group = f"format({pattern}, subscription().subscriptionId, {scope.names(at)[-1]})"
            return f"extensionResourceId({group}, {names})"
        if isinstance(scope, Call) and scope.function == "resourceGroup":
            return f"resourceId({', '.join([*map(at.text, scope.arguments), names])})"
        at_subscription = self.file.content.target_scope == "subscription" or isinstance(scope, Call)
        return f"{'subscriptionResourceId' if at_subscription else 'resourceId'}({names})"

    def scope(self, at: Emitter) -> Resource | Node | None:
        """Where it is, if not where the file is deployed."""
        above = self.above
        if above is not None:
            return above.scope(at)
        entry = self.declared.body.entry("scope")
        if entry is None:
            return None
        found = at.symbol(entry)
        return found if isinstance(found, Resource) else entry

    def member_text(self, key: str, at: Emitter) -> str:
        if key == "id":
            return self.id_text(at)
        if key == "name":
            return self.names(at)[-1]
        if key in ("type", "apiVersion"):
            return quoted(self.kind if key == "type" else self.version)
        if self.declared.loop is not None:
            raise EvaluationError(f"{self.key} is a loop, and its {key} is known only while it is deployed")
        target = quoted(self.key)
        if key == "outputs" or key == "properties":
            return f"reference({target}).outputs" if key == "outputs" else f"reference({target})"
        return f"reference({target}, {quoted(self.version)}, 'full').{key}"

    def child(self, key: str) -> Symbol | None:
        found = next((each for each in self.declared.nested if each.symbol == key), None)
        return None if found is None else Resource(self.file, found, self)

    def turned(self, place: str) -> Symbol:
        return replace(self, place=place)


@dataclass
class File:
    path: Path
    content: BicepFile
    emitter: Emitter = field(init=False)

    def __post_init__(self) -> None:
        found = self.content
        symbols = {name: Resource(self, one) for name, one in found.declared.items()}
        inlined = frozenset(name for name, node in found.variables.items() if self._names(node) & symbols.keys())
        parameters = frozenset(found.parameters)
        self.emitter = Emitter(parameters, found.variables, inlined, symbols, self._load)

    def _names(self, node: Node) -> set[str]:
        """Names in an expression, those of its variables' expressions included."""
        found: set[str] = set()
        names = node.names()
        while names:
            name = names.pop()
            if name not in found:
                found.add(name)
                if name in self.content.variables:
                    names |= self.content.variables[name].names()
        return found

    def _load(self, function: str, path: str) -> str:
        content = (self.path.parent / path).read_bytes()
        return base64.b64encode(content).decode() if function == "loadFileAsBase64" else content.decode()

    # ---- the template

    def template(self) -> dict[str, Any]:
        found = self.content
        variables = {name: node for name, node in found.variables.items() if name not in self.emitter.inlined}
        return {
            "$schema": _SCHEMA.format(_SCHEMAS[found.target_scope]),
            "languageVersion": "2.0",
            "contentVersion": "1.0.0.0",
            "metadata": {"_generator": {"name": "bicep", "version": "0.46.1.0", "templateHash": "0"}},
            "parameters": {name: self._parameter(one) for name, one in found.parameters.items()},
            "variables": {name: self.emitter.json(node) for name, node in variables.items()},
            "resources": {each.key: self._resource(each) for each in self._all()},
            "outputs": {name: self._output(one) for name, one in found.outputs.items()},
        }

    def _all(self) -> list[Resource]:
        found: list[Resource] = []
        for one in self.content.declared.values():
            found.append(Resource(self, one))
            found += [Resource(self, each, found[-1]) for each in one.nested]
        return found

    def _parameter(self, one: Parameter) -> dict[str, Any]:
        decorators = dict(one.decorators)
        name, nullable = type_name(one.type, self.content.types)
        found: dict[str, Any] = {"type": f"secure{name}" if "secure" in decorators else name}
        if nullable:
            found["nullable"] = True
        if one.default is not None:
            found["defaultValue"] = self.emitter.json(one.default)
        for decorator, arguments in one.decorators:
            if decorator in _LIMITS:
                found[_LIMITS[decorator]] = self.emitter.json(arguments[0])
            elif decorator == "allowed":
                found["allowedValues"] = self.emitter.json(arguments[0])
            elif decorator == "description":
                found["metadata"] = {"description": self.emitter.json(arguments[0])}
            elif decorator != "secure":
                raise EvaluationError(f"the decorator {decorator} is not known")
        return found

    def _output(self, one: Output) -> dict[str, Any]:
        return {"type": type_name(one.type, self.content.types)[0], "value": self.emitter.json(one.content)}

    # ---- resources

    def _resource(self, one: Resource) -> dict[str, Any]:
        declared, at = one.declared, self.emitter
        found: dict[str, Any] = {}
        if declared.loop is not None:
            found["copy"] = {"name": declared.symbol, "count": f"[length({at.text(declared.loop.values)})]"}
            at = at.turn(declared.loop, "copyIndex()")
        if declared.existing:
            found["existing"] = True
        if declared.condition is not None:
            found["condition"] = f"[{at.text(declared.condition)}]"
        names = one.names(at)
        pattern = "/".join(f"{{{place}}}" for place in range(len(names)))
        name = f"[format({', '.join([quoted(pattern), *names])})]" if len(names) > 1 else at.json(_name_of(declared))
        found |= {"type": one.kind, "apiVersion": one.version, "name": name}
        found |= self._scope(one, at)
        found |= self._module(declared, at) if declared.is_module else self._body(declared, at)
        depends = sorted(self._before(one))
        return found | ({"dependsOn": depends} if depends and not declared.existing else {})

    def _scope(self, one: Resource, at: Emitter) -> dict[str, Any]:
        scope = one.scope(at)
        if isinstance(scope, Resource):
            if scope.kind == _GROUP:
                return {"resourceGroup": f"[{scope.names(at)[-1]}]"}
            return {"scope": f"[{scope.id_text(at)}]"}
        if isinstance(scope, Call) and scope.function == "resourceGroup":
            *subscription, group = [f"[{at.text(each)}]" for each in scope.arguments]
            return {"resourceGroup": group} | ({"subscriptionId": subscription[0]} if subscription else {})
        if scope is not None:
            raise EvaluationError(f"the scope of {one.key} is not known")
        if one.declared.is_module and self.content.target_scope == "subscription":
            return {"location": "[deployment().location]"}
        return {}

    def _body(self, declared: Declared, at: Emitter) -> dict[str, Any]:
        found = at.json(declared.body.without(*_OWN))
        return dict(found)

    def _module(self, declared: Declared, at: Emitter) -> dict[str, Any]:
        given = declared.body.entry("params") or Object(())
        if not isinstance(given, Object):
            raise EvaluationError(f"{declared.symbol} does not list its parameters")
        entries = ((key, value) for key, value in given.entries if isinstance(key, Literal))
        parameters = {str(key.content): {"value": at.json(value)} for key, value in entries}
        inner = compiled(self.path.parent / declared.source)
        fields = {"expressionEvaluationOptions": {"scope": "inner"}, "mode": "Incremental"}
        return {"properties": fields | {"parameters": parameters, "template": inner}}

    def _before(self, one: Resource) -> set[str]:
        """Symbols that must be there before: all that it names, by way of variables and existing resources, too."""
        declared = one.declared
        nodes: list[Node] = [declared.body]
        if declared.condition is not None:
            nodes.append(declared.condition)
        if declared.loop is not None:
            nodes.append(declared.loop.values)
        found: set[str] = set()
        names = set().union(*(self._names(node) for node in nodes))
        while names:
            name = names.pop()
            other = self.content.declared.get(name)
            if other is None or name == declared.symbol or name in found:
                continue
            if other.existing:
                names |= self._names(other.body) - {name}
            else:
                found.add(name)
        return found


def _name_of(declared: Declared) -> Node:
    found = declared.body.entry("name")
    assert found is not None
    return found


def type_name(kind: Type, types: Mapping[str, Type]) -> tuple[str, bool]:
    """The type of a template, and whether null is one of its values."""
    if isinstance(kind, Nullable):
        return type_name(kind.inner, types)[0], True
    if isinstance(kind, Named):
        return type_name(types[kind.name], types) if kind.name in types else (kind.name, False)
    if isinstance(kind, ListOf):
        return "array", False
    if isinstance(kind, Shape):
        return "object", False
    if isinstance(kind, Only):
        return {str: "string", int: "int", bool: "bool"}[type(kind.content)], False
    if isinstance(kind, AnyOf):
        found = [type_name(each, types) for each in kind.options]
        return found[0][0], any(nullable for _, nullable in found)
    raise EvaluationError(f"the type {kind} is not known")
