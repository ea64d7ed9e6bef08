"""One bridge and a network namespace per machine. The bridge lives in one of them, so addresses never collide."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

BRIDGE = "02:00:00:00:00:fe"
HOLD = "echo ready; read -r _"
"""A namespace lives as long as this shell's standard input: a test that is killed closes it, and no name is left."""


@contextmanager
def network(hub: str, addresses: Mapping[str, str]) -> Iterator[dict[str, Path]]:
    """Namespaces by machine name, each with `eth0` and its address; the machine `hub` is where the bridge is."""
    with ExitStack() as stack:
        holders = {name: stack.enter_context(_namespace()) for name in addresses}
        here = holders[hub]
        # Without an address of its own a bridge takes that of one of its links, another one when links come and go.
        _ip(here, f"link add eth0 address {BRIDGE} type bridge", f"addr add {addresses[hub]}/24 dev eth0",
            "link set eth0 up", "link set lo up")  # fmt: skip
        for place, (name, address) in enumerate(addresses.items()):
            if name != hub:
                _ip(here, f"link add port{place} type veth peer name eth0 netns {holders[name]}",
                    f"link set port{place} master eth0 up")  # fmt: skip
                _ip(holders[name], f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up")
        yield {name: _path(pid) for name, pid in holders.items()}


@contextmanager
def _namespace() -> Iterator[int]:
    """A process in a network namespace of its own."""
    with subprocess.Popen(
        ["unshare", "--net", "--", "sh", "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("no network namespace: see the line of unshare above")
        yield process.pid


def _path(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net")


def _ip(pid: int, *lines: str) -> None:
    text = "\n".join(lines)
    result = subprocess.run(
        ["nsenter", f"--net={_path(pid)}", "ip", "-batch", "-"], input=text, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise RuntimeError(f"ip ended with {result.returncode}: {result.stderr}\n{text}")
