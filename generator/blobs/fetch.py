"""Fetches blobs into the store, from the network or from a path that the user names; all are verified by their pins.

What the store has stays, what is missing or damaged is fetched, and one failure stops no other.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from ..catalog.pinned_files import Blob
from ..errors import CannotRead
from .archive import MAX_ARCHIVE_BYTES, BadArchive, normalised
from .download import DownloadFailed, Limits, download
from .store import Store

Progress = Callable[[Blob, int, int | None], None]


class Outcome(Struct, frozen=True):
    """What became of one blob. `absent`: the named source does not hold it, and nobody asked for it by name."""

    blob: Blob
    state: Literal["fetched", "present", "failed", "absent"]
    path: Path
    reason: str | None = None
    hint: str | None = None


class Network:
    def __init__(self, limits: Limits | None = None, progress: Progress = lambda *_: None) -> None:
        self._limits = limits or Limits()
        self._progress = progress

    def get(self, blob: Blob) -> bytes:
        """The verified blob; raises NotGot."""
        try:
            content = download(
                blob.url, MAX_ARCHIVE_BYTES, self._limits, lambda size, total: self._progress(blob, size, total)
            )
        except DownloadFailed as error:
            elsewhere = f"download {blob.url} elsewhere, then: cycleforge blobs fetch {blob.file} --from FILE"
            raise NotGot(error.reason, error.hint or elsewhere) from error
        return verified(blob, content, blob.url)


def fetch(blobs: Iterable[Blob], store: Store, source: Source, *, optional: bool = False) -> Iterator[Outcome]:
    """One outcome per blob, as soon as it is known. `optional`: a source need not hold all of them.

    Raises CannotWrite when the store cannot be written.
    """
    for blob in blobs:
        path = store.path(blob)
        if store.look(blob).state == "present":
            yield Outcome(blob, "present", path)
            continue
        try:
            content = source.get(blob)
        except NotGot as error:
            state: Literal["absent", "failed"] = "absent" if optional and error.is_absent else "failed"
            yield Outcome(blob, state, path, error.reason, error.hint)
            continue
        yield Outcome(blob, "fetched", store.put(blob, content))


_GIT_LIMIT_S = 120


class NotGot(Exception):  # noqa: N818 - named by what happened
    """The source does not give the blob. `is_absent`: it simply is not there, which is fine unless it was asked for."""

    def __init__(self, reason: str, hint: str | None = None, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.is_absent = is_absent


class Source(Protocol):
    """Gives the pinned content of a blob."""

    def get(self, blob: Blob) -> bytes:
        """The content, verified; raises NotGot."""


def verified(blob: Blob, content: bytes, origin: str) -> bytes:
    """The blob out of what came: its own bytes, or the repacked members of a source archive."""
    if _is(blob, content):
        return content
    try:
        repacked = normalised(content, blob.members, blob.size_bytes)
    except BadArchive as error:
        raise NotGot(f"the archive {error}", f"from {origin}; the pinned one is {blob.url}") from error
    if _is(blob, repacked):
        return repacked
    raise NotGot(
        f"its files are not those of {blob.repository} at {blob.commit[:12]}: sha256 {_sha256(repacked)[:12]}… "
        f"instead of {blob.sha256[:12]}…",
        f"from {origin}; never use it: the source has changed, or the connection is intercepted",
    )


def _is(blob: Blob, content: bytes) -> bool:
    return len(content) == blob.size_bytes and _sha256(content) == blob.sha256


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---------------------------------------------------------------- a path


class LocalPath:
    """A git clone, a folder of files, or one file: for machines without internet. Raises CannotRead for no path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise CannotRead(
                f"there is no {path}", "--from takes a git clone, a downloaded archive, a file or a folder"
            )
        self._is_clone = path.is_dir() and ((path / ".git").exists() or (path / "HEAD").is_file())

    def get(self, blob: Blob) -> bytes:
        """The blob out of the path; raises NotGot."""
        if self._is_clone:
            return self._from_clone(blob)
        candidates = list(self._files(blob))
        if not candidates:
            raise NotGot(f"{self.path} has no {blob.file}", _names_text(blob), is_absent=True)
        return verified(blob, _content(candidates[0]), str(candidates[0]))

    def _files(self, blob: Blob) -> Iterator[Path]:
        """The file itself, or what a folder has under one of the blob's names."""
        if self.path.is_dir():
            yield from (self.path / name for name in _names(blob) if (self.path / name).is_file())
        else:
            yield self.path

    def _from_clone(self, blob: Blob) -> bytes:
        if self._git("cat-file", "-e", f"{blob.commit}^{{commit}}").returncode != 0:
            hint = f"`git fetch` in a clone of {blob.repository}, or a clone that is not shallow"
            raise NotGot(f"{self.path} does not hold the commit {blob.commit}", hint, is_absent=True)
        made = self._git("archive", "--format=tar", "--prefix=source/", blob.commit)
        if made.returncode != 0:
            raise NotGot(f"git archive failed: {made.stderr.decode(errors='replace').strip()}")
        return verified(blob, made.stdout, str(self.path))

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        # Nothing of the caller's checkout, no questions, no network for a partial clone, no change of line ends.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        command = ["git", "-C", str(self.path), "-c", "core.autocrlf=false", "-c", "core.attributesFile=", *arguments]
        try:
            return subprocess.run(command, env=environment, capture_output=True, timeout=_GIT_LIMIT_S, check=False)
        except FileNotFoundError as error:
            raise NotGot("git is not installed", "use a downloaded archive instead of a clone") from error
        except subprocess.TimeoutExpired as error:
            raise NotGot(f"git did not finish within {_GIT_LIMIT_S} s") from error


def _names(blob: Blob) -> tuple[str, ...]:
    """Its own, the address's, and the one that browsers give to the archive of a commit."""
    of_commit = f"{blob.repository.rpartition('/')[2]}-{blob.commit}.tar.gz"
    return tuple(dict.fromkeys((blob.file, blob.url.rpartition("/")[2], of_commit)))


def _names_text(blob: Blob) -> str:
    return f"looked for {', '.join(_names(blob))}"


def _content(path: Path) -> bytes:
    try:
        if path.is_file() and path.stat().st_size > MAX_ARCHIVE_BYTES:
            raise NotGot(f"{path} is too large: {path.stat().st_size} bytes")
        with path.open("rb") as stream:
            return stream.read(MAX_ARCHIVE_BYTES + 1)
    except OSError as error:
        raise NotGot(f"cannot read {path}: {(error.strerror or 'error').lower()}") from error
