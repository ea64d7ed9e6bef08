"""The command line: flags in, exit code out. `main` is the only place that catches errors and the only one that exits.

Start-up counts: nothing but the standard library's small modules is imported before the verb is known.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from ..errors import BUG, INTERRUPTED, OUTPUT_CLOSED, CycleForgeError
from ..version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing costs more than the rest of `--help`
    from typing import NoReturn

__all__ = ["main", "process"]


def process() -> NoReturn:
    """`main` as a process of its own.

    It lives for a moment: nothing is gained by searching for garbage, nor by tearing down every module at the end,
    which costs a tenth of a build. Everything is written and flushed before.
    """
    gc.disable()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or OUTPUT_CLOSED
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (`generator.errors.exit_codes` lists them)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter gets its escape instead of our traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        from .parser import run

        code = run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse after --help and --version
        return _flushed(stop.code if isinstance(stop.code, int) else 0)
    except KeyboardInterrupt:
        print("\ninterrupted; nothing is half written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return OUTPUT_CLOSED
    except CycleForgeError as error:
        from .common import print_error

        print_error(error)
        return _flushed(error.exit_code)
    except Exception as error:
        _report_bug(error)
        return _flushed(BUG)
    return code


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
