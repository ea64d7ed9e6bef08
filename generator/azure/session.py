"""Signs in: who asks, in which cloud, about which subscription, and what Azure wants of a login.

The credential is DefaultAzureCredential, so `az login`, a managed identity and the variables of a pipeline all serve.
Azure answers 401 with a challenge where it wants more of a login, such as multi-factor authentication (MFA); a service
principal and a managed identity never get one. Since October 2025 every user needs MFA to create, change or delete.
Sources: https://learn.microsoft.com/azure/developer/python/sdk/authentication/credential-chains,
https://learn.microsoft.com/entra/identity/authentication/concept-mandatory-multifactor-authentication,
https://learn.microsoft.com/entra/identity-platform/claims-challenge, and https://github.com/Azure/azure-cli/pull/31699
for the line of `az`.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import threading
import time
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..errors import CannotRead
from ..login import INSTALL, SILENCE_S, has_az, name_in, quiet, why_not
from ..login import claims as claims_in
from .clouds import Cloud
from .refusals import NotAsked

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential


PROGRAM_S = 30
"""`az account get-access-token` takes seconds, and much longer when it waits for an answer."""
_EARLY_S = 300
"""A token is not used in its last minutes."""
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Who(Struct, frozen=True):
    """Whom a token is for."""

    name: str
    object_id: str
    tenant: str
    groups: tuple[str, ...] | None
    """Ids of the groups that the token names; None where it names none, which does not mean that there are none."""
    lacks_mfa: bool = False
    """A user who has signed in without multi-factor authentication."""


class Session:
    """A credential, a cloud and a subscription. The token stays in here and in the header of requests."""

    def __init__(self, cloud: Cloud, credential: TokenCredential, subscription: str) -> None:
        self.cloud, self.subscription = cloud, subscription
        self._credential = credential
        self._lock = threading.Lock()
        self._token: AccessToken | None = None

    def __repr__(self) -> str:
        return f"Session({self.cloud.name}, {self.subscription})"

    def get_token(self, *scopes: str, claims: str | None = None, **_: Any) -> AccessToken:
        """A token for the resource manager, kept until shortly before it ends; raises NotAsked.

        The signature is that of azure-core's TokenCredential. `claims` is a challenge, which needs another token.
        """
        from azure.core.exceptions import AzureError

        with self._lock:
            if claims is None and self._token is not None and self._token.expires_on - _EARLY_S > time.time():
                return self._token
            try:
                self._token = self._credential.get_token(*(scopes or (self.cloud.scope,)), claims=claims)
            except (AzureError, ValueError) as error:
                if claims is not None:
                    raise self.unmet(claims) from None
                raise NotAsked(*why_not(self.cloud.name, str(error), os.environ)) from None
            return self._token

    def unmet(self, claims: str) -> NotAsked:
        """Return what to say where the login does not have the claims that Azure asks for."""
        who = None if self._token is None else _who(self._token.token)
        return unmet(claims, who.tenant if who else None)

    def who(self) -> Who | None:
        """Whom the token is for, where it says so."""
        return _who(self.get_token().token)


def sign_in(cloud: Cloud, subscription: str) -> Session:
    """A session with DefaultAzureCredential. Nobody is asked for a token yet."""
    from azure.identity import DefaultAzureCredential

    quiet()
    credential = DefaultAzureCredential(
        authority=cloud.authority,
        read_timeout=SILENCE_S,
        retry_read=1,
        process_timeout=PROGRAM_S,
        disable_instance_discovery=not cloud.is_published,
    )
    return Session(cloud, credential, subscription)


def subscription_of(flag: str | None, definition: str | None, environment: Mapping[str, str]) -> str:
    """The subscription that is meant: the flag, the definition, AZURE_SUBSCRIPTION_ID, what `az account set` chose."""
    if flag and definition and flag.casefold() != definition.casefold():
        raise CannotRead(
            f"--subscription {flag} differs from the definition's, {definition}", "omit the flag, or change one of them"
        )
    found = flag or definition or environment.get("AZURE_SUBSCRIPTION_ID", "").strip() or _chosen(environment)
    if not found:
        raise CannotRead("no subscription is chosen", _how_to_choose(environment))
    if not _GUID.fullmatch(found):
        raise CannotRead(f"'{found}' is not the id of a subscription", "az account list --output table shows the ids")
    return found.lower()


def _how_to_choose(environment: Mapping[str, str]) -> str:
    """What fits who has az, or is signed in with it: `az account set` is for those alone."""
    if not has_az(environment):
        return f"{INSTALL}, then `az login`; or write azure.subscription_id, or give --subscription"
    if not (az_folder(environment) / "azureProfile.json").is_file():
        return "`az login`; or write azure.subscription_id, or give --subscription"
    return "write azure.subscription_id, give --subscription, or type: az account set --subscription ID"


def az_folder(environment: Mapping[str, str]) -> Path:
    """Where the Azure command line keeps what it was told. Source: https://learn.microsoft.com/cli/azure/azure-cli-configuration"""
    return Path(environment.get("AZURE_CONFIG_DIR") or Path(environment.get("HOME") or Path.home()) / ".azure")


