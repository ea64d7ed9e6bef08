"""What Azure's errors mean for a locker, and what to do about them.

Codes: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)

from generator.errors import AzureRefused
from generator.locker.address import Address
from generator.locker.credentials import SignIn

READER = "Storage Blob Data Reader"
CONTRIBUTOR = "Storage Blob Data Contributor"
HIERARCHICAL = (
    "has a hierarchical namespace, with which CycleCloud's lockers do not work",
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
    """Errors of the SDK leave as Refused, with a way out."""
    try:
        yield
    except AzureError as error:
        raise refused(error, address, sign_in) from error


def refused(error: AzureError, address: Address, sign_in: SignIn) -> Refused:
    """The problem that an error of the SDK stands for."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        code = error_code(error)
        return _answered(error.status_code, code, error, address, sign_in)
    if isinstance(error, ClientAuthenticationError):
        return Refused(f"{address}: no token: {_first_line(error)}", "az login", "NoToken")
    if isinstance(error, ServiceRequestError | ServiceResponseError):
        return _unreachable(error, address)
    text = _first_line(error)
    if "non-TLS" in text or "non-https" in text:
        return Refused(f"{address} is not encrypted, so the login is not sent there", "write https://", "NotEncrypted")
    return Refused(f"{address}: {text}")


def error_code(error: HttpResponseError) -> str:
    """Azure's word for an error; empty where it gave none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _answered(status: int, code: str, error: HttpResponseError, address: Address, sign_in: SignIn) -> Refused:
    explain = _CODES.get(code) or _STATUS.get(status)
    if explain is None:
        said = f"{status} {code}".strip()
        reason = _first_line(error)
        hint = "it is Azure's side: run the command again in a few minutes" if status >= 500 or status == 429 else None
        return Refused(f"{address} answered {said}: {reason}", hint, code)
    message, hint = explain(address, sign_in)
    return Refused(f"{message} ({code or status})", hint, code)


def _unreachable(error: AzureError, address: Address) -> Refused:
    text = str(error)
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
            "if a proxy of your site inspects TLS, name its CA file with REQUESTS_CA_BUNDLE",
            "Certificate",
        )
    return Refused(
        f"{address} cannot be reached: {_reason(text)}",
        "check the network, a proxy (HTTPS_PROXY) and the firewall of the account, then run the command again: it goes "
        "on where it stopped",
        "Unreachable",
    )


# ---------------------------------------------------------------- what each code means

_Explanation = tuple[str, str]


def _no_role(address: Address, sign_in: SignIn) -> _Explanation:
    if sign_in.way in ("sas", "connection-string"):
        return (
            f"{address}: {sign_in.described} does not permit this",
            "make one for the container with the permissions racwdl (read, add, create, write, delete, list)",
        )
    return (
        f"{address}: {sign_in.described} has no permission here; it needs the role '{CONTRIBUTOR}' "
        f"('{READER}' suffices for ls, verify and pull)",
        _grant(address) + "; a new assignment takes up to 10 minutes",
    )


def _grant(address: Address) -> str:
    return (
        f"az role assignment create --role '{CONTRIBUTOR}' --assignee-object-id $(az ad signed-in-user show --query id "
        f"--output tsv) --assignee-principal-type User --scope $(az storage account show --name {address.account} "
        "--query id --output tsv)"
    )


def _network(address: Address, sign_in: SignIn) -> _Explanation:
    return (
        f"{address}: the account does not accept requests from here: its firewall or a private endpoint is in the way"
        + ("" if sign_in.way == "login" else ", or the key or SAS token is wrong"),
        "run the command inside its network (on the CycleCloud server, over the VPN), or let your address in: "
        f"az storage account network-rule add --account-name {address.account} --ip-address ADDRESS; a change takes a "
        "minute",
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


def _no_keys(address: Address, sign_in: SignIn) -> _Explanation:
    return (
        f"{address}: the account accepts no keys, only logins; used was {sign_in.described}",
        "az login, and --auth login",
    )


def _no_container(address: Address, sign_in: SignIn) -> _Explanation:
    return (
        f"{address}: the account has no container '{address.container}'",
        "the deployment makes it; else: az storage container create --auth-mode login "
        f"--account-name {address.account} --name {address.container}",
    )


def _being_deleted(address: Address, sign_in: SignIn) -> _Explanation:
    return f"{address}: the container is being deleted", "wait until it is gone, and deploy again"


def _disabled(address: Address, sign_in: SignIn) -> _Explanation:
    return f"{address}: the storage account is disabled", "see its subscription: spending limit or payment"


def _leased(address: Address, sign_in: SignIn) -> _Explanation:
    return (
        f"{address}: a file is leased by another program",
        f"az storage blob lease break --account-name {address.account} …",
    )


def _immutable(address: Address, sign_in: SignIn) -> _Explanation:
    return (
        f"{address}: an immutability policy of the container forbids the change",
        "use a container without one: versions could be neither repaired nor removed",
    )


def _hierarchical(address: Address, sign_in: SignIn) -> _Explanation:
    return f"{address} {HIERARCHICAL[0]}", HIERARCHICAL[1]


_CODES: dict[str, Callable[[Address, SignIn], _Explanation]] = {
    "AuthorizationPermissionMismatch": _no_role,
    "InsufficientAccountPermissions": _no_role,
    "AuthorizationServiceMismatch": _no_role,
    "AuthorizationResourceTypeMismatch": _no_role,
    "AuthorizationFailure": _network,
    "AuthorizationSourceIPMismatch": _network,
    "AuthenticationFailed": _wrong_secret,
    "InvalidAuthenticationInfo": _wrong_secret,
    "NoAuthenticationInformation": _wrong_secret,
    "KeyBasedAuthenticationNotPermitted": _no_keys,
    "PublicAccessNotPermitted": _no_keys,
    "ContainerNotFound": _no_container,
    "ContainerBeingDeleted": _being_deleted,
    "ContainerDisabled": _disabled,
    "AccountIsDisabled": _disabled,
    "LeaseIdMissing": _leased,
    "BlobImmutableDueToPolicy": _immutable,
    "BlobImmutableDueToLegalHold": _immutable,
    "EndpointUnsupportedAccountFeatures": _hierarchical,
    "BlobApiNotYetSupportedForHierarchicalNamespaceAccounts": _hierarchical,
}
_STATUS: dict[int, Callable[[Address, SignIn], _Explanation]] = {401: _wrong_secret, 403: _no_role}


def _first_line(error: AzureError) -> str:
    lines = [line.strip() for line in str(error.message or error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _reason(text: str) -> str:
    """The innermost reason of urllib3's nested texts."""
    for mark in ("Connection refused", "Connection reset by peer", "timed out", "Remote end closed connection"):
        if mark.lower() in text.lower():
            return mark.lower()
    return text.splitlines()[0].rstrip(".") if text else "no reason was given"
