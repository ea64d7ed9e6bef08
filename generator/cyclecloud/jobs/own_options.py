"""Options of sbatch in the user's own batch files that would not do what their user means by them."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import CannotRead

_DIRECTIVE = re.compile(rb"#SBATCH[ \t]+(.*)")
_DEPENDENCY = re.compile(rb"(?:^|\s)(?:--dependency(?:[=\s]|$)|-d)")
_WAIT = re.compile(rb"(?:^|\s)(?:--wait|-W)(?:\s|$)")


def check(file: Path, *, is_first: bool) -> None:
    """Raises CannotRead for an option that the order of the steps replaces, and for one that would hold sbatch."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise CannotRead(f"cannot read {file}: {(error.strerror or 'error').lower()}") from error
    for number, line in enumerate(lines, 1):
        # sbatch reads no further: source of sbatch, src/sbatch/opt.c, next_line and get_argument.
        if line.strip() and not line.startswith(b"#"):
            return
        found = _DIRECTIVE.match(line)
        options = found[1].partition(b" #")[0] if found else b""
        if _WAIT.search(options):
            raise CannotRead(
                f"{file}:{number}: sbatch would wait (--wait)", "leave it out; `cycleforge run --wait` waits"
            )
        if _DEPENDENCY.search(options) and not is_first:
            text = (
                f"{file}:{number}: a dependency of its own (--dependency) would be replaced by that on the step before"
            )
            raise CannotRead(text, "put it into the first step, for which all others wait")
