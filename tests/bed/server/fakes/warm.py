"""Starts the program again and again from one interpreter that has loaded, of the standard library, what it imports.

A process of its own for every run: environment, descriptors, folder, session, exit status and end by a signal are those
of a program that was just started, and the program's own modules are loaded from the server's folder each time. What is
not repeated is the start of the interpreter and some hundred imports, which take as long as all the rest of a run.
Standard input is a socket: a line of JSON and three descriptors per run, and back comes the status of `waitpid`.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
from typing import Any

PACKAGE = "cycleforge_bootstrap"


def main() -> None:
    """Until the other side hangs up; in the child of a fork until the program ends."""
    sys.path.insert(0, sys.argv[1])
    __import__(f"{PACKAGE}.boot")
    for name in [each for each in sys.modules if each.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    del sys.path[0]
    sys.path_importer_cache.clear()
    gc.collect()
    gc.freeze()
    asked = socket.socket(fileno=0)
    while True:
        text, descriptors, _, _ = socket.recv_fds(asked, 2**20, 3)
        if not text:
            return
        child = os.fork()
        if child == 0:
            become(json.loads(text), descriptors)
            return
        for each in descriptors:
            os.close(each)
        asked.sendall(b"%d\n" % os.waitpid(child, 0)[1])


def become(wanted: dict[str, Any], descriptors: list[int]) -> None:
    """This process is the program from here on; `SystemExit` goes up to the interpreter, as always."""
    os.setsid()
    for target, each in enumerate(descriptors):
        os.dup2(each, target)
        os.close(each)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    # As `-m` and PYTHONPATH.
    sys.path[:0] = [wanted["folder"], wanted["environment"]["PYTHONPATH"]]
    if wanted["script"]:
        sys.argv = [wanted["script"], "-m", PACKAGE, *wanted["arguments"]]
        runpy.run_path(wanted["script"], run_name="__main__")
    else:
        sys.argv = [PACKAGE, *wanted["arguments"]]
        runpy.run_module(PACKAGE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
