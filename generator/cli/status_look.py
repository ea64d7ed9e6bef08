"""What `cycleforge status` finds out about one deployment: Azure first, then its site: two answers in a row.

A third comes only where nodes have failed and the documented answer does not say why.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..azure.deployment import Seen, content_of
from ..azure.standing import Standing, Unknown, standing
from ..cyclecloud import cluster as clusters
from ..cyclecloud.cluster import Cluster
from ..cyclecloud.reasons import Reason, reasons
from ..cyclecloud.refusals import NotAsked, Refused
from ..cyclecloud.requests import undocumented
from ..cyclecloud.site import Site
from ..cyclecloud.wire import Login
from ..disk.user_cache import user_cache
from ..errors import CannotRead
from ..records import record
from .built import Built
from .status_more import drift_of, spending_of
from .status_ssh import through_ssh

if TYPE_CHECKING:
    from ..azure.drift import Drift
    from ..azure.reader import Reader
    from ..prices.spending import Spending

_UP = ("running", "starting")
"""States of the server in which its site may answer."""
NO_CLUSTER = "the definition has no cluster"


@record
class Look:
    """One deployment at one moment."""

    found: Built
    standing: Standing
    cluster: Cluster | Unknown | None
    """None: there is none to ask about, or nothing is deployed."""
    reasons: tuple[Reason, ...]
    content: str
    """Whether the folder here is what was deployed: `with this folder`, …"""
    site: Unknown | None = None
    """Why the site did not say it itself, where the cluster was seen through ssh."""
    drift: Drift | Unknown | None = None
    """None: not asked for, as `spending`."""
    spending: Spending | Unknown | None = None

    @property
    def has_failed(self) -> bool:
        """Whether anything is known to be wrong."""
        seen, boot = self.standing.record, self.standing.boot
        return (
            seen is None
            or (isinstance(seen, Seen) and seen.state in ("failed", "canceled"))
            or (not isinstance(boot, Unknown) and boot.state == "failed")
            or self.is_down
            or bool(self.reasons)
        )

    @property
    def is_down(self) -> bool:
        """Whether the server is known not to run although it was deployed."""
        server, seen = self.standing.server, self.standing.record
        was_deployed = isinstance(seen, Seen) and seen.state == "done"
        return was_deployed and isinstance(server, str) and server not in _UP

    @property
    def is_partial(self) -> bool:
        """Whether something is not known. That somebody else's server is not asked does not count."""
        parts: list[object] = [self.standing.record, self.cluster, self.drift, self.spending]
        if self.found.plan.server is not None:
            parts += [self.standing.server, self.standing.boot]
        return any(isinstance(each, Unknown) for each in parts)


