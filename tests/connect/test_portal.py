"""`cycleforge connect NAME portal`: the site's own certificate or nothing, on a way that ends with the command."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from generator.cyclecloud.shell import Shell
from generator.errors import ProgramMissing
from generator.operate import way
from generator.plan.parameters import SECRETS
from tests.bed.arm import running_arm
from tests.bed.server.certificates import certificate, fingerprint
from tests.bed.ssh.deployed import Deployed, User, a_user
from tests.connect.kinds import KINDS, gone

GREETING = b"the site\n"


@contextmanager
def site(address: str) -> Iterator[None]:
    """Shows its certificate at port 443 to many at once, and waits with its greeting until it is spoken to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate())
    listener = socket.create_server((address, 443))

    def serve(taken: socket.socket) -> None:
        with taken, suppress(OSError), context.wrap_socket(taken, server_side=True) as secure:
            if secure.recv(1):
                secure.sendall(GREETING)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_without_ssh_no_tunnel_is_forwarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="ssh is not installed"), way._forwarded(Shell(tmp_path, "server"), 1):
        pass


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    folder = tmp_path_factory.mktemp("portal")
    with running_arm(tmp_path_factory.mktemp("arm")) as arm, a_user(folder / "user", arm) as made, ExitStack() as stack:
        for name in ("byhub", "bybastion"):
            deployed = made.deploy(name, KINDS[name])
            deployed.outputs["serverCertificateSha256"]["value"] = fingerprint()
            stack.enter_context(site(deployed.server.address))
        yield made
        assert arm.changes == []


@pytest.fixture
def hub(user: User) -> Deployed:
    return user.by_name["byhub"]


def test_the_browser_gets_the_address(user: User, hub: Deployed, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{tmp_path}/opened\n')
    browser.chmod(0o755)
    ran = user.types("cycleforge", "connect", "byhub", "portal", environment={"BROWSER": f"{browser} %s"})
    assert (ran.returncode, ran.stdout) == (0, f"https://{hub.server.address}\n".encode()), ran.stderr
    assert (tmp_path / "opened").read_text() == f"https://{hub.server.address}\n"
    assert fingerprint().encode() in ran.stderr


def test_another_certificate_is_never_opened(user: User, hub: Deployed, tmp_path: Path) -> None:
    noted = hub.outputs["serverCertificateSha256"]
    noted["value"] = ":".join(["AB"] * 32)
    browser = f"touch {tmp_path}/opened %s"
    try:
        ran = user.types("cycleforge", "connect", "byhub", "portal", environment={"BROWSER": browser})
    finally:
        noted["value"] = fingerprint()
    assert (ran.returncode, ran.stdout) == (4, b"")
    assert f"shows a different certificate ({fingerprint()})".encode() in ran.stderr
    assert b"cycleforge deploy byhub --rerun-first-boot" in ran.stderr
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_way_through_the_bastion(user: User, number: signal.Signals, tmp_path: Path) -> None:
    """Several connections at once, of which `az` could serve one; nothing is left, however it ends."""
    environment = user.with_secrets(tmp_path)
    portal = user.started("cycleforge", "connect", "bybastion", "portal", "--no-browser", environment=environment)
    assert portal.stdout is not None
    url = portal.stdout.readline().decode().strip()
    host, _, port = url.removeprefix("https://").partition(":")
    assert host == "localhost", portal.communicate()
    with ExitStack() as stack:
        opened = [stack.enter_context(_secure(int(port))) for _ in range(4)]
        for each in opened:
            shown = hashlib.sha256(each.getpeercert(binary_form=True) or b"").hexdigest().upper()
            assert shown == fingerprint().replace(":", "")
        for each in opened:
            each.sendall(b"x")
            assert each.recv(100) == GREETING
    os.kill(portal.pid, number)
    portal.communicate()
    assert portal.returncode == {signal.SIGINT: 0, signal.SIGTERM: 128 + number}.get(number, -number)
    assert gone(user)
    given = (tmp_path / "given").read_text()
    assert {"ssh", "az"} & set(given.splitlines())
    assert not any(secret in given for secret in SECRETS)


def _secure(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)))


def test_a_port_that_is_taken(user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = user.types("cycleforge", "connect", "bybastion", "portal", "--no-browser", "--port", str(port))
    assert (ran.returncode, f"port {port} of this machine is taken".encode() in ran.stderr) == (2, True)


def test_the_plain_lines(user: User) -> None:
    ran = user.types("cycleforge", "connect", "bybastion", "portal", "--print")
    lines = ran.stdout.decode().splitlines()
    assert lines[-2].startswith("ssh -N -L 8443:localhost:443 -p 50022 -o HostKeyAlias=")
    assert lines[-1] == "# open https://localhost:8443"
    assert lines[-4].startswith("az network bastion tunnel")


def test_two_at_once(user: User) -> None:
    """Each has a port, whoever was faster."""
    both = [user.started("cycleforge", "connect", "bybastion", "portal", "--no-browser") for _ in range(2)]
    urls = {each.stdout.readline() for each in both if each.stdout is not None}
    for each in both:
        each.terminate()
        each.communicate()
    assert len(urls - {b""}) == 2
