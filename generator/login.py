"""What a login with DefaultAzureCredential says: whom a token is for, and why there is none."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

SILENCE_S = 10.0
"""After this long an endpoint that should give a token is not waited for; without it that is 300 s, four times."""
HINT = (
    "az login (on a machine without a browser: az login --use-device-code; in a pipeline: AZURE_CLIENT_ID, "
    "AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or a managed identity)"
)
_UNAVAILABLE = re.compile(r"^\w+Credential (?:authentication )?unavailable\. ")


def claims(token: str) -> Mapping[str, Any] | None:
    """What a token says of itself, `oid` among it; None where it cannot be read or names nobody.

    Its content is Azure's own affair, so nothing but messages and comparisons may rest on it.
    Source: https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference
    """
    try:
        payload = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "oid" in found else None


def name_in(found: Mapping[str, Any]) -> str:
    """How messages call whom the claims are about."""
    return next((str(found[key]) for key in ("upn", "unique_name", "appid", "oid") if found.get(key)), "")


def tried(text: str) -> str:
    """One line per credential, of the text of azure-identity."""
    _, found, attempts = text.partition("Attempted credentials:")
    if not found:
        return f" {text.splitlines()[0] if text else 'no reason was given'}"
    lines = []
    for line in attempts.splitlines():
        name, colon, reason = line.strip().partition(": ")
        if colon and name.isidentifier() and name.endswith("Credential"):
            reason = reason.rpartition("Token request error: ")[2]
            lines.append(f"\n  {name}: {_UNAVAILABLE.sub('', reason).split('. ')[0].rstrip('.')}")
    return "".join(lines)
