"""`python -m tests.tutorial.tell` writes docs/tutorial.md with what its commands print now; a part of `make accept`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from generator.files import assets
from tests.tutorial.page import told
from tests.tutorial.user import at_a_shell

PAGE = assets.root() / "docs/tutorial.md"


def main() -> None:
    """Type it all, and write; where there cannot be a cluster, the page stays as it is."""
    try:
        with tempfile.TemporaryDirectory() as folder, at_a_shell(Path(folder)) as typed:
            PAGE.write_text(told(PAGE.read_text(encoding="utf-8"), typed), encoding="utf-8")
    except pytest.skip.Exception as reason:
        print(f"{PAGE.name} stays as it is: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
