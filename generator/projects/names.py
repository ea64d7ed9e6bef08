"""Which names a file may have in the locker.

Azure: a blob's name has 1 to 1024 characters and at most 254 parts, and no part should end with a dot. It turns `\\`
into `/` in some clients, and what CycleCloud and azcopy make of other characters is not known, so they are refused.
Source: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
"""

from __future__ import annotations

MAX_CHARACTERS, MAX_PARTS = 1024, 254


def flaw(name: str) -> tuple[str, str] | None:
    """(what is wrong with a blob's whole name, what to do), or None when it may be used."""
    parts = name.split("/")
    if not all(" " <= character <= "~" for character in name):
        return "the name has characters outside printable ASCII", "Rename it, and what refers to it."
    if "\\" in name:
        return "the name has a backslash, which clients treat as '/'", "Rename it, and what refers to it."
    if any(part in ("", ".", "..") for part in parts):
        return "the name has an empty part, '.' or '..'", "Write the path without it."
    for part in parts:
        if part.endswith((".", " ")):
            kind = "a dot" if part.endswith(".") else "a space"
            return f"'{part}' ends with {kind}, which some clients drop", "Rename it."
    if len(name) > MAX_CHARACTERS:
        text = f"the name in the locker would have {len(name)} characters, {MAX_CHARACTERS} are allowed"
        return text, "Shorten the names of its folders."
    if len(parts) > MAX_PARTS:
        text = f"the name in the locker would have {len(parts)} parts, {MAX_PARTS} are allowed"
        return text, "Use fewer nested folders."
    return None
