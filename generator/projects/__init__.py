"""Cluster-init projects: what a project folder says, which files it uploads, and the lock of released versions."""

from .content import Missing, contents, digest
from .ini import Project, ProjectUnreadable, read_project
from .lock import (
    Bump,
    Lock,
    LockProblem,
    bump,
    check,
    next_version,
    read_lock,
    shipped_problems,
)

__all__ = [
    "Bump",
    "Lock",
    "LockProblem",
    "Missing",
    "Project",
    "ProjectUnreadable",
    "bump",
    "check",
    "contents",
    "digest",
    "next_version",
    "read_lock",
    "read_project",
    "shipped_problems",
]
