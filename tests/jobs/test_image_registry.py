"""What images.sh asks a registry, with the real enroot: its `digest` and its way to read references and credentials.

The registry is on loopback and answers as far as enroot asks: an index of two architectures, a manifest, and one
repository for which it demands a password. Source: https://distribution.github.io/distribution/spec/api/.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed.sources import blob_or_skip
from tests.jobs.running import LIBRARY

MANIFEST = json.dumps({"schemaVersion": 2, "config": {}, "layers": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
OURS, THEIRS = ("arm64", "amd64") if platform.machine() == "aarch64" else ("amd64", "arm64")
INDEX = json.dumps(
    {
        "manifests": [
            {"digest": f"sha256:{'f' * 64}", "platform": {"architecture": THEIRS}},
            {"digest": DIGEST, "platform": {"architecture": OURS}},
        ]
    }
).encode()
PASSWORD = "b" * 20


class Registry(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        allowed = f"Basic {base64.b64encode(f'me:{PASSWORD}'.encode()).decode()}"
        if "/private/" in self.path and self.headers.get("Authorization") != allowed:
            self.reply(401, b"", {"WWW-Authenticate": 'Basic realm="registry"'}, with_body=False)
            return
        is_index = "index" in self.headers.get("Accept", "") and not self.path.endswith(DIGEST)
        content = INDEX if is_index else MANIFEST
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.reply(200, content, {"Docker-Content-Digest": digest}, with_body=with_body)

    def reply(self, status: int, content: bytes, headers: dict[str, str], *, with_body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal of the tests."""


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the real enroot as its build places it, as far as `digest` needs."""
    for program in ("curl", "jq"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with tarfile.open(fileobj=io.BytesIO(blob_or_skip("enroot-4.1.2.tar"))) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        texts = {name: file.read().decode() for name, file in files.items() if file and name.endswith((".in", ".sh"))}
    (tmp_path / "lib").mkdir()
    for name, text in texts.items():
        if "src/" in name:
            (tmp_path / "lib" / Path(name).name).write_text(text, encoding="utf-8")
    (program_text,) = (text for name, text in texts.items() if name.endswith("enroot.in"))
    for mark, value in {"@libdir@": tmp_path / "lib", "@sysconfdir@": tmp_path / "etc", "@version@": "4.1.2"}.items():
        program_text = program_text.replace(mark, str(value))
    (tmp_path / "enroot").write_text(program_text, encoding="utf-8")
    (tmp_path / "enroot").chmod(0o755)
    (tmp_path / "stage/images").mkdir(parents=True)
    return tmp_path


def asked(home: Path, expression: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    given = {
        "PATH": f"{home}:{os.environ['PATH']}", "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"),
        "TMPDIR": str(home), "ENROOT_ALLOW_HTTP": "y", "STAGE_PATH": str(home / "stage"), "JOBS_LIB": str(LIBRARY),
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail; . {LIBRARY}/common.sh; . {LIBRARY}/images.sh; {expression}"],
        cwd=assets.folder("recipes"), env=kept | given | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_enroot_says_the_digest_of_this_architecture_and_takes_a_reference_with_it(home: Path, registry: str) -> None:
    for reference in (f"docker://{registry}#nvidia/pytorch:25.03-py3", f"docker://{registry}/nvidia/pytorch:25.03-py3"):
        for each in (reference, f"{reference}@{DIGEST}"):
            ran = asked(home, f"registry_digest {each}")
            assert (ran.stdout, ran.returncode) == (f"{DIGEST}\n", 0), ran.stderr
    ran = asked(home, f"digest_to_import docker://{registry}#nvidia/pytorch:25.03-py3")
    assert ran.stdout == f"{DIGEST}\n", ran.stderr


def test_enroot_reads_the_credentials_that_the_setting_names(home: Path, registry: str) -> None:
    image = f"docker://{registry}#private/mine:1"
    assert asked(home, f"registry_digest {image}").returncode == 1
    file = home / "netrc"
    file.write_text(f"machine 127.0.0.1 login me password {PASSWORD}\n", encoding="utf-8")
    file.chmod(0o600)
    ran = asked(home, f"check_credentials; registry_digest {image}", REGISTRY_NETRC=str(file))
    assert ran.stdout == f"{DIGEST}\n", ran.stderr
    assert PASSWORD not in ran.stderr
