"""The site of one deployment's server: who signs in, the way there, the certificate that it must show, its answers.

A public or private address is asked directly. Behind a Bastion, and on a server that another deployment made, the way
is a forward through ssh, held as long as questions are asked. Nobody is asked for a password on the way.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from ..azure.standing import Unknown
from ..cyclecloud import cluster as clusters
from ..cyclecloud import requests
from ..cyclecloud.cluster import Cluster
from ..cyclecloud.site import Site
from ..cyclecloud.wire import Login, NotAsked, Refused, Wire
from ..disk.user_cache import user_cache
from ..errors import CannotRead
from ..plan.deployment import Plan
from ..plan.parameters import SECRETS
from . import way
from .built import Built

QUIET = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=15")
"""Who looks at ten deployments is not asked for ten passphrases."""
_HERE = "127.0.0.1"
_KNOWN_ONLY = ("-o", "StrictHostKeyChecking=yes")
"""Where no deployment has noted the certificate, ssh's host key is what proves the server; an unknown one gets none."""
_Answer = TypeVar("_Answer")


class Portal:
    """Opened when it is first asked, and again when it is lost; `close` ends the way to it."""

    def __init__(self, found: Built, login: Login | Unknown, told: Mapping[str, str] | None = None) -> None:
        """`told` is what the ssh of this deployment is told, where the whole command is not about it."""
        self._found, self._login, self._told = found, login, told
        self._site: tuple[tuple[str, str], Site] | None = None
        self._way = ExitStack()

    @property
    def is_forwarded(self) -> bool:
        """Whether only ssh leads there."""
        return self._found.plan.server is None or self._found.plan.access.tunnel is not None

    @property
    def can_ask(self) -> bool:
        """Return True when there is a login; no connection is opened."""
        return not isinstance(self._login, Unknown)

    def site(self, outputs: Mapping[str, Any]) -> Site | Unknown:
        """The site that the outputs of the deployment name. A way that is open is used again."""
        if isinstance(self._login, Unknown):
            return self._login
        plan = self._found.plan
        address, fingerprint = _output(outputs, "portalUrl"), _output(outputs, "serverCertificateSha256")
        if plan.server is not None and not (address and fingerprint):
            return Unknown(
                "the last deployment gives no address of the site, because it has not ended well",
                f"cycleforge deploy {plan.definition_name} goes on with it",
            )
        if self._site is not None and self._site[0] == (address, fingerprint):
            return self._site[1]
        self.close()
        login = self._login
        site = way.known(lambda: self._opened(address, fingerprint, login))
        if not isinstance(site, Unknown):
            self._site = ((address, fingerprint), site)
        return site

    def close(self) -> None:
        """End the way; the next question opens another one."""
        self._site = None
        self._way.close()

    def _opened(self, address: str, fingerprint: str, login: Login) -> Site:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or way.PORTAL_PORT
        if self.is_forwarded:
            way.path_with_us()
            options = QUIET if fingerprint else (*QUIET, *_KNOWN_ONLY)
            forward = way.forward(self._found, options=options, told=self._told)
            # The port of this machine is another one each time, so nothing rests on its number.
            host, port = _HERE, self._way.enter_context(forward)
        try:
            fingerprint = fingerprint or Wire(host, port, None).shown()
            return Site(host, port, fingerprint, login, remembered=_note(fingerprint))
        except BaseException:
            self.close()
            raise


def login_of(plan: Plan, password: str = "") -> Login | Unknown:
    """The administrator, with this password, or that of the environment."""
    variable = SECRETS[0]
    value = password or os.environ.get(variable, "")
    if value.startswith("/subscriptions/"):
        return Unknown(
            f"{variable} is the id of a secret in a Key Vault, and the site takes only the password itself",
            "export its value, or give --password",
        )
    if not value:
        return Unknown("nobody is signed in at the site", f"export {variable}, or give --password")
    return Login(plan.admin.username, value)


def _note(fingerprint: str) -> Path | None:
    """The file that notes when the site refused a login; None where this user has no folder for it."""
    try:
        return user_cache(os.environ) / "refused-logins" / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    except CannotRead:
        return None


def _output(outputs: Mapping[str, Any], name: str) -> str:
    value = outputs.get(name)
    return str(value.get("value") or "") if isinstance(value, Mapping) else ""


# ---------------------------------------------------------------- questions


def seen(
    site: Site | Unknown, name: str, otherwise: Callable[[], Cluster | Unknown | None], hint: str | None = None
) -> tuple[Cluster | Unknown, Unknown | None]:
    """The cluster, and where it is not the site that says it, why. `otherwise`: None where no other way is known."""
    found = site if isinstance(site, Unknown) else asked(lambda: clusters.cluster(site, name), name, hint)
    if isinstance(found, Cluster):
        assert isinstance(site, Site)
        if found.nodes is not None:
            return _with_messages(found, site), None
        other = otherwise()
        return (other, Unknown("the site does not list the nodes")) if isinstance(other, Cluster) else (found, None)
    other = otherwise()
    if isinstance(other, Cluster):
        return other, found
    if other is None or other.reason == found.reason:
        return found, None
    return Unknown(f"{found.reason}; nor through ssh: {other.reason}", found.hint or other.hint), None


def asked(ask: Callable[[], _Answer], name: str, hint: str | None = None) -> _Answer | Unknown:
    """What the site answers of a cluster, or why it does not; `hint` is for a site that is not reached."""
    try:
        return ask()
    except Refused as refused:
        if refused.is_missing:
            return Unknown(f"the site has no cluster {name}: {refused.message}")
        return Unknown(f"the site refused: {refused}")
    except NotAsked as reason:
        return Unknown(reason.reason, reason.hint or hint)


def _with_messages(found: Cluster, site: Site) -> Cluster:
    """The reasons of failed nodes that the documented answer leaves out."""
    if all(node.message for node in found.failed):
        return found
    try:
        rows = site.get(requests.nodes(found.name))
    except (Refused, NotAsked):
        return found
    said = {node.name: node.message for node in clusters.nodes_of(rows)}
    nodes = tuple(replace(node, message=node.message or said.get(node.name, "")) for node in found.listed)
    return replace(found, nodes=nodes)
