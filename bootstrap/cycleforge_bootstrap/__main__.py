"""`cycleforge-bootstrap run | status [--json] | retry`.

Exit status: 0 succeeded, 1 failed, 2 wrong usage, 3 still running or not started, 4 another run holds the lock.
"""

import json
import os
import sys
from pathlib import Path
from typing import Dict, Sequence

from .core import Paths, StepError
from .status import CODES, read_status, summary


def main(arguments: Sequence[str], environment: Dict[str, str]) -> int:
    """Run one command and return the exit status."""
    paths = Paths(Path(environment.get("CYCLEFORGE_ROOT", "/")))
    command = tuple(arguments)
    if command in (("status",), ("status", "--json")):
        return _show(paths, as_json="--json" in command)
    if command in (("run",), ("retry",)):
        # `status` is asked again and again: it does without what only a run needs.
        from . import boot

        return boot.run(paths, environment) if command == ("run",) else boot.retry(paths)
    sys.stderr.write("usage: cycleforge-bootstrap run | status [--json] | retry\n")
    return 2


def _show(paths: Paths, as_json: bool) -> int:
    document = read_status(paths)
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write(summary(document))
    return CODES.get(str(document["state"]), 3) if document else 3


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], dict(os.environ)))
    except StepError as error:
        sys.stderr.write("error: {}\n{}\n".format(error.message, error.hint))
        sys.exit(1)
