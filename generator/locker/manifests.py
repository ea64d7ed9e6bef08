"""What a `manifest.json` of a locker says."""

from __future__ import annotations

import json


def listed_blobs(content: bytes) -> dict[str, str] | None:
    """Path below the project's `blobs/` → MD5 in hex; None for what is no manifest."""
    try:
        blobs = json.loads(content)["blobs"]
        return {str(blob["path"]): str(blob["checksum"]).lower() for blob in blobs}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
