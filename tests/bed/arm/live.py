"""A template whose expressions are worked out while it is deployed: `reference()` reads the state.

The language is `tests/bed/bicep`'s; a function that it does not know is refused.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tests.bed.bicep.expressions import Environment, Local
from tests.bed.bicep.functions import decided
from tests.bed.bicep.place import Azure, Place
from tests.bed.bicep.template import _NOT_BODY, Template, evaluated
from tests.bed.bicep.values import EvaluationError, Scope, child_id, is_late

from .exchange import RefusedError
from .state import State

DEPLOYMENT = "Microsoft.Resources/deployments"
_SECURE = ("securestring", "secureobject")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "securestring": str, "int": int, "bool": bool, "object": dict, "secureobject": dict, "array": list,
}  # fmt: skip


def invalid(text: str) -> RefusedError:
    """Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-invalid-template"""
    return RefusedError(400, "InvalidTemplate", f"Deployment template validation failed: '{text}'.")


@dataclass
class Piece:
    """One resource of a template, after its loop and its condition; the rest is worked out when its turn comes."""

    symbol: str
    copy_name: str | None
    raw: Mapping[str, Any]
    at: Environment
    kind: str
    name: str
    id: str
    scope: Scope


@dataclass
class Live(Template):
    """One template at its place, with a state."""

    state: State = field(default_factory=State)
    place: str = ""
    """Location of the deployment itself."""
    _known: dict[str, Any] = field(default_factory=dict)

    # ---- what functions mean while it runs

    def _call_parameters(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = super()._call_parameters(name)
        return self._known[name]

    def _call_variables(self, name: str) -> Any:
        key = f"variable {name}"
        if key not in self._known:
            self._known[key] = super()._call_variables(name)
        return self._known[key]

    def _call_deployment(self) -> dict[str, Any]:
        return {"name": self.name, "location": self.place}

    def _call_resourceGroup(self, *names: str) -> Place:  # noqa: N802 - as templates call it
        place = super()._call_resourceGroup(*names)
        group = self.state.resources.get(place.scope.id.lower())
        return Place(place.scope, group["location"] if group else place.location)

    def _call_reference(self, target: str, *options: str) -> Any:
        resource_id = target if target.startswith("/") else self._symbol(target)
        full = options[1:2] == ("full",) or options[:1] == ("full",)
        found = self.state.deployment_document(resource_id) or self.state.resource(resource_id)
        if found is None:
            raise RefusedError(
                404, "ResourceNotFound", f"The Resource '{resource_id.rpartition('/providers/')[2]}' was not found."
            )
        return found if full else found["properties"]

    @staticmethod
    def _call_shallowMerge(objects: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N802
        return {key: value for each in objects for key, value in each.items()}

    def _symbol(self, symbol: str) -> str:
        raw = self.template["resources"].get(symbol)
        if raw is None:
            raise EvaluationError(f"{self.prefix or 'main'}: reference to {symbol!r}, which is not declared")
        return self.placed(raw, self)[2]

    # ---- what is declared

    def declared(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Symbols and resources; in a template of the first language the place in the list is the symbol."""
        listed = self.template["resources"]
        yield from listed.items() if isinstance(listed, dict) else ((str(i), each) for i, each in enumerate(listed))

    def placed(self, raw: Mapping[str, Any], at: Environment) -> tuple[str, str, str, Scope]:
        """Type, whole name, id and scope of a resource."""
        kind, name, scope = raw["type"], evaluated(raw["name"], at), self.scope
        if "resourceGroup" in raw or "subscriptionId" in raw:
            subscription = evaluated(raw.get("subscriptionId", scope.subscription), at)
            group = evaluated(raw["resourceGroup"], at) if "resourceGroup" in raw else None
            scope = Scope(subscription, group)
        within = evaluated(raw["scope"], at) if "scope" in raw else scope.id
        if not within.startswith("/"):
            within = f"{scope.id}/providers/{within}"
        return kind, name, child_id(within, kind, name), scope

    def pieces(self) -> Iterator[Piece]:
        """Everything that is to be created."""
        for symbol, raw in self.declared():
            if raw.get("existing"):
                continue
            copy = raw.get("copy")
            for index in range(evaluated(copy["count"], self) if copy else 1):
                at = Local(self, {"copyIndex ": index, f"copyIndex {copy['name']}": index} if copy else {})
                if decided(evaluated(raw.get("condition", True), at)):
                    kind, name, resource_id, scope = self.placed(raw, at)
                    label = f"{symbol}[{index}]" if copy else symbol
                    yield Piece(label, copy["name"] if copy else None, raw, at, kind, name, resource_id, scope)

    def nested(self, piece: Piece) -> Live:
        """The template of a nested deployment, with the values that it is given now."""
        fields = piece.raw["properties"]
        if fields.get("expressionEvaluationOptions") != {"scope": "inner"}:
            raise EvaluationError(f"{piece.name} is evaluated with the names of the outer template")
        given = {name: evaluated(one["value"], piece.at) for name, one in fields.get("parameters", {}).items()}
        return type(self).made(self.state, fields["template"], piece.scope, given, piece.name, self.azure.location)

    @classmethod
    def made(cls, state: State, template: Any, scope: Scope, given: dict[str, Any], name: str, location: str) -> Self:
        """A template with checked parameters."""
        if not isinstance(template, dict) or "resources" not in template:
            raise invalid("The template has no resources")
        check_parameters(template, given)
        azure = Azure({}, location, scope.subscription)
        return cls(azure, template, scope, given, name, f"{name}/", {}, state, location)


