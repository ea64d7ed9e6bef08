"""What a login with DefaultAzureCredential says: whom a token is for, and why there is none."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from typing import Any

SILENCE_S = 10.0
"""After this long an endpoint that should give a token is not waited for; without it that is 300 s, four times."""
INSTALL = "install az (https://learn.microsoft.com/cli/azure/install-azure-cli)"
LOGIN = (
    "az login (on a machine without a browser: az login --use-device-code; in a pipeline: AZURE_CLIENT_ID, "
    "AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or a managed identity)"
)
_OTHER_WAYS = (
    "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS",
    "IDENTITY_ENDPOINT", "MSI_ENDPOINT",
)  # fmt: skip
"""Variables that choose a login other than that of `az`, so that a failure of it must be explained."""
_PLAIN = ("az login", "not found on path", "not installed")
"""Parts of what `az` answers where it has no login, or is not there."""
NOT_SIGNED_IN = "not signed in to "
"""How the reason begins; a process that another one of ours has started says it in its last words."""
_NOWHERE = logging.NullHandler()
_UNAVAILABLE = re.compile(r"^\w+Credential (?:authentication )?unavailable\. ")


def quiet() -> None:
    """Keep what libraries log from standard error: what is wrong is in our own messages, once."""
    logging.getLogger().addHandler(_NOWHERE)


def why_not(where: str, said: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return why nobody is signed in, and what to do; `said` is the text of azure-identity."""
    return f"{NOT_SIGNED_IN}{where}{_reasons(said, environment)}", hint(environment)


def hint(environment: Mapping[str, str]) -> str:
    """Return what to do where nobody is signed in."""
    return LOGIN if has_az(environment) else f"{INSTALL}, then {LOGIN}"


def has_az(environment: Mapping[str, str]) -> bool:
    """Return True where the Azure command line is installed."""
    return shutil.which("az", path=environment.get("PATH", os.defpath)) is not None


def _reasons(said: str, environment: Mapping[str, str]) -> str:
    if any(environment.get(name) for name in _OTHER_WAYS):
        return f"; tried:{_tried(said)}"
    if "Attempted credentials:" not in said:
        return f":{_tried(said)}"
    az = next((line for line in _tried(said).splitlines() if line.strip().startswith("AzureCliCredential: ")), "")
    reason = az.strip().removeprefix("AzureCliCredential: ")
    return f": az: {reason}" if reason and not any(part in reason for part in _PLAIN) else ""


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


def _tried(text: str) -> str:
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
