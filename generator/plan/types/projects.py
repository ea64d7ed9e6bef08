"""Projects that travel with a deployment, and the third-party files in them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from ...records import record


@record
class BlobPlan:
    """A third-party file that a shipped project uses; it travels when this machine has it (`present`)."""

    file: str
    version: str
    sha256: str
    size_bytes: int
    state: Literal["present", "missing", "damaged"]
    is_needed: bool = True
    """False: the nodes of this cluster do not look for it, for example because their Slurm project brings the same."""


@record
class ProjectPlan:
    """A cluster-init project that travels with the deployment."""

    name: str
    version: str
    source: PurePosixPath
    """Folder relative to the assets root (shipped projects) or to the definition's folder (`is_local`)."""
    is_local: bool
    specs: tuple[str, ...]
    roles: tuple[str, ...]
    """Where it is attached: `scheduler`, `login` or the names of node arrays; for `plan` and the README."""
    digest: str
    """sha256 over the sorted relative paths and contents; of a third-party blob its pinned sha256 counts."""
    blobs: tuple[BlobPlan, ...] = ()
