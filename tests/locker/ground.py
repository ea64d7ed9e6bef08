"""What the tests of uploads share: small projects, a container opened as the command does it, and what always holds."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from pathlib import Path

from azure.core.credentials import AzureNamedKeyCredential

from generator.locker import address
from generator.locker.client import Limits
from generator.locker.container import Container
from generator.locker.credentials import SignIn
from generator.locker.look import Look, Wanted, look, wanted_of
from generator.locker.upload import Done, replace, upload
from generator.projects.package import package_folder
from tests.locker import azurite

QUICK = Limits(connect_s=2, silence_s=5, tries=3, pause_s=0.01, longest_pause_s=0.05, total_s=20)
ONCE = Limits(connect_s=2, silence_s=5, tries=1, pause_s=0.01, longest_pause_s=0.05, total_s=20)
FILES = {"scripts/10-a.sh": b"#!/bin/sh\n", "files/data": b"data\n", "files/empty": b""}


class Silent:
    """Progress that counts."""

    def __init__(self) -> None:
        self.sent_bytes = 0

    def begin(self, wanted: Wanted, files: int, size_bytes: int) -> None:
        """Nothing to see."""

    def sent(self, size_bytes: int) -> None:
        """Add up."""
        self.sent_bytes += size_bytes


def project(
    folder: Path, files: Mapping[str, bytes] = FILES, blobs: Mapping[str, bytes] | None = None, version: str = "1.0.0"
) -> Path:
    """A project folder named `site`; files are below its default spec's cluster-init."""
    listed = f"\n[blobs]\nFiles = {', '.join(blobs)}\n" if blobs else ""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "project.ini").write_text(f"[project]\nname = site\nversion = {version}\ntype = application\n{listed}")
    for path, content in files.items():
        _write(folder / "specs/default/cluster-init" / path, content)
    for path, content in (blobs or {}).items():
        _write(folder / "blobs" / path, content)
    return folder


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if content.startswith(b"#!") else 0o644)


def wanted(folder: Path) -> Wanted:
    """What the locker should hold of a project folder."""
    return wanted_of(package_folder(folder))


def contents(folder: Path) -> dict[str, bytes]:
    """The same as name → bytes."""
    found = {}
    for name, payload in wanted(folder).all.items():
        with payload.open() as stream:
            found[name] = stream.read()
    return found


def opened(url: str, container: azurite.Container, limits: Limits = QUICK) -> Container:
    """As the command opens it with a key; `url` is that of the server or of a proxy in front."""
    key = SignIn("key", "a key", AzureNamedKeyCredential(azurite.ACCOUNT, azurite.KEY))
    return Container(address.parse(f"{url}/{container.name}"), key, limits)


def send(container: Container, folder: Path, *, force: bool = False) -> Done:
    """Look and upload, as the command does."""
    found: Look = look(container, wanted(folder))
    if found.state == "different" and force:
        return replace(container, found, Silent())
    return upload(container, found, Silent())


def stored(container: azurite.Container) -> dict[str, bytes]:
    """All that is in a container."""
    return {name: blob.content for name, blob in container.blobs().items()}


def checksums(container: azurite.Container) -> dict[str, str]:
    """Name → MD5 in hex, in one request. The server has compared it with the content for all but committed blocks."""
    blobs = container.client().list_blobs()
    return {blob.name: bytes(blob.content_settings.content_md5 or b"").hex() for blob in blobs}


def assert_whole(container: azurite.Container, *allowed: Mapping[str, bytes]) -> None:
    """Where a manifest is, its version is one of these, complete and with nothing else; project blobs may be more."""
    now = checksums(container)
    for name in now:
        if not name.endswith("/manifest.json"):
            continue
        prefix = name.removesuffix("manifest.json")
        version = {each: md5 for each, md5 in now.items() if each.startswith(prefix)}
        assert any(
            version == {each: azurite.md5_of(content) for each, content in state.items() if each.startswith(prefix)}
            and all(now.get(each) == azurite.md5_of(content) for each, content in state.items() if "/blobs/" in each)
            for state in allowed
        ), f"{name} is there, but not what belongs to it: {sorted(version)}"


def noise(size_bytes: int, seed: int = 1) -> bytes:
    """Bytes of which no two blocks are alike."""
    pieces = (hashlib.sha256(f"{seed} {count}".encode()).digest() for count in itertools.count())
    return b"".join(itertools.islice(pieces, size_bytes // 32 + 1))[:size_bytes]
