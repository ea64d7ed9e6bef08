"""The REST interface of one deployment's server: who signs in, the way there, and the certificate that it must show.

A public or private address is asked directly. Behind a Bastion, and on a server that another deployment made, the way
is a forward through ssh, held as long as questions are asked. Nobody is asked for a password on the way.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..azure.standing import Unknown
from ..cyclecloud.refusals import NotAsked
from ..cyclecloud.shell import Unreachable
from ..cyclecloud.site import Site
from ..cyclecloud.wire import Login, Wire
from ..disk.user_cache import user_cache
from ..errors import CannotRead, CycleForgeError
from ..operate.built import Built
from ..plan.parameters import SECRETS
from . import ways, whereabouts

QUIET = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=15")
"""Who looks at ten deployments is not asked for ten passphrases."""
_HERE = "127.0.0.1"
_KNOWN_ONLY = ("-o", "StrictHostKeyChecking=yes")
"""Where no deployment has noted the certificate, ssh's host key is what proves the server; an unknown one gets none."""


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
        """Whether somebody could sign in; nothing is opened for it."""
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
        try:
            site = self._forwarded(fingerprint) if self.is_forwarded else self._direct(address, fingerprint)
        except (NotAsked, Unreachable) as reason:
            return Unknown(reason.reason, reason.hint)
        except CycleForgeError as error:
            return Unknown(error.message, error.hint)
        self._site = ((address, fingerprint), site)
        return site

    def close(self) -> None:
        """End the way; the next question opens another one."""
        self._site = None
        self._way.close()

    def _direct(self, address: str, fingerprint: str) -> Site:
        parts = urlsplit(address)
        return self._signed_in(parts.hostname or "", parts.port or ways.PORTAL_PORT, fingerprint)

    def _forwarded(self, fingerprint: str) -> Site:
        """The port of this machine is another one each time, so nothing rests on its number."""
        whereabouts.path_with_us()
        options = QUIET if fingerprint else (*QUIET, *_KNOWN_ONLY)
        port = self._way.enter_context(ways.forward(self._found, options=options, told=self._told))
        try:
            return self._signed_in(_HERE, port, fingerprint or Wire(_HERE, port, None).shown())
        except BaseException:
            self.close()
            raise

    def _signed_in(self, host: str, port: int, fingerprint: str) -> Site:
        assert isinstance(self._login, Login)
        return Site(host, port, fingerprint, self._login, remembered=_note(fingerprint))


def login_of(found: Built, *, ask: bool) -> Login | Unknown:
    """The administrator, with the password of the environment, or typed where `ask` says so."""
    plan = found.plan
    variable = SECRETS[0]
    value = os.environ.get(variable, "")
    if value.startswith("/subscriptions/"):
        return Unknown(
            f"{variable} is the id of a secret in a Key Vault, and the site takes only the password itself",
            "export its value, or give --password",
        )
    if not value and ask:
        from getpass import getpass

        value = getpass(f"password of {plan.admin.username} at the site of {plan.name}: ")
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
