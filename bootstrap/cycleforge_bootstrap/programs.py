"""Running other programs: with a limit, without a shell, and with no secret among the arguments that is not meant."""

import contextlib
import ctypes
import fcntl
import os
import pty
import select
import signal
import subprocess
import tempfile
import termios
import time
from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

from .core import Context, StepError, tail

UMASK = 0o022
"""Of every program. Ours is 077, but what an installer or CycleCloud itself writes must be readable for others."""

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


class Result:
    """Exit status and output of a program that ended by itself; `said` is its end on one line, for messages."""

    def __init__(self, argv: Sequence[str], status: int, output: str, errors: str) -> None:
        self.argv = list(argv)
        self.status = status
        self.output = output
        self.errors = errors
        self.said = ""


def run(
    context: Context,
    argv: Sequence[str],
    limit: float,
    folder: Optional[Path] = None,
    home: Optional[Path] = None,
    terminal: bool = False,
    typed: str = "",
    shows_secret: bool = False,
) -> Result:
    """Run a program for at most `limit` seconds (and no longer than its step) and return what it said.

    Its standard input is `typed` and then ends, so that no dialogue waits. `terminal` gives it a terminal instead,
    because some releases of the CycleCloud CLI are said to hang without one. `home` is its HOME, else a private folder.
    `shows_secret` permits a secret among the arguments, which every user of the server can read meanwhile. StepError
    if it cannot be started or ran past its limit; then its whole process group is ended. It also ends when we are
    killed: the unit itself spares other processes.
    """
    if not shows_secret and _has_secret(context, argv):
        raise StepError("refused to put a secret on a command line", permanent=True)
    name = " ".join([Path(argv[0]).name, *argv[1:3]])
    environment = _environment(context, home or context.paths.cli_home)
    allowed = context.remaining(limit)
    seconds = context.clock.patience(allowed)
    started = context.now()
    try:
        if terminal:
            status, output = _on_terminal(argv, seconds, folder, environment)
            result = Result(argv, status, output, "")
        else:
            result = _in_background(argv, seconds, folder, environment, typed, context.paths.runtime)
    except subprocess.TimeoutExpired:
        context.clock.give_up(allowed)
        message = "`{}` did not end within {:.0f} s".format(name, allowed)
        raise StepError(message, cut_short=allowed < limit * 0.99) from None
    except OSError as error:
        raise StepError("`{}` cannot be started: {}".format(name, error.strerror)) from None
    # Cleaned before it is cut and folded: half a secret would no longer be recognised.
    result.said = tail(context.log.clean(result.errors + " " + result.output)) or "no output"
    took = context.now() - started
    context.log.write("ran {} ({:.1f} s, exit {}): {}".format(name, took, result.status, result.said))
    return result


def _has_secret(context: Context, argv: Sequence[str]) -> bool:
    """Whether an argument contains a secret; one that is too short for any site may be a harmless word."""
    secrets = [str(secret) for secret in context.secrets.values() if len(str(secret)) >= 8]
    return any(secret in word for secret in secrets for word in argv)


def _environment(context: Context, home: Path) -> Dict[str, str]:
    """A small, known environment; in tests also the variables that the fakes read.

    PYTHONPATH is not among them: ours breaks the CLI. Source: Azure/azurehpc scripts/cyclecli_install.sh
    """
    keep = ("PATH", "TZ", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    environment = {
        name: value
        for name, value in context.environment.items()
        if name in keep or name.startswith(("CYCLEFORGE_", "FAKE_"))
    }
    environment.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    environment.update({"HOME": str(home), "LC_ALL": "C.UTF-8"})
    return environment


def _as_child() -> None:
    """In the new process: end when the bootstrap is killed, and write files that others can read."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.umask(UMASK)


def _in_background(
    argv: Sequence[str], seconds: float, folder: Optional[Path], environment: Dict[str, str], typed: str, scratch: Path
) -> Result:
    """Output goes to files without a name: a daemon that inherits a pipe would keep us waiting for its end."""
    with contextlib.ExitStack() as opened:
        given, output, errors = [opened.enter_context(tempfile.TemporaryFile(dir=str(scratch))) for _ in range(3)]
        given.write(typed.encode("utf-8"))
        given.seek(0)
        process = subprocess.Popen(
            list(argv),
            stdin=given if typed else subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=str(folder) if folder else None,
            env=environment,
            start_new_session=True,
            preexec_fn=_as_child,
        )
        try:
            process.wait(timeout=seconds)
        except BaseException:
            _end(process)
            raise
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return Result(argv, process.returncode, texts[0], texts[1])


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program and everything it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _on_terminal(
    argv: Sequence[str],
    seconds: float,
    folder: Optional[Path],
    environment: Dict[str, str],
) -> Tuple[int, str]:
    ours, theirs = pty.openpty()
    # What is typed must not be echoed into the output that we log.
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)

    def take_terminal() -> None:
        _as_child()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    deadline = time.monotonic() + seconds
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=str(folder) if folder else None,
            env=environment,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
    except OSError:
        os.close(ours)
        os.close(theirs)
        raise
    os.close(theirs)
    try:
        output = _read_to_end(ours, deadline, argv, seconds)
        process.wait(timeout=max(0.05, deadline - time.monotonic()))
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(ours)
    return process.returncode, output


def _read_to_end(descriptor: int, deadline: float, argv: Sequence[str], seconds: float) -> str:
    """Read until the other side hangs up."""
    output = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise subprocess.TimeoutExpired(list(argv), seconds)
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # EIO: the last holder of the terminal is gone
            chunk = b""
        if not chunk:
            return output.decode("utf-8", "replace")
        output += chunk
