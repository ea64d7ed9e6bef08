"""Microsoft's `az`, kept loaded: each call is a fork of a process that has imported what takes a second to import.

`python served.py SOCKET PROGRAM`, with the Python in which azure-cli is installed; nothing of ours is imported. It
writes PROGRAM, an `az` that hands its arguments, folder, environment and standard streams over the unix socket SOCKET,
and ends with the exit code that comes back. What answers is az's own entry, as azure/cli/__main__.py calls it, without
telemetry and the look for a newer az. It ends with its standard input.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as call:
    call.connect({address!r})
    asked = dict(words=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ))
    socket.send_fds(call, [b"+"], [0, 1, 2])
    call.sendall(json.dumps(asked).encode() + b"\\n")
    sys.exit(int(call.makefile().readline() or 1))
"""
_LOADED = (
    "azure.cli.core.util", "azure.cli.core.commands.arm", "azure.cli.core.aaz", "azure.mgmt.core", "msal", "requests",
    "azure.cli.command_modules.resource.custom", "azure.mgmt.resource.resources", "jmespath",
)  # fmt: skip
"""What most commands load."""


def main(address: str, program: str) -> None:
    core = importlib.import_module("azure.cli.core")
    pause = time.sleep
    # It waits up to half a minute between two looks at what the stand-in has done meanwhile.
    time.sleep = lambda seconds: pause(min(float(seconds), 0.01))
    for name in _LOADED:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(16)
        Path(program).write_text(_PROGRAM.format(python=sys.executable, address=address))
        Path(program).chmod(0o755)
        print("ready", flush=True)
        threading.Thread(target=_until_the_end, daemon=True).start()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            call, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(call, core)
            call.close()


def _until_the_end() -> None:
    sys.stdin.read()
    os._exit(0)


def _answer(call: socket.socket, core: Any) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(socket.recv_fds(call, 1, 3)[1]):
        os.dup2(stream, number)
    asked = json.loads(call.makefile().readline())
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv = ["az", *asked["words"]]
    try:
        code = core.get_default_cli().invoke(asked["words"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    call.sendall(f"{code or 0}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
