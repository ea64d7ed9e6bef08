"""Throw-away machines: an overlay of a root with mounts, processes, host name, devices and network of its own.

    with overlay_machine(node_root()) as machine:
        result = machine.run("echo hello >/etc/motd; exit 3")
        assert (result.code, sorted(machine.changes())) == (3, ["etc/motd"])

About 20 ms each. Nothing reaches the host: /sys and /proc/sys are read-only, the network is a loopback of its own, and
everything ends with the process that holds the machine, also when the test is killed.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from tests.bed.machines.roots import needs

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Network = Literal["none", "host"] | Path
"""A loopback of its own, the host's network, or a network namespace (a file that `ip netns` or the kernel made)."""

SCRIPT = Path(__file__).with_name("machine.sh")


@dataclass(frozen=True)
class Bind:
    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Result:
    """Exit code (negative: the signal) and what was written to both streams, in order."""

    code: int
    output: str


@dataclass(frozen=True)
class Entry:
    """A file, folder or link: what two machines are compared by. `gone` was there in the lower layer."""

    kind: Literal["file", "folder", "link", "other", "gone"]
    mode: int = 0
    owner: tuple[int, int] = (0, 0)
    content: bytes = field(default=b"", repr=False)
    """Of a file its bytes, of a link its target, of a device its number."""


