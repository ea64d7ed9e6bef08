"""`cycleforge upload` beside `az storage blob upload-batch`, against one blob server on disk.

Whole processes on both sides, the same names and bytes, a new container for every run; medians of alternating runs. az
reads the finished tree; ours packages the project first. On the loopback there is no latency, which favours the
yardstick: it sends one file after the other.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import quote

from benchmarks.azure_cli import NotInstalled, az
from benchmarks.blob_sink import sink
from benchmarks.table import Limit, Ratio
from generator.locker.look import wanted_of
from generator.projects.package import package_folder
from tests.locker.azurite import ACCOUNT, KEY, Azurite, Container, account_sas, missing_azurite
from tests.locker.proxy import proxying

FILES = 200
SMALL_ROUNDS, LARGE_ROUNDS = 11, 5
LARGE_BYTES = 200 * 2**20
HUGE_BYTES = 2 * 2**30
FLOOR_CONNECTIONS = 8
SMALL_LIMIT = 0.5
LARGE_LIMIT = 1.0
UNCHANGED_LIMIT = 0.5
MEMORY_LIMIT_MIB = 150.0
PEAK = """\
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""
"""A small process in between: a child's peak also counts the parent it was forked from."""


def upload_ratios() -> Iterator[Ratio | Limit]:
    """Speed beside az, what an unchanged run costs, and the memory that a large blob takes."""
    if reason := missing_azurite():
        print(f"--    uploads: not measured, {reason}", flush=True)
        return
    with tempfile.TemporaryDirectory(prefix="upload.") as name:
        folder = Path(name)
        yield from _beside_az(folder)
        yield _unchanged_bytes(folder)
        yield _memory(folder)


# ---------------------------------------------------------------- what is uploaded


def _small(folder: Path) -> Path:
    """A project of many files of 2 to 8 KiB, the same in every run."""
    numbers = random.Random(20260)
    project = _project(folder / "small", "many_files", "")
    for number in range(FILES):
        path = project / f"specs/default/cluster-init/files/part{number % 10}/file{number:03}.dat"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(numbers.randbytes(numbers.randint(2048, 8192)))
    return project


def _large(folder: Path, size_bytes: int, *, is_sparse: bool = False) -> Path:
    """A project whose blob has the size."""
    project = _project(folder / f"blob{size_bytes}", "one_blob", "\n[blobs]\nFiles = large.bin\n")
    (project / "blobs").mkdir()
    with (project / "blobs/large.bin").open("wb") as file:
        if is_sparse:
            file.truncate(size_bytes)
        else:
            numbers = random.Random(20261)
            for _ in range(size_bytes // 2**20):
                file.write(numbers.randbytes(2**20))
    return project


def _project(project: Path, name: str, sections: str) -> Path:
    scripts = project / "specs/default/cluster-init/scripts"
    scripts.mkdir(parents=True)
    (scripts / "010_hello.sh").write_text("#!/bin/bash\ntrue\n", encoding="utf-8")
    ini = f"[project]\nname = {name}\ntype = application\nversion = 1.0.0\n\n[spec default]\nrun_list =\n{sections}"
    (project / "project.ini").write_text(ini, encoding="utf-8")
    return project


# ---------------------------------------------------------------- beside az


@dataclass
class _Times:
    """Seconds: of whole processes, and of bare requests for the floor."""

    ours: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    az: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)

    def extend(self, more: _Times) -> None:
        """With those of another run."""
        for mine, new in (
            (self.ours, more.ours),
            (self.again, more.again),
            (self.az, more.az),
            (self.floor, more.floor),
        ):
            mine.extend(new)


def _beside_az(folder: Path) -> Iterator[Ratio]:
    try:
        program = az()
    except NotInstalled as reason:
        print(f"--    uploads beside az: not measured, {reason}", flush=True)
        return
    small, large = _small(folder), _large(folder, LARGE_BYTES)
    with _fresh_server(folder) as server:
        few = _alternate(server, _Az(program, server, folder), small, range(SMALL_ROUNDS + 1), is_small=True)
    much = _Times()
    for number in range(LARGE_ROUNDS):
        # A server that has replaced gigabytes is busy with its disk for minutes.
        with _fresh_server(folder) as server:
            _ours(small, server.new_container().url)
            theirs = _Az(program, server, folder)
            much.extend(_alternate(server, theirs, large, range(number, number + 1), is_small=False))
    floor = FILES / statistics.median(few.floor)
    print(f"      the server itself takes {floor:.0f} files/s on {FLOOR_CONNECTIONS} connections", flush=True)
    for what, times, limit in (
        (f"{FILES} small files", few, SMALL_LIMIT),
        (f"a blob of {LARGE_BYTES // 2**20} MiB", much, LARGE_LIMIT),
    ):
        cold = statistics.median(times.ours)
        yield Ratio(f"upload of {what}", cold, "az storage blob upload-batch", statistics.median(times.az), limit)
        yield Ratio(f"upload of {what}, unchanged", statistics.median(times.again), "cold", cold, UNCHANGED_LIMIT)


@contextmanager
def _fresh_server(folder: Path) -> Iterator[Azurite]:
    with tempfile.TemporaryDirectory(dir=folder, prefix="data.") as data, Azurite(folder=Path(data)) as server:
        yield server


