"""`manifest.json` of a project in the locker, byte for byte as `cyclecloud project build` writes it.

Read off outputs that were committed to public repositories: Azure/HPC-Accelerator at 93b3336 (`build/limits`,
`build/nhc`) and Azure/cyclecloud-symphony at b405523 (`build/symphony`, with blobs and run lists).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

MANIFEST = "manifest.json"


def manifest_bytes(
    name: str, version: str, kind: str, blobs: Iterable[tuple[str, bytes]], run_lists: Mapping[str, Sequence[str]]
) -> bytes:
    """The manifest. `blobs` are (path below `blobs/`, MD5) in the order of `project.ini`; no line end at the end.

    Without a run list there is no `specs` at all: nodes find the files of a spec by its prefix in the locker.
    """
    content: dict[str, object] = {
        "blobs": [{"checksum": md5.hex(), "path": path} for path, md5 in blobs],
        "name": name,
        "type": kind,
        "version": version,
    }
    if run_lists:
        content["specs"] = {spec: {"run_list": list(words)} for spec, words in run_lists.items()}
    return json.dumps(content, indent=4, sort_keys=True).encode("ascii")
