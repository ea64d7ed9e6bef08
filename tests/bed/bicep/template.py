"""A compiled template, the JSON that Azure Resource Manager takes → the resources that it leads to.

Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/syntax, and from there expressions and copy
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .deployment import PLAUSIBLE
from .expressions import Call, Environment, Lambda, Literal, Local, Member, Name, Node
from .functions import decided
from .place import SUBSCRIPTION, AtPlace, Azure
from .values import EvaluationError, Late, Resource, Scope, child_id

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_$][\w$#]*)|(?P<number>-?\d+)|'(?P<text>(?:[^']|'')*)'|(?P<mark>[()\[\].,]))"
)
_NOT_BODY = {
    "type", "apiVersion", "name", "scope", "dependsOn", "condition", "copy", "resourceGroup", "subscriptionId",
    "existing",
}  # fmt: skip
_DEPLOYMENT = "Microsoft.Resources/deployments"


def resources_of_template(
    template: Mapping[str, Any], parameters: Mapping[str, Any] | None = None, *, location: str = "southcentralus"
) -> list[Resource]:
    """Every resource of a subscription deployment and of the deployments in it."""
    needed = {name for name, one in template["parameters"].items() if "defaultValue" not in one}
    given = {name: value for name, value in PLAUSIBLE.items() if name in needed} | dict(parameters or {})
    main = Template(Azure({}, location), template, Scope(SUBSCRIPTION), given, "main", "")
    return list(main.resources())


# ---- expressions


@cache
def parse_expression(text: str) -> Node:
    """The expression in the brackets."""
    found = []
    place = 0
    while place < len(text.rstrip()):
        token = _TOKEN.match(text, place)
        if token is None:
            raise EvaluationError(f"{text[place : place + 30]!r} is not known in {text!r}")
        found.append((str(token.lastgroup), token[str(token.lastgroup)]))
        place = token.end()
    parser = _Parser([*found, ("end", "")])
    node = parser.expression()
    parser.needs("end", "")
    return node


class _Parser:
    def __init__(self, found: list[tuple[str, str]]) -> None:
        self.tokens, self.place = found, 0

    def takes(self, kind: str, text: str) -> bool:
        seen = self.tokens[self.place] == (kind, text)
        self.place += seen
        return seen

    def needs(self, kind: str, text: str) -> None:
        if not self.takes(kind, text):
            raise EvaluationError(f"{self.tokens[self.place][1]!r} instead of {text or kind!r}")

    def next(self, *kinds: str) -> str:
        kind, text = self.tokens[self.place]
        if kind not in kinds:
            raise EvaluationError(f"{text or kind!r} instead of {' or '.join(kinds)}")
        self.place += 1
        return text

    def expression(self) -> Node:
        kind, _ = self.tokens[self.place]
        if kind == "text":
            node: Node = Literal(self.next("text").replace("''", "'"))
        elif kind == "number":
            node = Literal(int(self.next("number")))
        else:
            node = self.called(self.next("name"))
        while True:
            if self.takes("mark", "."):
                node = Member(node, Literal(self.next("name")))
            elif self.takes("mark", "["):
                node = Member(node, self.expression())
                self.needs("mark", "]")
            else:
                return node

    def called(self, function: str) -> Node:
        arguments: list[Node] = []
        self.needs("mark", "(")
        while not self.takes("mark", ")"):
            arguments.append(self.expression())
            if self.tokens[self.place] != ("mark", ")"):
                self.needs("mark", ",")
        if function in ("true", "false"):
            return Literal(function == "true")
        if function == "lambda":
            return Lambda(tuple(_text(each) for each in arguments[:-1]), arguments[-1])
        if function == "lambdaVariables":
            return Name(_text(arguments[0]))
        if function == "copyIndex":
            return Name(f"copyIndex {_text(arguments[0]) if arguments else ''}")
        return Call(function, tuple(arguments))


def _text(node: Node) -> str:
    if not (isinstance(node, Literal) and isinstance(node.content, str)):
        raise EvaluationError(f"not a text: {node}")
    return node.content


def evaluated(value: Any, at: Environment) -> Any:
    """A value of a template with its expressions, and its `copy` of properties, worked out."""
    if isinstance(value, str):
        if value.startswith("[") and value.endswith("]") and not value.startswith("[["):
            return parse_expression(value[1:-1]).value(at)
        return value.removeprefix("[") if value.startswith("[[") else value
    if isinstance(value, list):
        return [evaluated(item, at) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: evaluated(item, at) for name, item in value.items() if name != "copy" or not isinstance(item, list)}
    for copy in value.get("copy", []) if isinstance(value.get("copy"), list) else []:
        name, count = copy["name"], evaluated(copy["count"], at)
        turns = (Local(at, {f"copyIndex {name}": index, "copyIndex ": index}) for index in range(count))
        found[name] = [evaluated(copy["input"], turn) for turn in turns]
    return found


# ---- deployments


@dataclass
class _Reference:
    """`reference()` of a deployment of this run."""

    deployment: Template

    def member(self, key: Any) -> Any:
        """Its outputs; the rest only Azure knows."""
        if key == "outputs":
            return _Outputs(self.deployment)
        return Late(f"reference({self.deployment.name}).{key}")


@dataclass
class _Outputs:
    deployment: Template

    def member(self, key: Any) -> Any:
        return {"value": evaluated(self.deployment.template["outputs"][key]["value"], self.deployment)}


@dataclass
class Template(AtPlace):
    """One template with its parameters: the environment of its expressions."""

    azure: Azure
    template: Mapping[str, Any]
    scope: Scope
    given: Mapping[str, Any]
    name: str
    prefix: str
    deployments: dict[str, Template] = field(default_factory=dict)
    """Nested deployments that were met, by id."""

    def lookup(self, name: str) -> Any:
        """Only variables of lambdas and loops are names, and those have an environment of their own."""
        raise EvaluationError(f"{name} is not known")

    def _call_parameters(self, name: str) -> Any:
        declared = self.template["parameters"][name]
        if name in self.given:
            return self.given[name]
        if "defaultValue" in declared:
            return evaluated(declared["defaultValue"], self)
        if declared.get("nullable"):
            return None
        raise EvaluationError(f"{self.prefix or 'main'}: the parameter {name} has no value")

    def _call_variables(self, name: str) -> Any:
        return evaluated(self.template["variables"][name], self)

    def _call_reference(self, target: str, *_: str) -> Any:
        if target in self.deployments:
            return _Reference(self.deployments[target])
        return Late(f"reference({target})")

    def resources(self) -> Iterator[Resource]:
        """What is created, nested deployments first themselves and then what is in them."""
        listed = self.template["resources"]
        symbols = listed.items() if isinstance(listed, dict) else ((str(i), each) for i, each in enumerate(listed))
        for symbol, resource in symbols:
            if resource.get("existing"):
                continue
            copy = resource.get("copy")
            count = evaluated(copy["count"], self) if copy else None
            for index in range(1 if count is None else count):
                names = {"copyIndex ": index, f"copyIndex {copy['name']}": index} if copy else {}
                at = Local(self, names)
                if decided(evaluated(resource.get("condition", True), at)):
                    yield from self._resource(f"{symbol}[{index}]" if copy else symbol, resource, at)

    def _resource(self, symbol: str, resource: Mapping[str, Any], at: Environment) -> Iterator[Resource]:
        kind, name = resource["type"], evaluated(resource["name"], at)
        scope = self.scope
        if "resourceGroup" in resource:
            subscription = evaluated(resource.get("subscriptionId", scope.subscription), at)
            scope = Scope(subscription, evaluated(resource["resourceGroup"], at))
        scope_id = evaluated(resource["scope"], at) if "scope" in resource else scope.id
        label = f"{self.prefix}{symbol}"
        within = child_id(scope_id, kind, name)
        plain = {key: value for key, value in resource.items() if key not in _NOT_BODY}
        inner = None
        if kind == _DEPLOYMENT and "template" in plain["properties"]:
            inner = self._nested(label, name, scope, plain["properties"], at)
            self.deployments[within] = inner
            plain["properties"] = {"parameters": plain["properties"].get("parameters", {})}
        body = evaluated(plain, at)
        late = ("name",) if isinstance(name, Late) else ()
        yield Resource(label, kind, resource["apiVersion"], name.split("/")[-1], within, scope_id, body, late)
        if inner is not None:
            yield from inner.resources()

    def _nested(self, label: str, name: str, scope: Scope, properties: Mapping[str, Any], at: Environment) -> Template:
        if properties.get("expressionEvaluationOptions") != {"scope": "inner"}:
            raise EvaluationError(f"{label} is evaluated with the names of the outer template")
        given = {key: evaluated(one["value"], at) for key, one in properties.get("parameters", {}).items()}
        return Template(self.azure, properties["template"], scope, given, name, f"{label}/", self.deployments)
