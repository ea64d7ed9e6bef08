"""Values of an evaluated deployment, and the resources that it consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class EvaluationError(Exception):
    """Syntax, a function or a name that the evaluator does not know, or a value that Azure would refuse."""


class UndecidedError(EvaluationError):
    """A decision depends on a value that exists only while the deployment runs."""


class Late(str):
    """A text that Azure knows only while the deployment runs; it says where from.

    Whatever is made from it is late, too: part of a text, the result of a function, a property.
    """

    __slots__ = ()

    def part(self, path: str) -> Late:
        """A property or an item of it."""
        return Late(f"{self}{path}")


def is_late(value: object) -> bool:
    """Whether a value, or any part of it, is known only while the deployment runs."""
    if isinstance(value, dict):
        return any(is_late(part) for part in value.values())
    if isinstance(value, list):
        return any(is_late(part) for part in value)
    return isinstance(value, Late)


@dataclass(frozen=True)
class Scope:
    """Where a deployment goes: a subscription, or a resource group of it."""

    subscription: str
    group: str | None = None

    @property
    def id(self) -> str:
        path = f"/subscriptions/{self.subscription}"
        text = path if self.group is None else f"{path}/resourceGroups/{self.group}"
        late = isinstance(self.subscription, Late) or isinstance(self.group, Late)
        return Late(text) if late else text


@dataclass(frozen=True)
class Resource:
    """One resource as Azure receives it; modules are resources of the type Microsoft.Resources/deployments."""

    symbol: str
    """Modules and symbolic name, for example `network/securityGroups[2]`."""
    type: str
    api_version: str
    name: str
    """Last part of the name; the rest is in the id."""
    id: str
    scope: str
    """Id of the subscription, the group or, for an extension resource, the resource that it belongs to."""
    body: dict[str, Any] = field(default_factory=dict)
    """location, tags, sku, properties and whatever else was given; null where the text says null."""
    undecided: tuple[str, ...] = ()
    """What only the running deployment knows: `name`, `scope`, `parent`, `condition`, `body`."""
    after: frozenset[str] = frozenset()
    """Symbols of the same file that Azure creates before it: those that it names, and those of `dependsOn`."""

    @property
    def properties(self) -> dict[str, Any]:
        found = self.body.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def tags(self) -> dict[str, str]:
        return dict(self.body.get("tags") or {})

    @property
    def location(self) -> str | None:
        return self.body.get("location")

    @property
    def is_deployment(self) -> bool:
        return self.type == "Microsoft.Resources/deployments"


def child_id(parent: str, kind: str, name: str) -> str:
    """Id of a resource below a scope: `kind` is provider and types, `name` has one part for each type."""
    provider, *types = kind.split("/")
    names = name.split("/")
    if len(types) != len(names):
        raise EvaluationError(f"{kind} has {len(types)} parts, its name {name!r} has {len(names)}")
    if kind == "Microsoft.Resources/resourceGroups":
        text = f"{parent}/resourceGroups/{name}"
    else:
        text = "/".join(
            [parent, "providers", provider, *(part for pair in zip(types, names, strict=True) for part in pair)]
        )
    return Late(text) if isinstance(parent, Late) or isinstance(name, Late) else text
