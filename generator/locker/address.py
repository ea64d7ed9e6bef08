"""Which container is the locker."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from ..errors import CannotRead

VARIABLE = "CYCLEFORGE_LOCKER"
DEFAULT_CONTAINER = "cyclecloud"
_PUBLIC_SUFFIX = "blob.core.windows.net"
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
"""Source: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata"""
_FORMS = "az://ACCOUNT/CONTAINER, or https://ACCOUNT.blob.core.windows.net/CONTAINER"
_SECRET = re.compile(r"[?;]|(?:sig|accountkey|sharedaccesssignature)=", re.IGNORECASE)
"""What a SAS URL or a connection string has, and no address."""


class Address(Struct, frozen=True):
    """A container; `account_url` has neither a path of its own (but for emulators) nor a query."""

    account_url: str
    account: str
    container: str

    def __str__(self) -> str:
        if self.account_url == f"https://{self.account}.{_PUBLIC_SUFFIX}":
            return f"az://{self.account}/{self.container}"
        return f"{self.account_url}/{self.container}"


def parse(word: str) -> Address:
    """An address as people write it; raises CannotRead."""
    word = word.strip()
    try:
        parts = urlsplit(word if "://" in word else f"az://{word}")
        port = parts.port
    except ValueError:
        _no_secret(word)
        raise CannotRead(f"'{word}' is not a valid locker address", f"write {_FORMS}") from None
    _no_secret(word)
    path = [part for part in parts.path.split("/") if part]
    if parts.scheme == "az":
        return _made(f"https://{parts.netloc}.{_PUBLIC_SUFFIX}", parts.netloc, path, word)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.fragment:
        raise CannotRead(f"'{word}' is not a valid locker address", f"write {_FORMS}")
    is_loopback = _is_loopback(parts.hostname)
    if parts.scheme == "http" and not is_loopback:
        raise CannotRead(f"'{word}' is not encrypted", "write https://")
    if ".dfs." in parts.hostname:
        raise CannotRead(f"'{word}' is the file system endpoint of an account", "write .blob. instead of .dfs.")
    root = f"{parts.scheme}://{_host(parts.hostname)}{'' if port in (None, 443) else f':{port}'}"
    if is_loopback or _is_ip(parts.hostname):
        # Emulators have the account in the path.
        account = "".join(path[:1])
        return _made(f"{root}/{account}", account, path[1:], word)
    return _made(root, parts.hostname.split(".")[0], path, word)


def of_account(account: str, container: str = DEFAULT_CONTAINER) -> Address:
    """A container of a storage account in Azure's public cloud."""
    return parse(f"az://{account}/{container}")


def from_environment(environment: Mapping[str, str]) -> Address | None:
    """The locker that the environment names: ours first, then the variables of `az`."""
    if environment.get(VARIABLE):
        return parse(environment[VARIABLE])
    settings = connection_settings(environment.get("AZURE_STORAGE_CONNECTION_STRING", ""))
    if "blobendpoint" in settings:
        return parse(f"{settings['blobendpoint'].rstrip('/')}/{DEFAULT_CONTAINER}")
    if "accountname" in settings:
        suffix = settings.get("endpointsuffix", "core.windows.net")
        return parse(f"https://{settings['accountname']}.blob.{suffix}/{DEFAULT_CONTAINER}")
    if environment.get("AZURE_STORAGE_ACCOUNT"):
        return of_account(environment["AZURE_STORAGE_ACCOUNT"])
    return None


def connection_settings(text: str) -> dict[str, str]:
    """The settings of a connection string; their names in lower case."""
    pairs = (part.partition("=") for part in text.split(";") if "=" in part)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _no_secret(word: str) -> None:
    # A name in front of '@' is refused for the password that may come with it.
    if _SECRET.search(word) or "@" in word:
        raise CannotRead(
            "an address must not carry a secret: other users of this machine see the command line",
            f"write {_FORMS}; a SAS token goes into AZURE_STORAGE_SAS_TOKEN, a connection string into "
            "AZURE_STORAGE_CONNECTION_STRING",
        )


def _made(account_url: str, account: str, path: list[str], word: str) -> Address:
    container = path[0] if path else DEFAULT_CONTAINER
    if len(path) > 1:
        raise CannotRead(f"'{word}' points below a container", f"end it with the container: {_FORMS}")
    if not _ACCOUNT.fullmatch(account):
        raise CannotRead(
            f"'{account}' is not a valid storage account name", "use 3 to 24 lower-case letters and digits"
        )
    if not _CONTAINER.fullmatch(container):
        raise CannotRead(
            f"'{container}' is not a valid container name", "use 3 to 63 lower-case letters, digits and single hyphens"
        )
    return Address(account_url, account, container)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)
