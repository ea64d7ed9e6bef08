"""`cycleforge schema`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import OK
from . import common

DESCRIPTION = """\
Print the JSON Schema of definitions. Editors with a YAML language server use it to complete and check while typing;
the first line of a definition names it:

  # yaml-language-server: $schema=definition.schema.json
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", type=Path, help="write it to this file, which is replaced")


def run(args: Namespace) -> int:
    from ..definition.pages.schema import schema_text

    if args.out is None:
        common.emit(schema_text())
    else:
        from ..disk import file
        from ..disk.reasons import refusing

        with refusing(f"cannot write {args.out}", "choose another --out"):
            file.write(args.out, schema_text().encode())
        common.emit(f"wrote {args.out}")
    return OK