class Looker:
    """Looks at one deployment again and again, with the connections and the login of the first time."""

    def __init__(
        self, found: Built, reader: Reader, login: Login | Unknown, *, drift: bool = False, cost: bool = False
    ) -> None:
        self._found, self._reader, self._login = found, reader, login
        self._drift, self._cost = drift, cost
        self._site: tuple[tuple[str, str], Site] | None = None

    def look(self) -> Look:
        """Ask everything anew."""
        now = standing(self._found.plan, self._reader)
        seen, site = self._cluster(now), None
        if isinstance(seen, Cluster):
            seen = self._with_messages(seen)
        elif isinstance(seen, Unknown) and self._may_go_through_ssh(now):
            seen, site = self._otherwise(seen)
        failed = seen.failed if isinstance(seen, Cluster) else ()
        why = reasons(failed, self._found.plan.definition_name)
        look = Look(self._found, now, seen, why, self._content(now.record), site)
        if self._drift:
            look = replace(look, drift=drift_of(self._found, self._reader, now.record))
        return replace(look, spending=spending_of(self._found.plan, now, seen)) if self._cost else look

    def _content(self, seen: Seen | Unknown | None) -> str:
        if not isinstance(seen, Seen):
            return ""
        try:
            own = content_of(self._found.folder)
        except OSError:
            return "nothing is built here to compare it with"
        if not seen.content:
            return "with what is not known"
        return "with this folder" if seen.content == own else "with another content than this folder"

    def _cluster(self, now: Standing) -> Cluster | Unknown | None:
        plan, seen = self._found.plan, now.record
        if plan.slurm is None or seen is None:
            return None
        if isinstance(seen, Unknown):
            return Unknown("Azure was not asked where the site is")
        if isinstance(now.server, str) and now.server not in _UP:
            return Unknown(f"the server is {now.server}" if now.server != "none" else "there is no server")
        if plan.server is None:
            return Unknown("its server is not this deployment's, which knows neither its address nor its certificate")
        if isinstance(self._login, Unknown):
            return self._login
        site = self._site_of(seen.outputs)
        if isinstance(site, Unknown):
            return site
        try:
            return clusters.cluster(site, plan.slurm.cluster_name)
        except Refused as refused:
            if refused.is_missing:
                return Unknown(f"the site has no cluster {plan.slurm.cluster_name}: {refused.message}")
            return Unknown(f"the site refused: {refused}")
        except NotAsked as reason:
            return Unknown(reason.reason, reason.hint or self._way())

    @staticmethod
    def _may_go_through_ssh(now: Standing) -> bool:
        """Whether there may be a server that answers; Azure need not have been asked with success."""
        return now.server in _UP or isinstance(now.server, Unknown)

    def _otherwise(self, why: Unknown) -> tuple[Cluster | Unknown, Unknown | None]:
        """The cluster through ssh, and why it is not the site that says it."""
        slurm = self._found.plan.slurm
        seen = through_ssh(self._found, slurm) if slurm is not None else None
        if isinstance(seen, Cluster):
            return seen, why
        if seen is None:
            return why, None
        return Unknown(f"{why.reason}; nor through ssh: {seen.reason}", why.hint or seen.hint), None

    def _way(self) -> str | None:
        if self._found.plan.access.tunnel is not None:
            return f"cycleforge connect {self._found.plan.definition_name} portal opens the tunnel to it"
        return None if self._found.plan.access.is_public else "the site has a private address: connect your VPN"

    def _site_of(self, outputs: Mapping[str, Any]) -> Site | Unknown:
        address, fingerprint = _output(outputs, "portalUrl"), _output(outputs, "serverCertificateSha256")
        if not address or not fingerprint:
            return Unknown(
                "the last deployment gives no address of the site, because it has not ended well",
                f"cycleforge deploy {self._found.plan.definition_name} goes on with it",
            )
        if self._site is None or self._site[0] != (address, fingerprint):
            assert isinstance(self._login, Login)
            parts = urlsplit(address)
            note = _note(fingerprint)
            try:
                site = Site(parts.hostname or "", parts.port or 443, fingerprint, self._login, remembered=note)
            except NotAsked as reason:
                return Unknown(reason.reason, reason.hint)
            self._site = ((address, fingerprint), site)
        return self._site[1]

    def _with_messages(self, seen: Cluster) -> Cluster:
        """The reasons of failed nodes that the documented answer leaves out."""
        if self._site is None or all(node.message for node in seen.failed):
            return seen
        try:
            rows = self._site[1].get(undocumented.nodes(seen.name))
        except (Refused, NotAsked):
            return seen
        said = {node.name: node.message for node in clusters.nodes_of(rows)}
        nodes = tuple(replace(node, message=node.message or said.get(node.name, "")) for node in seen.nodes or ())
        return replace(seen, nodes=nodes)


def login_of(found: Built, *, ask: bool) -> Login | Unknown:
    """The administrator, with the password of the environment, or typed where `ask` says so."""
    plan = found.plan
    variable = next((each.variable for each in plan.secrets if each.parameter == "adminPassword"), "")
    value = os.environ.get(variable, "") if variable else ""
    if value.startswith("/subscriptions/"):
        return Unknown(
            f"{variable} is the id of a secret in a Key Vault, and the site takes only the password itself",
            "export its value, or give --password",
        )
    if not value and ask:
        from getpass import getpass

        value = getpass(f"password of {plan.admin.username} at the site of {plan.name}: ")
    if not value:
        return Unknown(
            "nobody is signed in at the site",
            f"export {variable or 'the password'}, or give --password" if variable else "give --password",
        )
    return Login(plan.admin.username, value)


def _note(fingerprint: str) -> Any:
    """The file that notes when the site refused a login; None where this user has no folder for it."""
    try:
        return user_cache(os.environ) / "refused-logins" / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    except CannotRead:
        return None


def _output(outputs: Mapping[str, Any], name: str) -> str:
    value = outputs.get(name)
    return str(value.get("value") or "") if isinstance(value, Mapping) else ""
