"""The command line: flags in, exit code out. `main` is the only place that catches errors and the only one that exits.

Start-up counts: nothing but the standard library's small modules is imported before the verb is known.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from ..errors import BUG, INTERRUPTED, OUTPUT_CLOSED, CannotWrite, CycleForgeError, ProgramMissing
from ..version import __version__
from . import answer

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing costs more than the rest of `--help`
    from typing import NoReturn

__all__ = ["main", "process"]

_POSIX_MODULES = frozenset({"fcntl", "grp", "pwd", "resource", "termios"})


def process() -> NoReturn:
    """`main` as a process of its own.

    It lives for a moment: nothing is gained by searching for garbage, nor by tearing down every module at the end,
    which costs a tenth of a build. Everything is written and flushed before.
    """
    gc.disable()
    _open_streams()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or OUTPUT_CLOSED
    os._exit(code)


def _open_streams() -> None:
    """Whoever starts us may have closed standard input, output or error (`<&-`, a service manager).

    Input is then at its end, errors go nowhere, and the first result says that it cannot be written. Otherwise the next
    file or connection would get the number of the stream.
    """
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, flags)
            os.dup2(null, number)
            if null != number:
                os.close(null)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (`generator.errors.exit_codes` lists them)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    answer.now = answer.Answer()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter gets its escape instead of our traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if sys.platform == "win32":
        return _failed(_not_posix(), arguments)
    try:
        code = _run(arguments)
    except SystemExit as stop:  # argparse after --help and --version
        return _flushed(stop.code if isinstance(stop.code, int) else 0)
    except KeyboardInterrupt:
        text = "interrupted; nothing is half written"
        print(f"\n{text}", file=sys.stderr)
        _answer(INTERRUPTED, {"message": text, "hint": None}, arguments)
        return _flushed(INTERRUPTED)
    except BrokenPipeError:
        _drop_output()
        return OUTPUT_CLOSED
    except CycleForgeError as error:
        return _failed(error, arguments)
    except OSError as error:
        failure = _no_room(error)
        if failure is not None:
            return _failed(failure, arguments)
        return _bug(error, arguments)
    except ModuleNotFoundError as error:
        return _failed(_not_posix(), arguments) if error.name in _POSIX_MODULES else _bug(error, arguments)
    except Exception as error:
        return _bug(error, arguments)
    return code


def _run(arguments: Sequence[str]) -> int:
    from .parser import run

    code = run(arguments)
    if answer.now.is_given:
        from .common import emit_answer

        emit_answer(code)
    sys.stdout.flush()
    return code


def _failed(error: CycleForgeError, arguments: Sequence[str]) -> int:
    """Say it on standard error; --json has promised an answer on standard output, too."""
    from .common import print_error

    if not error.is_told:
        print_error(error)
    _answer(error.exit_code, {"message": error.message, "hint": error.hint}, arguments)
    return _flushed(error.exit_code)


def _bug(error: Exception, arguments: Sequence[str]) -> int:
    _report_bug(error)
    text = f"this is a bug in CycleForge {__version__} ({type(error).__name__})"
    _answer(BUG, {"message": text, "hint": None}, arguments)
    return _flushed(BUG)


def _not_posix() -> CycleForgeError:
    return ProgramMissing(
        "CycleForge runs on Linux and macOS; this Python is for another system",
        "on Windows, use it in WSL (`wsl --install`) or in Azure Cloud Shell",
    )


def _no_room(error: OSError) -> CycleForgeError | None:
    """A disk that is full or read-only, wherever it is met first: our own scratch files are on one, too."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return None
    where = f"cannot write {error.filename}" if error.filename else "cannot write a file of this machine"
    return CannotWrite(f"{where}: {os.strerror(error.errno).lower()}", "make room, or set TMPDIR to a folder with some")


def _answer(code: int, error: dict[str, str | None], arguments: Sequence[str]) -> None:
    """The error in the only JSON on standard output."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if answer.now.is_printed or ("--json" not in own and not answer.now.is_given):
        return
    from .common import emit_answer

    with suppress(BrokenPipeError, CannotWrite):
        emit_answer(code, error)


def _report_bug(error: Exception) -> None:
    """Say what to do. The exception's own text stays out: it may hold a value of the environment."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "an unknown location"
    if trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__', '?')}, line {trace.tb_lineno}"
    print(
        f"cycleforge: this is a bug in CycleForge {__version__}, not in your definition "
        f"({type(error).__name__} in {place})\n"
        "  hint: report it in the issue tracker of CycleForge, with this message, the command and the definition\n"
        "        (without secrets); CYCLEFORGE_DEBUG=1 shows the traceback to add",
        file=sys.stderr,
    )
    if os.environ.get("CYCLEFORGE_DEBUG"):
        import re
        import traceback

        # The text of an error of the network names the whole request, and with it a signature.
        print(re.sub(r"\bsig=[^&\s'\")]+", "sig=…", "".join(traceback.format_exception(error))), file=sys.stderr)


def _flushed(code: int) -> int:
    """The code, after the output has gone out; a reader that went away is no reason for a second error."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return code


def _drop_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush is quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