def _alternate(server: Azurite, theirs: _Az, project: Path, rounds: range, *, is_small: bool) -> _Times:
    """Small files have a floor, and a first round that does not count: caches of files and programs fill in it."""
    times = _Times()
    tree = _as_in_the_locker(project)
    contents = {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    for number in rounds:
        containers = [server.new_container() for _ in range(2)]
        runs = [partial(_ours_twice, project, containers[0]), partial(theirs.upload, tree, containers[1])]
        if is_small:
            runs.append(partial(_floor, server.new_container(), contents))
        # Each side comes first as often as the other, and finds nothing of the other still on its way to the disk.
        for run in runs if number % 2 else reversed(runs):
            os.sync()
            measured = run()
            if number or not is_small:
                times.extend(measured)
        for container in containers:
            _demand(container, contents)
    return times


def _as_in_the_locker(project: Path) -> Path:
    """The files of an upload below their names in the locker: the yardstick sends the same names and bytes."""
    tree = project.with_name(f"{project.name}.tree")
    if not tree.exists():
        for name, payload in wanted_of(package_folder(project)).all.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with payload.open() as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
    return tree


def _demand(container: Container, contents: Mapping[str, bytes]) -> None:
    found = {blob.name: blob.size for blob in container.client().list_blobs()}
    if found != {name: len(content) for name, content in contents.items()}:
        raise RuntimeError(f"{container.name} does not hold what was uploaded: {len(found)} of {len(contents)} blobs")


def _ours_twice(project: Path, container: Container) -> _Times:
    """Cold and unchanged."""
    return _Times(ours=[_ours(project, container.url)], again=[_ours(project, container.url)])


def _ours(project: Path, url: str) -> float:
    return _seconds(_upload(project, url), _environment(AZURE_STORAGE_KEY=KEY))


def _upload(project: Path, url: str) -> list[str]:
    return [str(Path(sys.executable).parent / "cycleforge"), "upload", str(project), "--locker", url, "--json"]


class _Az:
    """The yardstick, signed in with the same key."""

    def __init__(self, program: list[str], server: Azurite, folder: Path) -> None:
        self._program = program
        self._environment = _environment(
            AZURE_STORAGE_CONNECTION_STRING=server.connection_string(), AZURE_CONFIG_DIR=str(folder / "az"),
            AZURE_CORE_COLLECT_TELEMETRY="no",
        )  # fmt: skip

    def upload(self, tree: Path, container: Container) -> _Times:
        words = ["storage", "blob", "upload-batch", "--source", str(tree), "--destination", container.name]
        quiet = ["--overwrite", "--no-progress", "--only-show-errors", "--output", "none"]
        return _Times(az=[_seconds([*self._program, *words, *quiet], self._environment)])


def _floor(container: Container, contents: Mapping[str, bytes]) -> _Times:
    """The same files by bare HTTP, signed beforehand: what is left is the server's own time."""
    left: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
    for item in contents.items():
        left.put(item)
    signature = account_sas()
    failed: list[int] = []

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", container.server.port)
        while True:
            try:
                name, content = left.get_nowait()
            except Empty:
                break
            target = f"/{ACCOUNT}/{container.name}/{quote(name)}?{signature}"
            connection.request("PUT", target, content, {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-12-02"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                failed.append(answer.status)
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(FLOOR_CONNECTIONS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if failed:
        raise RuntimeError(f"the blob server answered {failed[0]}")
    return _Times(floor=[seconds])


# ---------------------------------------------------------------- bytes and memory


def _unchanged_bytes(folder: Path) -> Limit:
    """Counted between client and server, for both kinds of projects."""
    sent = 0
    projects = (_small(folder / "counted"), _large(folder / "counted", 32 * 2**20))
    with Azurite() as server, proxying(server) as proxy:
        container = server.new_container()
        for project in projects:
            url = f"{proxy.url}/{container.name}"
            _ours(project, url)
            if not proxy.sent_bytes:
                raise RuntimeError("the cold upload did not go through the proxy")
            proxy.forget()
            _ours(project, url)
            sent += proxy.sent_bytes
            proxy.forget()
    return Limit("body bytes that unchanged uploads send", sent, "B", 0)


def _memory(folder: Path) -> Limit:
    """Of the whole process, while it sends a blob of zeros to a server that throws the bytes away."""
    project = _large(folder, HUGE_BYTES, is_sparse=True)
    with sink() as server:
        command = [sys.executable, "-c", PEAK, *_upload(project, f"{server.url}/cyclecloud")]
        start = time.perf_counter()
        done = _run(command, _environment(AZURE_STORAGE_KEY=KEY))
        seconds = time.perf_counter() - start
        stored = {name: blob.size_bytes for name, blob in server.blobs.items()}
    if stored.get("projects/one_blob/blobs/large.bin") != HUGE_BYTES or server.received_bytes < HUGE_BYTES:
        raise RuntimeError(f"the blob is not in the locker: {stored}")
    shutil.rmtree(project)
    what = f"peak memory of an upload of {HUGE_BYTES // 2**30} GiB ({seconds:.0f} s)"
    return Limit(what, int(done) / 1024, "MiB", MEMORY_LIMIT_MIB)


# ---------------------------------------------------------------- processes


def _environment(**variables: str) -> dict[str, str]:
    """As a user's shell has it, without what changes how Python or Azure's libraries work."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AZURE_", "CYCLEFORGE_"))
    }
    return kept | variables


def _seconds(command: list[str], environment: Mapping[str, str]) -> float:
    start = time.perf_counter()
    _run(command, environment)
    return time.perf_counter() - start


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