def check_parameters(template: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Every parameter that is given is declared, every one that has no default is given, and values fit.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-invalid-template
    """
    declared = template.get("parameters", {})
    if unknown := sorted(given.keys() - declared.keys()):
        raise invalid(
            f"The template parameters '{', '.join(unknown)}' in the parameters file are not valid; they are not "
            "present in the original template and can therefore not be provided at deployment time."
        )
    for name, one in declared.items():
        if name not in given:
            if "defaultValue" not in one and not one.get("nullable"):
                raise invalid(f"The value for the template parameter '{name}' is not provided.")
            continue
        value = given[name]
        if is_late(value) or (value is None and one.get("nullable")):
            continue
        wanted = _TYPES.get(one.get("type", "object").lower())
        if wanted is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise invalid(f"Template parameter JToken type is not valid. Expected '{one['type']}' for '{name}'.")
        _within(name, value, one)


def _within(name: str, value: Any, declared: Mapping[str, Any]) -> None:
    size = len(value) if isinstance(value, str | list | dict) else value
    low = declared.get("minLength", declared.get("minValue"))
    high = declared.get("maxLength", declared.get("maxValue"))
    if (low is not None and size < low) or (high is not None and size > high):
        raise invalid(f"The provided value for the template parameter '{name}' is not valid.")
    if "allowedValues" in declared and value not in declared["allowedValues"]:
        raise invalid(f"The provided value for the template parameter '{name}' is not part of the allowed values.")


def shown_parameters(template: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as the record of a deployment shows them: secure ones without value."""
    found = {}
    for name, one in template.get("parameters", {}).items():
        kind = {"securestring": "SecureString", "secureobject": "SecureObject"}.get(
            one.get("type", "object").lower(), one.get("type", "object").capitalize()
        )
        value = given.get(name, one.get("defaultValue"))
        found[name] = {"type": kind} if kind.lower() in _SECURE else {"type": kind, "value": value}
    return found


def body_of(piece: Piece) -> dict[str, Any]:
    """What the provider receives, with every expression worked out and without null."""
    plain = {key: value for key, value in piece.raw.items() if key not in _NOT_BODY}
    return dict(without_null(evaluated(plain, piece.at)))


def without_null(value: Any) -> Any:
    """Properties that are null are as if they were not there."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value
