"""Azurite, Microsoft's imitation of Azure's blob server, as a process of the test, on the loopback."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from azure.storage.blob import (
    AccountSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_container_sas,
)

from generator.files import assets
from tests.locker.certificate import HOST, Certificate

VERSION = "3.35.0"
PROGRAM = assets.folder("projects").parent / f".cache/azurite-{VERSION}/node_modules/.bin/azurite-blob"
"""Where tests/install-tools.sh puts it."""
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""No secret: the account and key that every Azurite has.
Source: https://learn.microsoft.com/azure/storage/common/storage-connect-azurite"""
READY_S = 300.0
END_S = 100.0
IDLE_S = 3600
"""Azurite ends idle connections after 5 s; a slow test would meet that as a fault it did not ask for."""
_LISTENS = re.compile(r"successfully listens on \S+?:(\d+)")


def missing_azurite() -> str:
    """Why Azurite cannot be started; empty when it can."""
    if not PROGRAM.exists():
        return f"Azurite {VERSION} is not installed (tests/install-tools.sh, needs npm)"
    return "" if shutil.which("node") else "Azurite needs node, which is not on PATH"


class Stored(NamedTuple):
    """A blob as it is on the server."""

    size_bytes: int
    md5: str
    """The Content-MD5 that the client gave, in hexadecimal; empty without one."""
    content: bytes


class Azurite:
    """One server. With a folder its data outlives `restart`; without, all is in memory and ends with it."""

    def __init__(self, *, folder: Path | None = None, certificate: Certificate | None = None) -> None:
        self.folder = folder
        self.certificate = certificate
        self.port = 0
        """Chosen by the kernel at the first start, kept by the later ones."""
        self._process: subprocess.Popen[bytes] | None = None
        self._own = tempfile.TemporaryDirectory(prefix="azurite.")

    def __enter__(self) -> Azurite:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._own.cleanup()

    # ------------------------------------------------------------ the process

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None, "Azurite does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and not ended since."""
        return self._process is not None

    def start(self) -> None:
        """Returns when it answers."""
        assert self._process is None, "Azurite already runs"
        log = Path(self._own.name) / "log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=_environment(self._own.name),
                cwd=self._own.name,
            )  # fmt: skip
        deadline = time.monotonic() + READY_S
        while not (match := _LISTENS.search(log.read_text(encoding="utf-8", errors="replace"))):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"Azurite did not start: {log.read_text(encoding='utf-8', errors='replace')}")
            time.sleep(0.02)
        self.port = int(match[1])

    def stop(self) -> None:
        """End it as an administrator would; data in a folder is written first."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would. It writes its index every few seconds, so what it has said it stored just before is
        lost, which Azure's does not do: `Proxy.restart_server` is a crash of a server that keeps its word."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """On the same port, with the same data if it has a folder."""
        if self._process is not None:
            self.stop()
        self.start()

    def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(sign)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _command(self) -> list[str]:
        words = [str(PROGRAM), "--silent", "--disableTelemetry", "--blobHost", HOST, "--blobPort", str(self.port)]
        # The SDK speaks newer versions of the protocol than this Azurite knows by name.
        words += ["--skipApiVersionCheck", "--blobKeepAliveTimeout", str(IDLE_S)]
        words += ["--location", str(self.folder)] if self.folder else ["--inMemoryPersistence"]
        if self.certificate:
            words += ["--oauth", "basic", "--cert", str(self.certificate.certificate)]
            words += ["--key", str(self.certificate.key)]
        return words

    # ------------------------------------------------------------ how to reach it

    @property
    def url(self) -> str:
        """Of the account."""
        return f"{'https' if self.certificate else 'http'}://{HOST}:{self.port}/{ACCOUNT}"

    def connection_string(self, url: str = "") -> str:
        """With the key; `url` is that of a proxy in front, if there is one."""
        scheme = "https" if self.certificate else "http"
        fields = {"DefaultEndpointsProtocol": scheme, "AccountName": ACCOUNT, "AccountKey": KEY}
        return ";".join(f"{name}={value}" for name, value in (fields | {"BlobEndpoint": url or self.url}).items())

    def service(self) -> BlobServiceClient:
        """Microsoft's client, with the key, past any proxy; a test is told at once when the server does not answer."""
        verify = str(self.certificate.certificate) if self.certificate else True
        key = {"account_name": ACCOUNT, "account_key": KEY}
        return BlobServiceClient(self.url, key, connection_verify=verify, retry_total=0)

    def new_container(self, prefix: str = "locker") -> Container:
        """A container of its own for one test."""
        container = Container(self, f"{prefix}-{uuid.uuid4().hex[:12]}")
        container.client().create_container()
        return container


@dataclass(frozen=True)
class Container:
    """A container on a server, and what is in it."""

    server: Azurite
    name: str

    @property
    def url(self) -> str:
        """As `--to` takes it."""
        return f"{self.server.url}/{self.name}"

    def client(self) -> ContainerClient:
        """Microsoft's client, with the key, past any proxy."""
        return self._client

    @cached_property
    def _client(self) -> ContainerClient:
        return self.server.service().get_container_client(self.name)

    def names(self) -> set[str]:
        """Of all blobs."""
        return set(self.client().list_blob_names())

    def blobs(self, prefix: str = "") -> Mapping[str, Stored]:
        """Name → size, digest, bytes, of all blobs or of those whose name begins so."""
        client = self.client()
        found = {}
        for blob in client.list_blobs(name_starts_with=prefix):
            content = client.download_blob(blob.name).readall()
            found[blob.name] = Stored(blob.size, bytes(blob.content_settings.content_md5 or b"").hex(), content)
        return found

    def put(self, name: str, content: bytes) -> None:
        """As someone else's upload would."""
        self.client().upload_blob(name, content, overwrite=True)

    def sas(self, permissions: str = "racwdl", *, lifetime_s: float = 3600) -> str:
        """A shared access signature for this container; a negative lifetime makes one that has expired."""
        now = datetime.datetime.now(datetime.UTC)
        return generate_container_sas(
            ACCOUNT, self.name, KEY, permission=ContainerSasPermissions.from_string(permissions),
            start=now - datetime.timedelta(days=1), expiry=now + datetime.timedelta(seconds=lifetime_s),
        )  # fmt: skip


def account_sas(permissions: str = "racwdl", *, lifetime_s: float = 3600) -> str:
    """A shared access signature for every container of the account."""
    return generate_account_sas(
        ACCOUNT, KEY, ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string(permissions),  # type: ignore[no-untyped-call]
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=lifetime_s),
    )  # fmt: skip


def md5_of(content: bytes) -> str:
    """As `Stored.md5`."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _environment(home: str) -> dict[str, str]:
    """Nothing of the machine's but where programs are; Azurite keeps settings in its home folder."""
    return {"PATH": os.environ["PATH"], "HOME": home}
