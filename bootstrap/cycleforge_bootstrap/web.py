"""HTTP with the standard library: instance metadata, Resource Manager, blobs, and the server's own portal."""

import functools
import json
import ssl
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote, urlencode

from .core import Context, StepError, tail

IMDS = "http://169.254.169.254"
IMDS_IDENTITY = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
IMDS_COMPUTE = "/metadata/instance/compute?api-version=2021-02-01&format=json"
BLOB_API = "2021-08-06"


def http_get(
    url: str, headers: Dict[str, str], limit: float = 30, proxy: bool = True, trust_all: bool = False
) -> Tuple[int, bytes]:
    """Status and body of one GET; StepError without an answer. `limit` in seconds."""
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own addresses
    try:
        with _opener(proxy, trust_all).open(request, timeout=limit) as answer:
            return int(answer.status), bytes(answer.read())
    except urllib.error.HTTPError as error:
        return int(error.code), error.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise StepError("no answer from {}: {}".format(url.split("?")[0], reason)) from None


@functools.lru_cache(maxsize=None)
def _opener(proxy: bool, trust_all: bool) -> urllib.request.OpenerDirector:
    """One for all requests of a kind: a new one may read every certificate authority of the system again."""
    handlers: List[urllib.request.BaseHandler] = [] if proxy else [urllib.request.ProxyHandler({})]
    if trust_all:
        # For localhost only: the site's first certificate is self-signed.
        handlers.append(urllib.request.HTTPSHandler(context=ssl._create_unverified_context()))  # noqa: S323
    return urllib.request.build_opener(*handlers)


class Azure:
    """What the server's own identity may read."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._imds = context.environment.get("CYCLEFORGE_IMDS", IMDS)
        self._tokens: Dict[str, Tuple[str, float]] = {}

    def token(self, resource: str) -> str:
        """A bearer token for a resource; StepError while the identity is not ready."""
        token, until = self._tokens.get(resource, ("", 0.0))
        if time.time() < until:
            return token
        url = self._imds + IMDS_IDENTITY + quote(resource, safe="")
        status, body = http_get(url, {"Metadata": "true"}, limit=10, proxy=False)
        if status != 200:
            raise StepError("the server's identity got no token (HTTP {}): {}".format(status, reason_of(body)))
        try:
            answer = json.loads(body.decode("utf-8"))
            token = str(answer["access_token"])
        except (ValueError, KeyError):
            raise StepError("instance metadata returned something that is not a token") from None
        self._context.log.hide(token)
        self._tokens[resource] = (token, time.time() + 300)
        return token

    def compute(self) -> Dict[str, Any]:
        """What the instance metadata service says about this VM."""
        status, body = http_get(self._imds + IMDS_COMPUTE, {"Metadata": "true"}, limit=10, proxy=False)
        if status != 200:
            raise StepError("instance metadata answered HTTP {}".format(status))
        document = json.loads(body.decode("utf-8"))
        return dict(document)

    def blobs(self, prefix: str) -> Dict[str, Tuple[int, str]]:
        """Name → (bytes, base64 MD5 or "") of every blob below a prefix of the locker's container."""
        account = self._context.fact("storageAccount")
        default = "https://{}.blob.{}".format(account, self._context.fact("storageSuffix"))
        base = self._context.environment.get("CYCLEFORGE_BLOB", default)
        found: Dict[str, Tuple[int, str]] = {}
        marker = ""
        while True:
            query = {"restype": "container", "comp": "list", "prefix": prefix}
            if marker:
                query["marker"] = marker
            url = "{}/{}?{}".format(base, self._context.fact("container"), urlencode(query))
            headers = {"Authorization": "Bearer " + self.token("https://storage.azure.com/"), "x-ms-version": BLOB_API}
            status, body = http_get(url, headers, limit=30, proxy=False)
            if status != 200:
                raise StepError("listing the locker was refused (HTTP {}): {}".format(status, reason_of(body)),
                                hint=_blob_hint(status, account))  # fmt: skip
            marker = _read_list(body, found)
            if not marker:
                return found


def _blob_hint(status: int, account: str) -> str:
    if status == 403:
        return (
            "The server's identity needs the role 'Storage Blob Data Contributor' on storage account {}; a new "
            "assignment takes up to ten minutes.".format(account)
        )
    if status == 404:
        return "The container does not exist in storage account {}: was it removed after the deployment?".format(
            account
        )
    return "Does the private endpoint of storage account {} resolve on this server?".format(account)


def _read_list(body: bytes, found: Dict[str, Tuple[int, str]]) -> str:
    """Add the blobs of one page; the marker of the next page, or ""."""
    try:
        page = xml.etree.ElementTree.fromstring(body)  # noqa: S314 - from the storage service, over TLS
    except xml.etree.ElementTree.ParseError:
        raise StepError("the locker returned something that is not a list of blobs") from None
    for blob in page.iter("Blob"):
        size = blob.findtext("Properties/Content-Length") or "0"
        found[blob.findtext("Name") or ""] = (int(size), blob.findtext("Properties/Content-MD5") or "")
    return page.findtext("NextMarker") or ""


def reason_of(body: bytes) -> str:
    """Code and first words of an Azure error response."""
    text = body.decode("utf-8", "replace")
    try:
        error = json.loads(text)
        error = error.get("error", error) if isinstance(error, dict) else {}
        if isinstance(error, dict):
            return tail("{}: {}".format(error.get("code", ""), error.get("message", "")), 300).strip(": ")
        return tail(str(error), 300)
    except ValueError:
        return tail(text, 300) or "no text"


def portal_status(url: str, authorization: Optional[str] = None, limit: float = 10) -> int:
    """HTTP status of a page of this server's portal."""
    headers = {"Authorization": authorization} if authorization else {}
    status, _ = http_get(url, headers, limit=limit, proxy=False, trust_all=True)
    return status
