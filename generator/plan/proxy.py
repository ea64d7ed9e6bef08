"""The proxy of server and nodes, and what is never asked through it."""

from __future__ import annotations

from urllib.parse import urlsplit

from .. import catalog
from ..definition.model.definition import Definition
from .types import ProxyPlan


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
