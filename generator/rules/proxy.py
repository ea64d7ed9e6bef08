"""The proxy of server and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site
from .network import host_fault
from .routes import address, address_fault
from .wording import quoted

_PROXY: Path = ("network", "proxy")
_PAGE = "https://learn.microsoft.com/azure/cyclecloud/how-to/running-behind-proxy"
_URL = re.compile(r"http://[A-Za-z0-9.-]+:[0-9]{1,5}/?")
_EXCEPTION = re.compile(r"\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(/[0-9]{1,2})?")


class ProxyUrl(DefinitionRule):
    id = "E0378"
    summary = "The address of the proxy is not one that server and nodes can use."
    why = (
        "It is written into files that every user of a node reads, so it holds no password, and apt, dnf, pip and Java "
        "each want host and port."
    )
    fix = "Write http://HOST:PORT."
    source = _PAGE

    def check(self, site: Site) -> Iterator[Problem]:
        proxy = site.definition.network.proxy
        if proxy is None:
            return
        fault = _fault(site, proxy.url)
        if fault:
            path = (*_PROXY, "url") if isinstance(_written(site), dict) else _PROXY
            yield self.problem(path, f"the proxy {fault}", "http://10.0.1.5:3128")
        for index, text in enumerate(proxy.no_proxy):
            if not _EXCEPTION.fullmatch(text):
                yield self.problem(
                    (*_PROXY, "no_proxy", index),
                    f"{quoted(text)} is not a host, a domain like .example.com or a prefix",
                )


def _written(site: Site) -> object:
    data = site.data
    for key in _PROXY:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _fault(site: Site, url: str) -> str | None:
    """What is wrong with it; a URL that may hold a password is not repeated."""
    if "@" in url:
        return "names a user, and with it a password that everybody could read"
    if not _URL.fullmatch(url):
        return f"{quoted(url)} is not of the form http://HOST:PORT"
    parts = urlsplit(url)
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    if not 0 < port < 65536:
        return f"{quoted(url)} has no port between 1 and 65535"
    host = parts.hostname or ""
    fault = host_fault(host)
    if fault is None and address(host) is not None and site.definition.network.existing is None:
        fault = address_fault(site, host)
    return f"{quoted(url)}: the host {fault}" if fault else None
