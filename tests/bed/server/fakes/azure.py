"""Azure as the server sees it: instance metadata, Resource Manager, blobs of the locker."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from tests.bed.server.fakes.state import State

TOKEN = "fake-token-of-the-servers-identity"


class Azure:
    def __init__(self, site: State) -> None:
        self._site = site
        self._expired = False

    def metadata(self, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        """Of the instance, and tokens of its identity."""
        if headers.get("Metadata") != "true":
            return 400, b'{"error": "invalid_request"}'
        if "identity" not in path:
            return 200, json.dumps({"publicKeys": [{"keyData": "ssh-ed25519 FROM-THE-VM\n"}]}).encode()
        if self._site.faults.strikes("no_token"):
            return 400, b'{"error": {"code": "invalid_request", "message": "Identity not found"}}'
        self._expired = False
        return 200, json.dumps({"access_token": TOKEN, "expires_in": "86399"}).encode()

    def _refuses_token(self) -> bool:
        """A token that has expired stays so: only a new one helps. The metadata service may give one that is hours old.

        Source: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
        """
        self._expired = self._expired or self._site.faults.strikes("token_expired")
        return self._expired

    def write_deployment(self, name: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """One that the server itself writes; with Contributor in its group it may.

        Source: https://learn.microsoft.com/rest/api/resources/deployments/create-or-update
        """
        if headers.get("Authorization") != f"Bearer {TOKEN}" or self._site.faults.strikes("record_refused"):
            message = "The client does not have authorization to perform action 'Microsoft.Resources/deployments/write'"
            return 403, json.dumps({"error": {"code": "AuthorizationFailed", "message": message}}).encode()
        properties = json.loads(body)["properties"]
        assert properties["mode"] == "Incremental", "Complete would delete everything in the group"
        self._site.records[name] = properties["template"]
        return 201, b'{"properties": {"provisioningState": "Accepted"}}'

    def deployment(self, name: str, headers: dict[str, str]) -> tuple[int, bytes]:
        """One that carries a part of the payload, or one that the server itself has written."""
        if name in self._site.records:
            outputs = self._site.records[name]["outputs"]
            return 200, json.dumps({"properties": {"provisioningState": "Succeeded", "outputs": outputs}}).encode()
        if self._refuses_token():
            return 401, b'{"error": {"code": "ExpiredAuthenticationToken", "message": "The access token has expired."}}'
        if headers.get("Authorization") != f"Bearer {TOKEN}" or self._site.faults.strikes("arm_refused"):
            message = "The client does not have authorization to perform action 'Microsoft.Resources/deployments/read'"
            return 403, json.dumps({"error": {"code": "AuthorizationFailed", "message": message}}).encode()
        if name not in self._site.chunks or name == self._site.faults.arm_missing:
            message = f"Deployment '{name}' could not be found."
            return 404, json.dumps({"error": {"code": "DeploymentNotFound", "message": message}}).encode()
        content = self._site.chunks[name]
        if self._site.faults.damaged_chunk:
            content = content[:-1] + bytes([content[-1] ^ 1])
        outputs = {"content": {"type": "String", "value": base64.b64encode(content).decode()}}
        state = "Running" if self._site.faults.strikes("arm_running") else "Succeeded"
        if name == self._site.faults.arm_failed:
            state = "Failed"
        if state != "Succeeded" or self._site.faults.strikes("arm_no_output"):
            outputs = {}
        return 200, json.dumps({"properties": {"provisioningState": state, "outputs": outputs}}).encode()

    def list_blobs(self, asked: dict[str, str], headers: dict[str, str]) -> tuple[int, bytes]:
        if headers.get("Authorization") != f"Bearer {TOKEN}" or self._site.faults.strikes("list_refused"):
            return 403, b"<Error><Code>AuthorizationPermissionMismatch</Code></Error>"
        names = sorted(name for name in self._site.blobs if name.startswith(asked["prefix"]))
        names = [name for name in names if name > asked.get("marker", "")]
        page, rest = names[: self._site.faults.list_page], names[self._site.faults.list_page :]
        rows = "".join(self._row(name) for name in page)
        marker = escape(page[-1]) if rest else ""
        return 200, (
            f"<?xml version='1.0' encoding='utf-8'?><EnumerationResults><Blobs>{rows}</Blobs>"
            f"<NextMarker>{marker}</NextMarker></EnumerationResults>"
        ).encode()

    def _row(self, name: str) -> str:
        content = self._site.blobs[name]
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode() if self._site.faults.checksums else ""
        return (
            f"<Blob><Name>{escape(name)}</Name><Properties><Content-Length>{len(content)}</Content-Length>"
            f"<Content-MD5>{md5}</Content-MD5></Properties></Blob>"
        )