class Machine:
    """A running machine. `pid` is a process of the host in its namespaces, `root` and `upper` (what was changed) are
    its root and its layer as the host reaches them, `enter` is the command that enters it.
    """

    def __init__(
        self, name: str, pid: int, root: Path, upper: Path, lower: Sequence[Path], enter: Sequence[str]
    ) -> None:
        self.name, self.pid, self.root, self.upper = name, pid, root, upper
        self._lower, self._enter = tuple(lower), tuple(enter)

    def run(
        self,
        script: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 600,
    ) -> Result:
        """Run Bash text as root, with nothing of the caller's environment; `$1` and so on are the arguments.

        TimeoutExpired after its whole session was killed.
        """
        variables = {"HOME": "/root", "TERM": "dumb", "PATH": PATH} | dict(environment or {})
        with subprocess.Popen(
            [*self._enter, "/bin/bash", "-c", script, "script", *arguments], env=variables,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Result(process.returncode, output.decode(errors="replace"))

    def ok(self, script: str, *arguments: str, **options: float) -> str:
        result = self.run(script, *arguments, timeout_s=options.get("timeout_s", 600))
        assert result.code == 0, f"{script}\nexit code {result.code}\n{result.output}"
        return result.output

    def path(self, inside: str) -> Path:
        """A path of the machine as the host reaches it; links are followed within the machine."""
        found, todo, links = PurePosixPath("/"), list(PurePosixPath(inside).parts), 0
        while todo:
            part = todo.pop(0)
            if part == "/":
                found = PurePosixPath("/")
            elif part == "..":
                found = found.parent
            else:
                here = self.root / (found / part).relative_to("/")
                if here.is_symlink():
                    links += 1
                    if links > 40:
                        raise OSError(f"too many links in {inside}")
                    todo[:0] = PurePosixPath(here.readlink()).parts
                else:
                    found /= part
        return self.root / found.relative_to("/")

    def read(self, inside: str) -> str:
        return self.path(inside).read_text()

    def write(self, inside: str, text: str | bytes, mode: int = 0o644) -> None:
        target = self.path(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        target.chmod(mode)

    def changes(self, *, since_root: bool = False) -> dict[str, Entry]:
        """Exactly what differs from the layers below, or from the lowest one: created, changed and removed files,
        folders and links.

        /run, /tmp, /dev, /proc and /sys are not of the root and never appear.
        """
        above, below = (
            ([self.upper, *self._lower[:-1]], self._lower[-1:]) if since_root else ([self.upper], self._lower)
        )
        found: dict[str, Entry] = {}
        for layer in above:
            for name in _names(layer):
                if name not in found:
                    found[name] = _entry(f"{layer}/{name}")
        return {name: entry for name, entry in sorted(found.items()) if entry != _first(below, name)}


GONE = Entry("gone")


def _names(layer: Path) -> Iterator[str]:
    """All that is in a layer, relative to it; by plain strings, because a comparison has thousands of them."""
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(f"{layer}/{folder}") as entries:
            for entry in entries:
                yield folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{folder}{entry.name}/")


def _first(layers: Sequence[Path], name: str) -> Entry:
    for layer in layers:
        if os.path.lexists(path := f"{layer}/{name}"):
            return _entry(path)
    return GONE


def _entry(path: str) -> Entry:
    status = os.lstat(path)
    mode, owner = stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:  # noqa: PTH123
            return Entry("file", mode, owner, file.read())
    if stat.S_ISDIR(status.st_mode):
        # A folder that was removed and made again hides what was below.
        return Entry("folder", mode, owner, b"opaque" if "trusted.overlay.opaque" in os.listxattr(path) else b"")
    if stat.S_ISLNK(status.st_mode):
        return Entry("link", 0, owner, os.readlink(path).encode())  # noqa: PTH115
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        return GONE
    return Entry("other", mode, owner, str(status.st_rdev).encode())


def differences(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> list[str]:
    """What differs between two results of `changes`, one line each; for the message of an assertion."""
    lines = []
    for name in sorted({*one, *other}):
        left, right = one.get(name), other.get(name)
        if left != right:
            lines.append(f"{name}: {_words(left)} / {_words(right)}")
    return lines


def _words(entry: Entry | None) -> str:
    return "absent" if entry is None else f"{entry} {entry.content[:2000]!r}"


@contextmanager
def overlay_machine(
    root: Path,
    *layers: Path,
    name: str = "node-1",
    binds: Sequence[Bind] = (),
    network: Network = "none",
) -> Iterator[Machine]:
    """A machine on `root`; each layer (made by `save`) is above the one before. Ended with everything in it."""
    needs("unshare", "nsenter", "mount", "ip")
    lower = [*reversed(layers), root]
    with held("overlay", lower, name, binds, network, {}) as (holder, folder):
        (pid,) = children(holder)
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid")
        outside = Path(f"/proc/{pid}/root{folder}")
        # By nsenter itself: a program less for every command of a test.
        enter = ["nsenter", f"--target={pid}", *namespaces, f"--root={outside}/m", f"--wd={outside}/m", "--"]
        yield Machine(name, pid, outside / "m", outside / "u", lower, enter)


@contextmanager
def held(
    kind: str,
    lower: Sequence[Path],
    name: str,
    binds: Sequence[Bind],
    network: Network,
    environment: Mapping[str, str],
) -> Iterator[tuple[int, Path]]:
    """Run machine.sh until it says `ready`; the process number of `unshare`, and the folder. Ends it at exit."""
    folder = Path(tempfile.mkdtemp(prefix="cfm", dir="/tmp"))
    command = ["unshare", "--mount", "--propagation", "private", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    if network == "none":
        command += ["--net"]
    elif network != "host":
        command = ["nsenter", f"--net={network}", "--", *command]
    command += ["bash", str(SCRIPT), kind, str(folder), ":".join(map(str, lower)), name]
    for bind in binds:
        command += [str(bind.source), bind.target, "rw" if bind.writable else "ro"]
    variables = {"PATH": PATH, "LC_ALL": "C", "LOOPBACK": "yes" if network == "none" else "no", **environment}
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=variables, start_new_session=True
        ) as process,
    ):
        try:
            _wait_until_ready(process, name)
            yield process.pid, folder
        except MachineError as error:
            _end(process)
            log.seek(0)
            last = "\n".join(log.read().decode(errors="replace").splitlines()[-20:])
            raise MachineError(f"{error}:\n{last}") from None
        finally:
            _end(process)


class MachineError(RuntimeError):
    """A machine that did not start, with the last lines that it wrote."""


def _wait_until_ready(process: subprocess.Popen[bytes], name: str) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        raise MachineError(f"{name} did not start")


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def saved(machine: Machine) -> Iterator[Path]:
    """A copy of the machine's changes, to be put as a layer between the root and another machine."""
    with tempfile.TemporaryDirectory(prefix="cfl") as name:
        subprocess.run(["cp", "-a", str(machine.upper), f"{name}/layer"], check=True)
        yield Path(name) / "layer"
