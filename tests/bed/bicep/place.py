"""Functions whose results depend on where a deployment goes: `subscription()`, `resourceGroup()`, `resourceId()` …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .functions import FUNCTIONS
from .values import EvaluationError, Late, Scope, child_id, is_late

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
_TENANT = "99999999-8888-7777-6666-555555555555"
CLOUDS = {
    "AzureCloud": {"resourceManager": "https://management.azure.com/", "storage": "core.windows.net"},
    "AzureUSGovernment": {
        "resourceManager": "https://management.usgovcloudapi.net/",
        "storage": "core.usgovcloudapi.net",
    },
    "AzureChinaCloud": {"resourceManager": "https://management.chinacloudapi.cn", "storage": "core.chinacloudapi.cn"},
}
"""https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions-deployment#environment"""


@dataclass(frozen=True)
class Azure:
    """Where the deployment goes, and what it consists of."""

    files: Mapping[str, bytes]
    location: str = "southcentralus"
    subscription: str = SUBSCRIPTION
    cloud: str = "AzureCloud"
    outputs_are_late: bool = False


@dataclass
class Place:
    """What `subscription()` and `resourceGroup()` return."""

    scope: Scope
    location: str

    def member(self, key: Any) -> Any:
        values = {
            "id": self.scope.id,
            "subscriptionId": self.scope.subscription,
            "tenantId": _TENANT,
            "location": self.location,
        }
        if self.scope.group is not None:
            values["name"] = self.scope.group
        if key not in values:
            raise EvaluationError(f"{self.scope.id} has no {key!r}")
        return values[key]


class AtPlace:
    """A deployment that knows its scope."""

    azure: Azure
    scope: Scope
    name: str

    def call(self, name: str, arguments: list[Any]) -> Any:
        """A function of Bicep; those that need nothing but their arguments are in functions.py."""
        function: Callable[..., Any] | None = getattr(self, f"_call_{name}", None) or FUNCTIONS.get(name)
        if function is None:
            raise EvaluationError(f"the function {name} is not known")
        return function(*arguments)

    def _call_subscription(self, subscription: str | None = None) -> Place:
        return Place(Scope(subscription or self.scope.subscription), self.azure.location)

    def _call_resourceGroup(self, *names: str) -> Place:  # noqa: N802 - as Bicep calls it
        if not names and self.scope.group is None:
            raise EvaluationError("resourceGroup() in the deployment of a subscription")
        *subscription, group = names or (self.scope.group,)
        return Place(Scope(subscription[0] if subscription else self.scope.subscription, group), self.azure.location)

    def _call_environment(self) -> dict[str, Any]:
        cloud = CLOUDS[self.azure.cloud]
        manager, storage = cloud["resourceManager"], cloud["storage"]
        return {"name": self.azure.cloud, "resourceManager": manager, "suffixes": {"storage": storage}}

    def _call_deployment(self) -> dict[str, Any]:
        return {"name": self.name, "location": self.azure.location}

    def _call_resourceId(self, *parts: str) -> str:  # noqa: N802
        place = next(place for place, part in enumerate(parts) if "/" in part)
        before, kind, names = parts[:place], parts[place], parts[place + 1 :]
        scope = self.scope
        if before:
            scope = Scope(before[0] if len(before) == 2 else scope.subscription, before[-1])
        return self._id(scope.id, kind, names)

    def _call_subscriptionResourceId(self, *parts: str) -> str:  # noqa: N802
        before, rest = (parts[:1], parts[1:]) if "/" not in parts[0] else ((), parts)
        return self._id(Scope(before[0] if before else self.scope.subscription).id, rest[0], rest[1:])

    def _call_extensionResourceId(self, scope: str, kind: str, *names: str) -> str:  # noqa: N802
        return self._id(scope, kind, names)

    @staticmethod
    def _id(scope: str, kind: str, names: tuple[str, ...]) -> str:
        text = child_id(scope, kind, "/".join(names))
        return Late(text) if is_late(list(names)) else text
