"""Where a cloud's resource manager and its sign-in are: from the catalogue, or from ARM_CLOUD_METADATA_URL.

The variable is that of the Azure command line and names a list of clouds; it is for clouds that nobody publishes.
Source: https://learn.microsoft.com/cli/azure/use-azure-cli-successfully-quickstart and `retrieve_arm_cloud_metadata` in
https://github.com/Azure/azure-cli/blob/dev/src/azure-cli-core/azure/cli/core/cloud.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from .. import catalog
from .refusals import NotAsked

METADATA = "ARM_CLOUD_METADATA_URL"
AUTHORITY = "AZURE_AUTHORITY_HOST"
_WAIT_S = 10.0


class Cloud(Struct, frozen=True):
    """One cloud: addresses without a slash at the end."""

    name: str
    """As the Azure command line calls it, for example AzureCloud."""
    resource_manager: str
    authority: str
    is_published: bool
    """Return True when Microsoft's service knows the login of this cloud; False for one of ARM_CLOUD_METADATA_URL."""

    @property
    def scope(self) -> str:
        """What a token must be for."""
        return f"{self.resource_manager}/.default"

    @property
    def host(self) -> str:
        """Name and port of the resource manager."""
        return urlsplit(self.resource_manager).netloc


def cloud_of(name: str, environment: Mapping[str, str]) -> Cloud:
    """The cloud that a plan is for; raises NotAsked where the metadata endpoint gives no such cloud."""
    row = catalog.cloud(name)
    manager, authority, is_published = row.resource_manager, row.authority, True
    if environment.get(METADATA):
        manager, authority = _endpoints(environment[METADATA], row.az_cli)
        is_published = False
    authority = _secure(environment.get(AUTHORITY) or authority, AUTHORITY)
    return Cloud(row.az_cli, manager, authority, is_published)


def _endpoints(url: str, wanted: str) -> tuple[str, str]:
    """Resource manager and authority of a cloud in the list at an address."""
    clouds = [each for each in _list(url) if isinstance(each, dict)]
    found = next((each for each in clouds if each.get("name") == wanted), clouds[0] if len(clouds) == 1 else None)
    login = (found or {}).get("authentication")
    endpoint = login.get("loginEndpoint") if isinstance(login, dict) else None
    if found is None or not endpoint or not found.get("resourceManager"):
        raise NotAsked(f"{METADATA} names no endpoints of {wanted}", f"unset {METADATA} for a published cloud")
    return _secure(str(found["resourceManager"]), METADATA), _secure(str(endpoint), METADATA)


def _list(url: str) -> list[Any]:
    import requests

    _secure(url, METADATA)
    try:
        answer = requests.get(url, timeout=_WAIT_S, allow_redirects=False)
        answer.raise_for_status()
        content = answer.json()
    except (requests.RequestException, ValueError) as error:
        reason = f"the clouds of {METADATA} ({urlsplit(url).netloc}) cannot be read: {type(error).__name__}"
        raise NotAsked(reason, f"unset {METADATA} for a published cloud") from None
    return content if isinstance(content, list) else [content]


def _secure(url: str, variable: str) -> str:
    """An address to which a token may be sent; AZURE_AUTHORITY_HOST is often a bare host name."""
    address = url.strip().rstrip("/")
    if "://" not in address:
        address = f"https://{address}"
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.hostname or parts.username:
        raise NotAsked(f"{variable} gives an address that is not https://HOST", f"unset {variable}, or correct it")
    return address
