"""A rendered deployment folder → the resources that Azure would receive.

    resources = resources_of(folder)                       # or the mapping of rendered files
    groups = [each for each in resources if each.type == "Microsoft.Network/networkSecurityGroups"]

Parameters that have no default get a plausible value; `parameters` gives others. What Azure knows only while the
deployment runs is a `Late` text (principal ids, addresses). With `outputs_are_late` every output of a module is one, as
for `az deployment what-if`, which runs nothing; `Resource.undecided` then says what could not be told.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from generator.files.file import File
from tests.bed.plans import KEY

from .expressions import Environment, Node, Object
from .functions import decided
from .instances import Instance, Module
from .parser import BicepFile, Declared, Decorators, parse
from .place import SUBSCRIPTION, AtPlace, Azure
from .types import Type
from .values import EvaluationError, Late, Resource, Scope, UndecidedError

PLAUSIBLE: dict[str, Any] = {
    "adminPassword": "Plausible-Passw0rd",
    "databasePassword": "Plausible-Passw0rd",
    "sshPublicKey": KEY,
    "hubVnetId": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub-rg/providers/Microsoft.Network/virtualNetworks/hub",
}
"""Parameters of main.bicep that have no default."""
_LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "allowed": lambda value, limit: value in limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "maxValue": lambda value, limit: value <= limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "minValue": lambda value, limit: value >= limit,
}
_NOT_BODY = ("name", "parent", "scope", "dependsOn")


def resources_of(
    folder: Path | Mapping[PurePosixPath, File],
    parameters: Mapping[str, Any] | None = None,
    *,
    location: str = "southcentralus",
    cloud: str = "AzureCloud",
    outputs_are_late: bool = False,
) -> list[Resource]:
    """Every resource of `main.bicep` and its modules, modules included, in the order of the text."""
    azure = Azure(_contents(folder), location, cloud=cloud, outputs_are_late=outputs_are_late)
    file = _parsed(azure, "main.bicep")
    given = {
        name: PLAUSIBLE[name] for name, one in file.parameters.items() if one.default is None and name in PLAUSIBLE
    }
    scope = Scope(azure.subscription)
    main = Deployment(azure, "main.bicep", file, scope, given | dict(parameters or {}), "main", "")
    found = list(main.resources())
    main.check_outputs()
    return found


def _contents(folder: Path | Mapping[PurePosixPath, File]) -> dict[str, bytes]:
    if isinstance(folder, Path):
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.relative_to(folder).parts[0] not in ("projects", "jobs")
        }
    return {str(path): file.content for path, file in folder.items()}


def _parsed(azure: Azure, path: str) -> BicepFile:
    if path not in azure.files:
        raise EvaluationError(f"there is no file {path}")
    try:
        return parse(azure.files[path].decode())
    except EvaluationError as error:
        raise EvaluationError(f"{path}: {error}") from None


@dataclass
class Deployment(AtPlace):
    """One Bicep file with its parameters: the environment of its expressions."""

    azure: Azure
    path: str
    file: BicepFile
    scope: Scope
    given: Mapping[str, Any]
    name: str
    prefix: str
    _known: dict[str, Any] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        at = "subscription" if self.scope.group is None else "resourceGroup"
        if self.file.target_scope != at:
            raise EvaluationError(f"{self.path} is for a {self.file.target_scope}, and goes to a {at}")
        if unknown := self.given.keys() - self.file.parameters.keys():
            raise EvaluationError(f"{self.path} has no parameter {', '.join(sorted(unknown))}")
        for name in self.file.parameters:
            self.lookup(name)

    # ---- names

    def lookup(self, name: str) -> Any:
        """A parameter, a variable, a resource or a module."""
        if name not in self._known:
            if name in self._busy:
                raise EvaluationError(f"{self.path}: {name} depends on itself")
            self._busy.add(name)
            self._known[name] = self._found(name)
            self._busy.remove(name)
        return self._known[name]

    def _found(self, name: str) -> Any:
        if name in self.file.parameters:
            return self._parameter(name)
        if name in self.file.variables:
            return self.file.variables[name].value(self)
        if name in self.file.declared:
            one = self.file.declared[name]
            if one.loop is None:
                return self._instance(one, self, "")
            return [self._instance(one, turn, f"[{place}]") for place, turn in enumerate(one.loop.turns(self))]
        raise EvaluationError(f"{self.path}: {name} is not known")

    def _parameter(self, name: str) -> Any:
        parameter = self.file.parameters[name]
        if name in self.given:
            value = self.given[name]
        elif parameter.default is not None:
            value = parameter.default.value(self)
        elif parameter.type.refusal(None, self.file.types) is None:
            value = None
        else:
            raise EvaluationError(f"{self.path}: the parameter {name} has no value")
        self._check(f"the parameter {name}", parameter.type, value)
        if value is not None and not isinstance(value, Late):
            self._limits(name, value, parameter.decorators)
        return value

    def _check(self, what: str, kind: Type, value: Any) -> None:
        if refusal := kind.refusal(value, self.file.types):
            raise EvaluationError(f"{self.path}: {what}: {refusal}")

    def _limits(self, name: str, value: Any, decorators: Decorators) -> None:
        for decorator, arguments in decorators:
            if decorator in ("description", "secure", "metadata"):
                continue
            if decorator not in _LIMITS:
                raise EvaluationError(f"{self.path}: the decorator {decorator} is not known")
            limit = arguments[0].value(self)
            if not _LIMITS[decorator](value, limit):
                raise EvaluationError(f"{self.path}: the parameter {name} is {value!r}, {decorator} is {limit}")

    def module(self, source: str, scope: Scope, given: Mapping[str, Any], name: str, prefix: str) -> Deployment:
        """The deployment of a module of this file."""
        path = str(PurePosixPath(self.path).parent / source)
        return Deployment(self.azure, path, _parsed(self.azure, path), scope, given, name, prefix)

    def _instance(self, one: Declared, at: Environment, place: str) -> Instance | Module:
        label = f"{self.prefix}{one.symbol}{place}"
        return Module(self, one, at, label) if one.is_module else Instance(self, one, at, label)

    def output(self, name: str) -> Any:
        if name not in self.file.outputs:
            raise EvaluationError(f"{self.path} has no output {name}")
        key = f"output {name}"
        if key not in self._known:
            found = self.file.outputs[name]
            value = found.content.value(self)
            self._check(key, found.type, value)
            self._known[key] = value
        return self._known[key]

    def check_outputs(self) -> None:
        for name in self.file.outputs:
            self.output(name)

    # ---- files that the text loads

    def _file(self, path: str) -> bytes:
        parts: list[str] = []
        for part in (PurePosixPath(self.path).parent / path).parts:
            if part == "..":
                parts.pop()
            else:
                parts.append(part)
        found = "/".join(parts)
        if found not in self.azure.files:
            raise EvaluationError(f"{self.path}: there is no file {found}")
        return self.azure.files[found]

    def _call_loadTextContent(self, path: str) -> str:  # noqa: N802
        return self._file(path).decode()

    def _call_loadFileAsBase64(self, path: str) -> str:  # noqa: N802
        return base64.b64encode(self._file(path)).decode()

    def _call_loadJsonContent(self, path: str) -> Any:  # noqa: N802
        return json.loads(self._file(path))

    # ---- resources

    def resources(self) -> Iterator[Resource]:
        """What is created, children and modules included."""
        for symbol, one in self.file.declared.items():
            if one.existing:
                yield from self._children(self.lookup(symbol))
                continue
            found = self.lookup(symbol)
            for instance in found if isinstance(found, list) else [found]:
                present, undecided = self._present(one.condition, instance.at)
                if not present:
                    continue
                yield from self._module(instance, undecided) if one.is_module else self._resource(instance, undecided)

    def _present(self, condition: Node | None, at: Environment) -> tuple[bool, tuple[str, ...]]:
        try:
            return condition is None or decided(condition.value(at)), ()
        except UndecidedError:
            if not self.azure.outputs_are_late:
                raise
            return True, ("condition",)

    def _children(self, instance: Instance) -> Iterator[Resource]:
        for nested in instance.declared.nested:
            if not nested.existing:
                yield from self._resource(instance.member(nested.symbol), ())

    def _resource(self, instance: Instance, undecided: tuple[str, ...]) -> Iterator[Resource]:
        try:
            body = instance.declared.body.without(*_NOT_BODY).value(instance.at)
        except UndecidedError:
            if not self.azure.outputs_are_late:
                raise
            body, undecided = {}, (*undecided, "body")
        found = Resource(
            instance.label,
            instance.kind,
            instance.version,
            instance.name,
            instance.id,
            instance.scope_id,
            body,
            undecided,
            self._before(instance.declared.body),
        )
        yield _with_undecided(found)
        yield from self._children(instance)

    def _module(self, module: Module, undecided: tuple[str, ...]) -> Iterator[Resource]:
        inner = module.deployment()
        parameters = {name: {"value": inner.lookup(name)} for name in inner.file.parameters}
        yield _with_undecided(
            Resource(
                module.label,
                "Microsoft.Resources/deployments",
                "",
                module.name,
                module.id,
                module.scope.id,
                {"properties": {"parameters": parameters}},
                undecided,
                self._before(module.declared.body),
            )
        )
        yield from (replace(each, undecided=(*each.undecided, *undecided)) for each in inner.resources())
        inner.check_outputs()

    def _before(self, body: Object) -> frozenset[str]:
        """Symbols that the body names, also by way of variables and of resources that exist."""
        found: set[str] = set()
        names = body.names()
        while names:
            name = names.pop()
            if name in found:
                continue
            if name in self.file.variables:
                names |= self.file.variables[name].names() - {name}
            elif name in self.file.declared:
                found.add(name)
                if self.file.declared[name].existing:
                    names |= self.file.declared[name].body.names()
        return frozenset(found)


def _with_undecided(resource: Resource) -> Resource:
    late = [what for what, value in (("name", resource.name), ("scope", resource.scope)) if isinstance(value, Late)]
    if isinstance(resource.id, Late) and not late:
        late = ["parent"]
    return replace(resource, undecided=(*resource.undecided, *late))