def cloud_of_az(environment: Mapping[str, str]) -> str:
    """The cloud that the Azure command line signs in to, as `az cloud set` keeps it.

    Source: `CLOUD_CONFIG_FILE` and `[cloud] name` in
    https://github.com/Azure/azure-cli/blob/dev/src/azure-cli-core/azure/cli/core/cloud.py
    """
    config = ConfigParser(interpolation=None)
    try:
        config.read(az_folder(environment) / "config", encoding="utf-8")
    except (ConfigError, UnicodeDecodeError):
        return "AzureCloud"
    return environment.get("AZURE_CLOUD_NAME") or str(config.get("cloud", "name", fallback="AzureCloud"))


def _chosen(environment: Mapping[str, str]) -> str:
    """The default subscription of the Azure command line; it writes its profile with a byte order mark."""
    try:
        profile = json.loads((az_folder(environment) / "azureProfile.json").read_text(encoding="utf-8-sig"))
        return next(str(each["id"]) for each in profile["subscriptions"] if each.get("isDefault"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return ""


def _who(token: str) -> Who | None:
    found = claims_in(token)
    if found is None or "tid" not in found:
        return None
    groups = found.get("groups")
    known = tuple(map(str, groups)) if isinstance(groups, list) else None
    return Who(name_in(found), str(found["oid"]), str(found["tid"]), known, _lacks_mfa(found))


def _lacks_mfa(found: Mapping[str, Any]) -> bool:
    """Source: https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference (idtyp, scp, amr)"""
    is_user = found["idtyp"] != "app" if "idtyp" in found else "scp" in found
    methods = found.get("amr")
    return is_user and not (isinstance(methods, list) and "mfa" in methods)


_MARK = "insufficient_claims"
_CLAIMS = re.compile(r'\bclaims="([A-Za-z0-9+/_=-]{1,4000})"')


def claims_of(header: str) -> str | None:
    """Return the claims that a `WWW-Authenticate` asks for, as JSON; None where it is no such challenge."""
    found = _CLAIMS.search(header) if _MARK in header else None
    if found is None:
        return None
    text = found[1].replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def unmet(claims: str, tenant: str | None) -> NotAsked:
    """Return what to say of a login that does not have them; `tenant` is that of the login."""
    asked = base64.b64encode(claims.encode()).decode()
    line = f"az login {f'--tenant {quote(tenant)} ' if tenant else ''}--claims-challenge {quote(asked)}"
    hint = f"{line} (Azure CLI 2.76 or later), then run the command again"
    if not _wants_context(claims):
        return NotAsked("Azure no longer accepts this login", hint)
    return NotAsked(
        "Azure requires multi-factor authentication (MFA) for this, and this login has none",
        f"{hint}; a service principal or a managed identity needs no MFA",
    )


def _wants_context(claims: str) -> bool:
    """`acrs` asks for an authentication context, which is how Azure asks for MFA; `nbf` for a newer token."""
    try:
        return "acrs" in json.loads(claims)["access_token"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
