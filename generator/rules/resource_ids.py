"""The form of Azure resource ids."""

from __future__ import annotations

import re

from .wording import quoted

GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def resource_id_fault(text: str, provider: str, kind: str) -> str | None:
    """What is wrong with a resource id that should name a `provider/kind`; None when it is well-formed."""
    parts = text.split("/")
    if len(parts) != 9 or parts[0] or parts[1].lower() != "subscriptions" or parts[3].lower() != "resourcegroups":
        return "is not of the form /subscriptions/…/resourceGroups/…/providers/…/…/…"
    if not re.fullmatch(GUID, parts[2]):
        return (
            f"names the subscription {quoted(parts[2])}, which is not an id like 00000000-0000-0000-0000-000000000000"
        )
    if not re.fullmatch(r"[\w.()-]{1,90}", parts[4]):
        return f"names the resource group {quoted(parts[4])}, which cannot exist"
    if parts[5].lower() != "providers" or (parts[6].lower(), parts[7].lower()) != (provider.lower(), kind.lower()):
        return f"names a {quoted(parts[6] + '/' + parts[7])}, not a {provider}/{kind}"
    if not re.fullmatch(r"[\w.-]{1,260}", parts[8], re.ASCII):
        return "ends without a valid name"
    return None
