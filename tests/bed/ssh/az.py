"""The stand-in of `az` for those who connect: `network bastion tunnel`.

Sources: https://github.com/Azure/azure-cli-extensions/blob/144a628/src/bastion/azext_bastion/tunnel.py (one client at a
time: both threads are joined before the next `accept`; each side's end closes both; the words about the port),
…/custom.py (`create_bastion_tunnel`: what it says on standard error, and the SKU that it wants). Like the installed
`az` it is a script that starts Python and waits: https://github.com/Azure/azure-cli/blob/dev/build_scripts/debian/build.sh

`AZ_STAND_IN` is a JSON file: {"bastions": {name: {"group": …, "sku": …}}, "machines": {id: [address, …ports that are
passed as others]}, "log": file}.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

PROGRAM = '#!/bin/sh\n"{python}" -m tests.bed.ssh.az "$@"\n'


def placed(folder: Path, python: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "az"
    program.write_text(PROGRAM.format(python=python))
    program.chmod(0o755)
    return program


def still_runs(pid: int, state: Path) -> bool:
    """Whether a process that has read this state does; by now its number may be that of another program."""
    process = Path(f"/proc/{pid}")
    try:
        words, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
    except OSError:
        return False
    return b"tests.bed.ssh.az" in words and f"AZ_STAND_IN={state}".encode() in environment.split(b"\0")


def fail(text: str) -> NoReturn:
    print(f"ERROR: {text}", file=sys.stderr)
    sys.exit(1)


def options(words: list[str]) -> dict[str, str]:
    """Options with one value each; flags have none."""
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word
            found[name] = ""
        else:
            found[name] = word
    return found


def tunnel(state: dict[str, Any], given: dict[str, str]) -> None:
    """Serve one client after the other."""
    unknown = given.keys() - {
        "--name", "--resource-group", "--target-resource-id", "--resource-port", "--port", "--subscription"
    }  # fmt: skip
    if unknown:
        fail(f"unrecognized arguments: {' '.join(sorted(unknown))}")
    bastion = state["bastions"].get(given["--name"])
    if bastion is None or bastion["group"] != given["--resource-group"]:
        fail(f"(ResourceNotFound) The Resource 'Microsoft.Network/bastionHosts/{given['--name']}' was not found.")
    if bastion["sku"] not in ("Standard", "Premium"):
        fail("Bastion Host SKU must be Standard or Premium and Native Client must be enabled.")
    address, port = state["machines"][given["--target-resource-id"]], int(given["--resource-port"])
    local = int(given["--port"])
    with socket.socket() as probe:
        if probe.connect_ex(("", local)) == 0:
            fail("Defined port is currently unavailable")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("localhost", local))
        print(f"Opening tunnel on port: {local}", file=sys.stderr)
        print(f"Tunnel is ready, connect on port {local}", file=sys.stderr)
        print("Ctrl + C to close", file=sys.stderr, flush=True)
        listener.listen(100)
        while True:
            client, _ = listener.accept()
            try:
                far = socket.create_connection((address, port))
            except OSError:
                client.close()
                continue
            threads = [
                threading.Thread(target=relay, args=(client, far)),
                threading.Thread(target=relay, args=(far, client)),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()


def relay(source: socket.socket, target: socket.socket) -> None:
    """Until either end is over; then both are."""
    try:
        while data := source.recv(4096):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def main(words: list[str]) -> None:
    state = json.loads(Path(os.environ["AZ_STAND_IN"]).read_text())
    with Path(state["log"]).open("a") as log:
        log.write(json.dumps([os.getpid(), *words]) + "\n")
    if words[:3] == ["network", "bastion", "tunnel"]:
        tunnel(state, options(words[3:]))
    else:
        fail(f"'{' '.join(words)}' is misspelled or not recognized by the system.")


if __name__ == "__main__":
    main(sys.argv[1:])
