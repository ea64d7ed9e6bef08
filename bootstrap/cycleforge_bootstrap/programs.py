"""Running other programs: with a limit, without a shell, and never with a secret among the arguments."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from .core import Context, StepError, tail


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
    more_environment: Optional[Dict[str, str]] = None,
    terminal: bool = False,
    answers: Sequence[Tuple[str, str]] = (),
) -> Result:
    """Run a program for at most `limit` seconds (and no longer than its step) and return what it said.

    Its standard input is empty. `terminal` gives it a terminal instead, because some releases of the CycleCloud CLI are
    said to hang without one; `answers` are (pattern of a prompt, text to type), each typed once. StepError if it cannot
    be started or ran past its limit; then its whole process group is ended.
    """
    if _has_secret(context, argv):
        raise StepError("refused to put a secret on a command line", permanent=True)
    name = " ".join([Path(argv[0]).name, *argv[1:3]])
    environment = _environment(context, more_environment or {})
    allowed = context.remaining(limit)
    seconds = context.clock.patience(allowed)
    started = context.now()
    try:
        if terminal:
            status, output = _on_terminal(argv, seconds, folder, environment, answers)
            result = Result(argv, status, output, "")
        else:
            result = _in_background(argv, seconds, folder, environment)
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


def _environment(context: Context, more: Dict[str, str]) -> Dict[str, str]:
    """A small, known environment; in tests also the variables that the fakes read."""
    keep = ("PATH", "TZ", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    environment = {
        name: value
        for name, value in context.environment.items()
        if name in keep or name.startswith(("CYCLEFORGE_", "FAKE_"))
    }
    environment.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    environment.update({"HOME": str(context.paths.cli_home), "LC_ALL": "C.UTF-8"})
    environment.update(more)
    return environment


def _in_background(argv: Sequence[str], seconds: float, folder: Optional[Path], environment: Dict[str, str]) -> Result:
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=str(folder) if folder else None,
        env=environment,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except BaseException:
        _end(process)
        raise
    return Result(argv, process.returncode, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program and everything it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def _on_terminal(
    argv: Sequence[str],
    seconds: float,
    folder: Optional[Path],
    environment: Dict[str, str],
    answers: Sequence[Tuple[str, str]],
) -> Tuple[int, str]:
    ours, theirs = pty.openpty()
    # What is typed must not be echoed into the output that we log.
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)

    def take_terminal() -> None:
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
            preexec_fn=take_terminal,  # getpass reads the controlling terminal
        )
    except OSError:
        os.close(ours)
        os.close(theirs)
        raise
    os.close(theirs)
    try:
        output = _converse(ours, deadline, list(answers), argv, seconds)
        process.wait(timeout=max(0.05, deadline - time.monotonic()))
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(ours)
    return process.returncode, output


def _converse(
    descriptor: int, deadline: float, answers: List[Tuple[str, str]], argv: Sequence[str], seconds: float
) -> str:
    """Read until the other side hangs up; type the answer when the text since the last answer matches its prompt."""
    output, since = b"", b""
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
        output, since = output + chunk, since + chunk
        for answer in answers:
            if re.search(answer[0], since.decode("utf-8", "replace"), re.IGNORECASE):
                os.write(descriptor, answer[1].encode("utf-8") + b"\n")
                answers.remove(answer)
                since = b""
                break
