"""What symbols of resources and modules mean: ids and names at once, the rest late, outputs of modules on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .expressions import Environment
from .functions import FUNCTIONS, decided, joined
from .parser import Declared
from .place import Place
from .values import EvaluationError, Late, Scope, child_id

if TYPE_CHECKING:
    from .deployment import Deployment

_GROUP = "Microsoft.Resources/resourceGroups"


@dataclass
class Instance:
    """A resource at its place: one of a loop, or the only one."""

    owner: Deployment
    declared: Declared
    at: Environment
    label: str
    parent: Instance | None = None
    kind: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        kind, _, self.version = self.declared.source.partition("@")
        within = self.parent is not None and "/" not in kind
        self.kind = f"{self.parent.kind}/{kind}" if self.parent is not None and within else kind
        if (named := self.declared.body.entry("parent")) is not None:
            self.parent = named.value(self.at)

    @property
    def name(self) -> Any:
        entry = self.declared.body.entry("name")
        if entry is None:
            raise EvaluationError(f"{self.label} has no name")
        return entry.value(self.at)

    @property
    def full_name(self) -> Any:
        if self.parent is None:
            return self.name
        text = f"{self.parent.full_name}/{self.name}"
        return Late(text) if isinstance(self.parent.full_name, Late) or isinstance(self.name, Late) else text

    @property
    def scope_id(self) -> str:
        if self.parent is not None:
            return self.parent.scope_id
        entry = self.declared.body.entry("scope")
        if entry is None:
            return self.owner.scope.id
        scope = entry.value(self.at)
        return str(scope.id) if isinstance(scope, Instance) else scope_of(scope).id

    @property
    def id(self) -> str:
        return child_id(self.scope_id, self.kind, self.full_name)

    def member(self, key: Any) -> Any:
        """What Bicep knows of a resource at once, and what only Azure can tell."""
        if key in ("id", "name"):
            return getattr(self, key)
        if key in ("type", "apiVersion"):
            return self.kind if key == "type" else self.version
        for nested in self.declared.nested:
            if nested.symbol == key:
                return Instance(self.owner, nested, self.at, f"{self.label}::{key}", self)
        return Late(f"{self.label}({self.id}).{key}")


@dataclass
class Module:
    """A module at its place."""

    owner: Deployment
    declared: Declared
    at: Environment
    label: str
    inner: Deployment | None = None

    @property
    def name(self) -> Any:
        entry = self.declared.body.entry("name")
        if entry is not None:
            return entry.value(self.at)
        # What the compiler takes where no name is given.
        return joined(self.declared.symbol, "-", FUNCTIONS["uniqueString"](self.label))

    @property
    def scope(self) -> Scope:
        entry = self.declared.body.entry("scope")
        return self.owner.scope if entry is None else scope_of(entry.value(self.at))

    @property
    def id(self) -> str:
        return child_id(self.scope.id, "Microsoft.Resources/deployments", self.name)

    def deployment(self) -> Deployment:
        """The deployment of the module, made once."""
        if self.inner is None:
            entry = self.declared.body.entry("params")
            given = {} if entry is None else entry.value(self.at)
            self.inner = self.owner.module(self.declared.source, self.scope, given, self.name, f"{self.label}/")
        return self.inner

    def member(self, key: Any) -> Any:
        """Its outputs, name and id."""
        if key in ("id", "name"):
            return getattr(self, key)
        if key != "outputs":
            raise EvaluationError(f"{self.label}: a module has no {key!r}")
        if self.owner.azure.outputs_are_late:
            return Late(f"{self.label}.outputs")
        if self.declared.condition is not None and not decided(self.declared.condition.value(self.at)):
            raise EvaluationError(f"{self.label} is not deployed, so it has no outputs")
        return Outputs(self.deployment())


@dataclass
class Outputs:
    """The outputs of a module, each evaluated when it is asked for."""

    deployment: Deployment

    def member(self, key: Any) -> Any:
        return self.deployment.output(key)


def scope_of(value: Any) -> Scope:
    """Where a module with this `scope` goes."""
    if isinstance(value, Place):
        return value.scope
    if isinstance(value, Instance) and value.kind == _GROUP:
        return Scope(value.owner.scope.subscription, value.name)
    raise EvaluationError(f"not a scope: {value!r}")
