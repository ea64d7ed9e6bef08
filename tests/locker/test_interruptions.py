"""Whatever breaks at whichever request: no manifest without its files, and the next run makes the locker right."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.errors import INTERRUPTED, CycleForgeError
from generator.locker.client import Limits
from tests.command import COMMAND
from tests.locker import azurite
from tests.locker.faults import Cut, Delay, Fault, Request, at
from tests.locker.ground import ONCE, QUICK, assert_whole, checksums, contents, noise, opened, project, send, stored
from tests.locker.proxy import Proxy, proxying

OLD = {"scripts/10-a.sh": b"old", "files/gone": b"old"}
NEW = {"scripts/10-a.sh": b"new", "files/more": b"", "files/big": noise(2_100)}
BLOBS = {"a": b"blob"}
MANIFEST = "projects/site/1.0.0/manifest.json"
LOST = Cut("after")
"""The server has done it, and the client does not know."""
FAULTS: dict[str, tuple[Fault, ...]] = {
    "on the way": (Cut("before"), Cut("body")), "done": (LOST,), "half an answer": (Cut("answer", reset=False),),
}  # fmt: skip


class Flow:
    """A first upload, or one that replaces another content, watched at every request."""

    def __init__(self, tmp_path: Path, server: azurite.Azurite, proxy: Proxy, *, force: bool) -> None:
        self.new = project(tmp_path / "new", NEW, blobs=BLOBS)
        self.old = project(tmp_path / "old", OLD, blobs=BLOBS)
        self.server, self.proxy, self.force = server, proxy, force
        self.container = server.new_container()
        self.states = contents(self.old), contents(self.new)

    def fresh(self) -> None:
        """The state before the upload, in a container of its own."""
        self.proxy.observe = None
        self.proxy.forget()
        self.container = self.server.new_container()
        if self.force:
            for name, content in self.states[0].items():
                self.container.put(name, content)
        self.proxy.observe = self._observed

    def _observed(self, request: Request) -> None:
        """A request that only reads leaves the state as it was seen after the one before."""
        if request.method not in ("GET", "HEAD"):
            assert_whole(self.container, *self.states)

    def run(self, limits: Limits) -> CycleForgeError | None:
        """Upload through the proxy."""
        try:
            send(opened(self.proxy.url, self.container, limits), self.new, force=self.force)
        except CycleForgeError as error:
            return error
        return None

    def right(self) -> None:
        """The locker is exactly what it should be."""
        md5s = {name: azurite.md5_of(content) for name, content in self.states[1].items()}
        assert checksums(self.container) == md5s

    def count(self) -> int:
        """Requests of an undisturbed run."""
        self.fresh()
        assert self.run(ONCE) is None
        assert stored(self.container) == self.states[1]
        return len(self.proxy.requests)


@pytest.fixture(params=[False, True], ids=["first", "forced"])
def flow(request: pytest.FixtureRequest, tmp_path: Path, azurite: azurite.Azurite, proxy: Proxy) -> Flow:
    return Flow(tmp_path, azurite, proxy, force=request.param)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", FAULTS)
def test_a_cut_at_any_request(flow: Flow, kind: str) -> None:
    """Once without second tries, so that the run ends there; then again without faults."""
    step = 3 if kind == "half an answer" else 1
    for number in range(1, flow.count() + 1, step):
        flow.fresh()
        flow.proxy.decide = at(number, FAULTS[kind][number % len(FAULTS[kind])])
        error = flow.run(ONCE)
        assert error is None or (error.exit_code == 4 and error.hint), f"at {number}: {error}"
        flow.proxy.forget()
        assert flow.run(ONCE) is None, f"after a cut at {number}"
        flow.right()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", FAULTS)
def test_every_request_fails_once(flow: Flow, kind: str) -> None:
    """And is tried again, so that the run succeeds."""
    flow.fresh()
    seen: set[tuple[object, ...]] = set()

    def decide(request: Request) -> Fault | None:
        key = (request.operation, request.path, *sorted(request.query.items()), request.headers.get("if-match"))
        if key in seen:
            return None
        seen.add(key)
        return FAULTS[kind][len(seen) % len(FAULTS[kind])]

    flow.proxy.decide = decide
    assert flow.run(QUICK) is None
    assert len(seen) > 8
    flow.right()


def test_a_server_that_is_slow(flow: Flow) -> None:
    flow.fresh()
    flow.proxy.decide = lambda request: Delay(0.2) if request.number % 3 == 0 else None
    assert flow.run(QUICK) is None
    flow.right()


def test_a_server_that_does_not_answer(flow: Flow) -> None:
    """The silence ends the try; the second one succeeds."""
    flow.fresh()
    flow.proxy.decide = at(3, Delay(2))
    assert flow.run(Limits(connect_s=1, silence_s=0.3, tries=3, pause_s=0.01, total_s=5)) is None
    flow.right()


def test_a_server_that_goes_and_comes_back(tmp_path: Path, keeping: azurite.Azurite) -> None:
    """Killed in the middle and started again a moment later: the run waits for it."""
    with proxying(keeping) as proxy:
        flow = Flow(tmp_path, keeping, proxy, force=False)
        flow.fresh()
        proxy.observe = None
        down = threading.Event()

        def away() -> None:
            assert down.wait(60)
            proxy.close()
            keeping.restart()
            proxy.open()

        thread = threading.Thread(target=away)
        thread.start()

        def decide(request: Request) -> Fault | None:
            if request.number >= 5 and not down.is_set():
                down.set()
            return None

        proxy.decide = decide
        patient = Limits(connect_s=2, silence_s=5, tries=60, pause_s=0.1, longest_pause_s=1, total_s=60)
        assert flow.run(patient) is None
        thread.join()
        flow.right()


# ---------------------------------------------------------------- the whole command


def command(flow: Flow, folder: Path, *words: str, ignored: bool = False) -> subprocess.Popen[bytes]:
    """`cycleforge upload` as a process of its own, with Ctrl-C ignored as a script's background job has it."""
    environment = {**os.environ, "AZURE_STORAGE_KEY": azurite.KEY}
    address = f"{flow.proxy.url}/{flow.container.name}"
    trap = "trap '' INT; " if ignored else ""
    return subprocess.Popen(
        ["sh", "-c", f'{trap}exec "$@"', "sh", *COMMAND, "upload", str(folder), "--locker", address, *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def signalled(
    flow: Flow, sign: signal.Signals, when: Callable[[Request], bool], times: int = 1, *, ignored: bool = False
) -> tuple[int, bytes]:
    """Run the command and send it a signal at one of its requests; exit code and what it said."""
    holder: list[subprocess.Popen[bytes]] = []
    left = [times]

    def decide(request: Request) -> Fault | None:
        if left[0] and when(request):
            left[0] -= 1
            holder[0].send_signal(sign)
            return Delay(0.1)
        return None

    flow.proxy.decide = decide
    holder.append(command(flow, flow.new, *(["--force"] if flow.force else []), ignored=ignored))
    out, said = holder[0].communicate()
    assert left == [0], f"the signal was never sent: {out!r} {said!r}"
    return holder[0].returncode, said


def test_a_killed_command_leaves_nothing_half_seen(flow: Flow) -> None:
    for number in range(1, flow.count() + 1, 3):
        flow.fresh()
        code, _ = signalled(flow, signal.SIGKILL, lambda request, number=number: request.number == number)  # type: ignore[misc]
        assert code in (-signal.SIGKILL, 0)
        flow.proxy.forget()
        assert flow.run(ONCE) is None
        flow.right()


def test_ctrl_c_says_what_is_not_there_yet(flow: Flow) -> None:
    flow.fresh()
    before = stored(flow.container)
    code, said = signalled(flow, signal.SIGINT, lambda request: request.method == "PUT")
    assert code == INTERRUPTED
    assert b"not in the locker yet: site 1.0.0" in said
    assert b"Traceback" not in said
    assert (MANIFEST in flow.container.names()) == (MANIFEST in before)
    flow.proxy.forget()
    assert flow.run(ONCE) is None
    flow.right()


def test_ctrl_c_during_the_switch_waits_for_its_end(tmp_path: Path, azurite: azurite.Azurite, proxy: Proxy) -> None:
    flow = Flow(tmp_path, azurite, proxy, force=True)
    flow.fresh()
    code, said = signalled(flow, signal.SIGINT, lambda request: request.operation == "Delete Blob")
    assert code == INTERRUPTED
    assert b"finishing the switch" in said
    flow.right()


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path, azurite: azurite.Azurite, proxy: Proxy) -> None:
    flow = Flow(tmp_path, azurite, proxy, force=True)
    flow.fresh()
    switching = re.compile("Delete Blob|Put Block List")
    code, _ = signalled(flow, signal.SIGINT, lambda request: bool(switching.match(request.operation)), times=2)
    assert code == INTERRUPTED
    flow.proxy.forget()
    flow.force = False
    assert flow.run(ONCE) is None
    flow.right()


def test_an_ignored_ctrl_c_stays_ignored(tmp_path: Path, azurite: azurite.Azurite, proxy: Proxy) -> None:
    """A script's background job must not end because someone ends the script's foreground."""
    flow = Flow(tmp_path, azurite, proxy, force=True)
    flow.fresh()
    any_moment = re.compile("Put Block|Delete Blob|Put Block List")
    code, said = signalled(
        flow, signal.SIGINT, lambda request: bool(any_moment.match(request.operation)), times=4, ignored=True
    )
    assert (code, b"switch" in said) == (0, False), said
    flow.right()
