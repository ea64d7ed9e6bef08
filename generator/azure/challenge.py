"""When Azure wants more of a login than it has, such as multi-factor authentication (MFA).

It answers 401 with a challenge, which a service principal and a managed identity never get. Since October 2025 every
user needs MFA to create, change or delete. Sources:
https://learn.microsoft.com/entra/identity/authentication/concept-mandatory-multifactor-authentication,
https://learn.microsoft.com/entra/identity-platform/claims-challenge, and https://github.com/Azure/azure-cli/pull/31699
for the line of `az`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from shlex import quote

from .refusals import NotAsked

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
        return NotAsked("Azure does not take this login any more", hint)
    return NotAsked(
        "Azure wants a login with multi-factor authentication (MFA) for this, and this login has none",
        f"{hint}; a service principal or a managed identity needs no MFA",
    )


def _wants_context(claims: str) -> bool:
    """`acrs` asks for an authentication context, which is how Azure asks for MFA; `nbf` for a newer token."""
    try:
        return "acrs" in json.loads(claims)["access_token"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
