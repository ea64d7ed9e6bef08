"""`carry` in a process of its own, as ssh starts it: every byte, each end for itself."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from generator.files import assets
from tests.bed.limits import COMMAND_S

BYTES = bytes(range(256)) * 4000
PROGRAM = (
    "import socket, sys; from generator.cyclecloud.stdio import carry; carry(socket.socket(fileno=int(sys.argv[1])))"
)


@dataclass
class Ends:
    """The process, with what ssh has of it, and what the host has."""

    process: subprocess.Popen[bytes]
    host: socket.socket


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, host = socket.socketpair()
    with ours, host:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(ours.fileno())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[ours.fileno()], cwd=assets.root(),
        )  # fmt: skip
        ours.close()
        yield Ends(process, host)
        with process:
            process.kill()


def test_an_answer_comes_after_the_end_of_the_question(ends: Ends) -> None:
    def host() -> None:
        asked = b"".join(iter(lambda: ends.host.recv(65536), b""))
        ends.host.sendall(asked[::-1])
        ends.host.close()

    threading.Thread(target=host).start()
    out, _ = ends.process.communicate(BYTES, COMMAND_S)
    assert (out, ends.process.returncode) == (BYTES[::-1], 0)


def test_the_end_of_the_host_is_the_end(ends: Ends) -> None:
    """Although the question has not ended."""
    ends.host.close()
    assert ends.process.wait(COMMAND_S) == 0


def test_it_ends_with_ssh_although_the_host_says_nothing(ends: Ends) -> None:
    """A host that is lost would never close."""
    assert ends.process.stdin is not None
    assert ends.process.stdout is not None
    ends.process.stdin.close()
    ends.process.stdout.close()
    assert ends.process.wait(COMMAND_S) == 0
