"""The proxy of server and nodes, and what is never asked through it."""

from __future__ import annotations

from urllib.parse import urlsplit

from .. import catalog
from ..definition.model.definition import Definition
from ..records import record


@record
class ProxyPlan:
    """The proxy of server and nodes."""

    url: str
    host: str
    port: int
    no_proxy: tuple[str, ...]
    """Hosts, domains (`.example.com`) and prefixes that are reached without it, beside the locker."""
    locker_domain: str
    """Of all storage accounts in the cloud; the locker is reached through its private endpoint."""

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Everything that is reached without it."""
        return (*self.no_proxy, self.locker_domain)


def proxy_plan(definition: Definition) -> ProxyPlan | None:
    """The proxy; None without one. Names of the locker lead to its private endpoint, which no proxy has to reach."""
    wanted = definition.network.proxy
    if wanted is None:
        return None
    parts = urlsplit(wanted.url)
    own = () if definition.network.existing is not None else (definition.network.address_space,)
    blob = "." + catalog.cloud(definition.azure.cloud).blob_endpoint
    direct = catalog.egress().direct.addresses
    exceptions = dict.fromkeys(("localhost", "127.0.0.1", *direct, *own, *wanted.no_proxy))
    return ProxyPlan(wanted.url.rstrip("/"), parts.hostname or "", parts.port or 80, tuple(exceptions), blob)
