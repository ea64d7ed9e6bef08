"""How we sign in: what the environment holds for `az storage`, else DefaultAzureCredential.

Variables and their precedence are those of the Azure command line, so that one set of them serves both.
Source: https://learn.microsoft.com/azure/storage/blobs/authorize-data-operations-cli
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential, TokenCredential
from msgspec import Struct

from ..errors import AzureRefused, CannotRead
from ..login import SILENCE_S, claims, name_in, quiet, why_not
from .address import Address, connection_settings, parse

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken

Credential = AzureNamedKeyCredential | AzureSasCredential | TokenCredential
Way = Literal["auto", "login", "key", "sas", "connection-string"]
_SCOPE = "https://storage.azure.com/.default"
_EARLY_S = 300.0
"""So long before its end a token is replaced."""
_SIGNATURE = re.compile(r"(?:^|&)sig=.")
_VARIABLES: tuple[tuple[Way, str], ...] = (
    ("connection-string", "AZURE_STORAGE_CONNECTION_STRING"),
    ("key", "AZURE_STORAGE_KEY"),
    ("sas", "AZURE_STORAGE_SAS_TOKEN"),
)


class Principal(Struct, frozen=True):
    name: str
    object_id: str
    kind: Literal["User", "ServicePrincipal"]
    """As `az role assignment create` calls it."""


class SignIn(Struct, frozen=True):
    way: Way
    described: str
    """For messages: what was used."""
    credential: Credential
    principal: Principal | None = None
    """Who it is, for a login whose token says so."""

    @property
    def is_sas(self) -> bool:
        """Whether it is a shared access signature, from wherever."""
        return isinstance(self.credential, AzureSasCredential)


def sign_in(address: Address, environment: Mapping[str, str], way: Way = "auto") -> SignIn:
    """The credential for an address.

    Raises CannotRead when the environment lacks or garbles what was asked for, AzureRefused when nobody is signed in.
    """
    if way == "auto":
        way = _first(environment)
    if way == "login":
        if address.account_url.startswith("http://"):
            raise CannotRead(
                f"{address} is not encrypted, so a login is not sent there",
                "write https://, or use a key or a SAS token: --auth key, --auth sas",
            )
        return _login()
    variable = dict(_VARIABLES)[way]
    value = environment.get(variable, "").strip()
    if not value:
        raise CannotRead(
            f"--auth {way} needs {variable}, which is not set", f"export {variable}=…, or use --auth login"
        )
    if way == "connection-string":
        return _connection_string(value, address)
    if way == "key":
        return SignIn(way, f"the account key in {variable}", _key(address, value, variable))
    return SignIn(way, f"the SAS token in {variable}", _sas(value, variable))


def _first(environment: Mapping[str, str]) -> Way:
    if environment.get("AZURE_STORAGE_AUTH_MODE", "").lower() == "login":
        return "login"
    return next((way for way, variable in _VARIABLES if environment.get(variable, "").strip()), "login")


def _connection_string(value: str, address: Address) -> SignIn:
    variable = dict(_VARIABLES)["connection-string"]
    settings = connection_settings(value)
    account = settings.get("accountname") or _account_of(settings.get("blobendpoint", ""))
    if account and account != address.account:
        raise CannotRead(
            f"{variable} belongs to the account '{account}', but the locker is {address}",
            "unset it, or name the other locker with --locker",
        )
    if settings.get("accountkey"):
        described = f"the account key in {variable}"
        return SignIn("connection-string", described, _key(address, settings["accountkey"], variable))
    if settings.get("sharedaccesssignature"):
        described = f"the SAS token in {variable}"
        return SignIn("connection-string", described, _sas(settings["sharedaccesssignature"], variable))
    raise CannotRead(f"{variable} has neither AccountKey nor SharedAccessSignature", "copy it again, in quotes")


def _account_of(endpoint: str) -> str:
    try:
        return parse(endpoint).account if endpoint else ""
    except CannotRead:
        return ""


def _key(address: Address, value: str, variable: str) -> AzureNamedKeyCredential:
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        raise CannotRead(
            f"{variable} is not a valid account key: it is not base64", "copy it again, in quotes"
        ) from None
    return AzureNamedKeyCredential(address.account, value)


def _sas(value: str, variable: str) -> AzureSasCredential:
    # People copy the whole URL, too.
    token = value.partition("?")[2] if "?" in value else value
    if not _SIGNATURE.search(token) or not token.isascii() or any(character.isspace() for character in token):
        raise CannotRead(f"{variable} is not a valid SAS token, which contains sv=…&sig=…", "copy it again, in quotes")
    return AzureSasCredential(token)


def _login() -> SignIn:
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential

    quiet()
    try:
        login = _Login(DefaultAzureCredential(read_timeout=SILENCE_S, retry_read=1))
    except (AzureError, ValueError) as error:
        raise AzureRefused(*why_not("Azure", str(error), os.environ)) from error
    principal = _principal(login.first.token)
    name = f" ({principal.name})" if principal else ""
    return SignIn("login", f"the login of DefaultAzureCredential{name}", login, principal)


class _Login:
    """A login whose first token, which says who it is, serves until shortly before its end."""

    def __init__(self, credential: TokenCredential) -> None:
        self._credential = credential
        self.first = credential.get_token(_SCOPE)

    def get_token(self, *scopes: str, tenant_id: str | None = None, **options: Any) -> AccessToken:
        """As azure-core asks for it; another tenant is that of the account, which its refusal has named."""
        if tenant_id is None and time.time() < self.first.expires_on - _EARLY_S:
            return self.first
        return self._credential.get_token(*scopes, tenant_id=tenant_id, **options)


def _principal(token: str) -> Principal | None:
    found = claims(token)
    if found is None:
        return None
    return Principal(name_in(found), str(found["oid"]), "User" if "scp" in found else "ServicePrincipal")
