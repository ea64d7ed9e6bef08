"""The command line as a person runs it: in this process, with its own environment, and no secret out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from azure.storage.blob import BlobBlock, ContentSettings

from generator.cli import main
from generator.locker import container as container_module
from tests.answers import data_of
from tests.locker.azurite import KEY, Container
from tests.locker.ground import QUICK, contents, project

_OURS = ("AZURE_", "IDENTITY_", "MSI_", "IMDS_", "CYCLEFORGE_LOCKER", "CYCLEFORGE_DEBUG")
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
BLOBS_OF = {"tool/bin": b"\x7fELF blob", "plain.txt": b"text\n"}
"""Project blobs of `site`."""
CLOSED = "http://127.0.0.1:1/"
"""Nobody listens there, and nobody without root could."""


class Command:
    """`cycleforge …`; `secrets` may not appear in anything that it prints."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.folder = folder
        self.secrets = {KEY}

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code and both outputs."""
        code = main(words)
        out, err = self._capsys.readouterr()
        for secret in self.secrets:
            assert secret not in out + err
        assert "Traceback" not in err or os.environ.get("CYCLEFORGE_DEBUG")
        return code, out, err

    def json(self, *words: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the result as data; nothing beside it."""
        code, out, err = self(*words, "--json")
        assert err == ""
        return code, data_of(out)

    def refused(self, *words: str) -> tuple[int, str]:
        """The exit code and what was said, of a run without a result."""
        code, out, err = self(*words)
        assert out == ""
        assert err.startswith("cycleforge: "), err
        return code, err

    def environment(self, **variables: str) -> None:
        """Set these; the values of secrets are remembered."""
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
            if name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_SECRET"):
                self.secrets.add(value)
            if name == "AZURE_STORAGE_SAS_TOKEN":
                self.secrets |= {value, *parse_qs(value).get("sig", ())}

    def sign_in(self, way: str, value: str) -> None:
        """With this, and nothing else."""
        names = {"key": "KEY", "sas": "SAS_TOKEN", "connection-string": "CONNECTION_STRING"}
        for name in names.values():
            self._monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
        self.environment(**{f"AZURE_STORAGE_{names[way]}": value})


def commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Iterator[Command]:
    """In an empty folder, without a login: no program on PATH, and an identity endpoint that is none."""
    for name in list(os.environ):
        if name.startswith(_OURS) or name.upper() in _NETWORK:
            monkeypatch.delenv(name)
    for name in ("bin", "home", "here"):
        (folder / name).mkdir()
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    # Else a login would be looked for at 169.254.169.254.
    monkeypatch.setenv("IDENTITY_ENDPOINT", CLOSED)
    monkeypatch.setenv("IDENTITY_HEADER", "none")
    monkeypatch.setattr(container_module, "Limits", lambda: QUICK)
    monkeypatch.chdir(folder / "here")
    yield Command(monkeypatch, capsys, folder)


def in_locker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, container: Container
) -> Iterator[Command]:
    """The same, signed in, and the locker is named."""
    for command in commands(monkeypatch, capsys, folder):
        command.environment(AZURE_STORAGE_KEY=KEY, CYCLEFORGE_LOCKER=container.url)
        monkeypatch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 43 * "I" + " a")
        yield command


# ---------------------------------------------------------------- what is in a locker


def site(run: Command, container: Container, version: str = "1.0.0", **blobs: bytes) -> Path:
    """A version of the project `site`, here and in the locker; a blob's name may have __ for a dot."""
    files = {name.replace("__", "."): content for name, content in blobs.items()} or BLOBS_OF
    folder = project(run.folder / f"site-{version}", blobs=files, version=version)
    client = container.client()
    for name, content in contents(folder).items():
        client.upload_blob(name, content, overwrite=True)
    return folder


def put_without_md5(container: Container, name: str, content: bytes, claimed: bytes | None = None) -> None:
    """As a program would that sends blocks: nobody computes the MD5 of the whole, so any may be claimed."""
    blob = container.client().get_blob_client(name)
    blob.stage_block("MQ==", content)
    settings = ContentSettings(content_md5=bytearray(claimed)) if claimed else None
    blob.commit_block_list([BlobBlock("MQ==")], content_settings=settings)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Relative path → content and mode."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777) for path in files}
