"""What Azure's errors mean for a locker, and what to do about them.

Codes: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from ..errors import AzureRefused
from .address import Address
from .client import Stopped
from .credentials import SignIn

READER = "Storage Blob Data Reader"
CONTRIBUTOR = "Storage Blob Data Contributor"
HIERARCHICAL = (
    "has a hierarchical namespace, which CycleCloud's lockers do not support",
    "use a storage account without one: the setting cannot be changed later",
)
"""Source: https://learn.microsoft.com/azure/cyclecloud/common-issues/staging-resources"""


class Refused(AzureRefused):
    """The blob service did not do what was asked. `code` is Azure's word for it, where there is one."""

    def __init__(self, message: str, hint: str | None = None, code: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


@contextmanager
def explained(address: Address, sign_in: SignIn) -> Iterator[None]:
    """Errors of the service and of the way to it leave as Refused, with a fix."""
    try:
        yield
    except (AzureError, Stopped, OSError) as error:
        raise refused(error, address, sign_in) from error


def refused(error: Exception, address: Address, sign_in: SignIn) -> Refused:
    """The problem that an error stands for; what is neither Azure's nor the network's is an answer nobody can read."""
    if isinstance(error, Stopped):
        return Refused(f"{address}: {error}")
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return _answered(error, error.status_code, address, sign_in)
    if isinstance(error, ClientAuthenticationError):
        return Refused(f"{address}: no token: {_first_line(str(error))}", "az login", "NoToken")
    if isinstance(error, AzureError | OSError):
        return _unreachable(error, address)
    return not_azure(HTTPStatus.OK, address)


def code_of(error: HttpResponseError) -> str:
    """Azure's word for a refusal; empty where something else has answered."""
    code = getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


def _answered(error: HttpResponseError, status: int, address: Address, sign_in: SignIn) -> Refused:
    code = code_of(error)
    is_their_side = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS
    explain = _CODES.get(code)
    if explain is not None:
        message, way_out = explain(address, sign_in)
        return Refused(f"{message} ({code})", way_out, code)
    if not code and not is_their_side:
        # Azure gives a code with every refusal.
        return not_azure(status, address)
    said = f"{address} answered {status}" + (f": {_first_line(error.message)} ({code})" if code else "")
    hint = _STATUS[status](address, sign_in)[1] if status in _STATUS else None
    if is_their_side:
        hint = "the cause is in Azure: run the command again in a few minutes"
    return Refused(said, hint, code)


def not_azure(status: int, address: Address) -> Refused:
    """Something else than Azure has answered."""
    return Refused(
        f"{address}: the answer {status} is not one of Azure's blob service",
        "check the address, and what is in between: a proxy (HTTPS_PROXY) or a sign-in page of the network",
        "NotAzure",
    )


def hierarchical(address: Address) -> Refused:
    """Return the problem of an account with which lockers do not work."""
    return Refused(f"{address} {HIERARCHICAL[0]}", HIERARCHICAL[1], "HierarchicalNamespace")


def _unreachable(error: Exception, address: Address) -> Refused:
    text = str(error)
    if "ProxyError" in text:
        return Refused(
            f"{address} cannot be reached through the proxy of HTTPS_PROXY: {_reason(text)}",
            "check the proxy and its user name and password; NO_PROXY names hosts that need no proxy",
            "Proxy",
        )
    if "Name or service not known" in text or "NameResolutionError" in text or "getaddrinfo" in text:
        return Refused(
            f"{address}: the name of the account does not resolve",
            "check the name; an account with a private endpoint resolves only inside its network: run the command on "
            "the CycleCloud server or over the VPN",
            "NoSuchHost",
        )
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return Refused(
            f"{address}: its certificate is not accepted",
            "if a proxy of your site inspects TLS, give its CA file in REQUESTS_CA_BUNDLE",
            "Certificate",
        )
    return Refused(
        f"{address} cannot be reached: {_reason(text)}",
        "check the network, a proxy (HTTPS_PROXY) and the firewall of the account, then run the command again: it "
        "continues where it stopped",
        "Unreachable",
    )


# ---------------------------------------------------------------- what each code means

_Explanation = tuple[str, str]
_Explain = Callable[[Address, SignIn], _Explanation]


def _no_role(address: Address, sign_in: SignIn) -> _Explanation:
    if sign_in.is_sas:
        return (
            f"{address}: {sign_in.described} does not permit this",
            "create one for the container with the permissions racwdl (read, add, create, write, delete, list)",
        )
    if sign_in.way != "login":
        return f"{address}: {sign_in.described} does not permit this", "sign in: az login, and --auth login"
    return (
        f"{address}: {sign_in.described} has no permission here; it needs the role '{CONTRIBUTOR}' "
        f"('{READER}' suffices for ls, verify and pull)",
        _grant(address, sign_in) + "; a new assignment takes up to 10 minutes",
    )


def _grant(address: Address, sign_in: SignIn) -> str:
    who = sign_in.principal
    object_id = who.object_id if who else "$(az ad signed-in-user show --query id --output tsv)"
    return (
        f"az role assignment create --role '{CONTRIBUTOR}' --assignee-object-id {object_id} "
        f"--assignee-principal-type {who.kind if who else 'User'} "
        f"--scope $(az storage account show --name {address.account} --query id --output tsv)"
    )


def _network(address: Address, sign_in: SignIn) -> _Explanation:
    other, way_out = "", ""
    if sign_in.way != "login":
        other = f", or {sign_in.described} is wrong or has expired"
        way_out = "; or get a new one, or sign in: az login, and --auth login"
    return (
        f"{address}: the account does not accept requests from here: its firewall or a private endpoint is in the way"
        + other,
        "run the command inside its network (on the CycleCloud server, over the VPN), or allow your address: "
        f"az storage account network-rule add --account-name {address.account} --ip-address ADDRESS; a change takes "
        f"effect within a minute{way_out}",
    )


def _wrong_secret(address: Address, sign_in: SignIn) -> _Explanation:
    if sign_in.way == "login":
        return (
            f"{address}: the login is not accepted: expired, of another tenant, or the clock of this machine is wrong",
            f"az login --tenant TENANT, with the tenant of the subscription of '{address.account}'",
        )
    return (
        f"{address}: {sign_in.described} is not accepted: wrong, expired or renewed, or this machine's clock is wrong",
        "get a new one, or sign in: az login, and --auth login",
    )


_PLAIN: tuple[tuple[str, str, str], ...] = (
    (
        "KeyBasedAuthenticationNotPermitted PublicAccessNotPermitted",
        "the account accepts no keys, only logins, but got {used}",
        "az login, and --auth login",
    ),
    (
        "ContainerNotFound ResourceNotFound",
        "the account has no container '{container}'",
        "the deployment creates it; otherwise: az storage container create --auth-mode login --account-name {account} "
        "--name {container}",
    ),
    ("ContainerBeingDeleted", "the container is being deleted", "wait until it is gone, and deploy again"),
    ("AccountBeingCreated", "the account is still being created", "run the command again in a minute"),
    (
        "ContainerDisabled AccountIsDisabled",
        "the storage account is disabled",
        "see its subscription: spending limit or payment",
    ),
    (
        "LeaseIdMissing",
        "a file is leased by another program",
        "az storage blob lease break --account-name {account} …",
    ),
    (
        "BlobNotFound ConditionNotMet",
        "another program is changing it at the same time",
        "wait until the other upload or prune has finished, then run the command again",
    ),
    ("Md5Mismatch", "the data that arrived is not what was sent", "run the command again"),
    (
        "BlobImmutableDueToPolicy BlobImmutableDueToLegalHold",
        "an immutability policy of the container forbids the change",
        "use a container without one: versions could be neither fixed nor removed",
    ),
    (
        "AuthorizationProtocolMismatch AccountRequiresHttps",
        "the account, or the SAS token, requires encryption",
        "write https://",
    ),
    (
        "AuthorizationSourceIPMismatch",
        "{used} may be used from certain addresses only, not from here",
        "create one without that limit, or run the command where it is allowed",
    ),
    (
        "InsufficientAccountPermissions",
        "the account as a whole does not permit this now: it is read-only, or a copy in another region",
        "`az storage account show --name {account}` shows its state; its subscription may show why",
    ),
    (
        "KeyVaultEncryptionKeyNotFound KeyVaultAccessTokenCannotBeAcquired",
        "the account is encrypted with your own key, which it cannot read from its key vault",
        "check that the key exists and is enabled, and that the account's identity may use it",
    ),
    (
        "BlobArchived BlobBeingRehydrated",
        "a file is in the archive tier, so nodes cannot read it either",
        "az storage blob set-tier --tier Hot --account-name {account} …, which takes hours; and look for the rule of "
        "the account that archives files (az storage account management-policy show)",
    ),
)
"""Codes with what to say of the container, and the way out, whoever is signed in."""


def _plain(message: str, way_out: str) -> _Explain:
    def explain(address: Address, sign_in: SignIn) -> _Explanation:
        names = {"used": sign_in.described, "account": address.account, "container": address.container}
        return f"{address}: {message.format(**names)}", way_out.format(**names)

    return explain


_BY_WAY: dict[str, _Explain] = {
    "AuthorizationPermissionMismatch AuthorizationServiceMismatch AuthorizationResourceTypeMismatch "
    "UnauthorizedBlobOverwrite": _no_role,
    "AuthorizationFailure": _network,
    "AuthenticationFailed InvalidAuthenticationInfo NoAuthenticationInformation": _wrong_secret,
    "EndpointUnsupportedAccountFeatures BlobApiNotYetSupportedForHierarchicalNamespaceAccounts "
    "BlobOperationNotSupported ResourceTypeMismatch": lambda address, _: (
        f"{address} {HIERARCHICAL[0]}",
        HIERARCHICAL[1],
    ),
}
_CODES: dict[str, _Explain] = {
    code: explain
    for codes, explain in (*_BY_WAY.items(), *((codes, _plain(*texts)) for codes, *texts in _PLAIN))
    for code in codes.split()
}
_STATUS: dict[int, _Explain] = {401: _wrong_secret, 403: _no_role}
"""For codes that we do not know, what to try."""


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _without_urls(lines[0] if lines else "no reason was given").rstrip(".")


def _reason(text: str) -> str:
    """The innermost reason of urllib3's nested texts, which name the request with its signature, too."""
    for mark in ("Connection refused", "Connection reset by peer", "timed out", "Remote end closed connection"):
        if mark.lower() in text.lower():
            return mark.lower()
    inner = _CAUSE.search(text.split("(Caused by ")[-1])
    return _without_urls(inner[1] if inner else (text.splitlines() or ["no reason was given"])[0]).rstrip(".")


_CAUSE = re.compile(r"""[A-Za-z]+(?:Error|Exception)\((?:-?\d+, )?['"]([^'"]+)['"]\)""")
_URL = re.compile(r"(?:[a-z]+://\S+|/\S*\?\S+)")


def _without_urls(text: str) -> str:
    """A SAS token is a part of every address it is sent to, and a proxy's password of the proxy's."""
    return _URL.sub("…", text)
