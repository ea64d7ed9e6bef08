"""`cycleforge blobs`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead, CannotWrite, ProblemsFound
from ..words.counts import size
from ..words.suggestions import suggestion
from ..words.terminal import Meter, columns
from . import common

if TYPE_CHECKING:
    from ..blobs import Blob, Store
    from ..blobs.fetch import Outcome, Source

DESCRIPTION = """\
Fetch third-party files that nodes use, for example LBNL NHC, or show which this machine has.

  cycleforge blobs fetch                      download what is missing or damaged
  cycleforge blobs fetch slurm_nhc            only the files of one project, or one file by its name
  cycleforge blobs fetch tests                sources that no node needs, and some tests of CycleForge build
  cycleforge blobs fetch --from PATH          without internet access: a git clone of the source, a downloaded
                                              archive, the file itself, or a folder with such files
  cycleforge blobs status                     what is pinned and what this machine has

Each file is pinned by its sha256 and accepted only with it. Files are kept in $CYCLEFORGE_BLOBS, else in
$XDG_CACHE_HOME/cycleforge/blobs, else in ~/.cache/cycleforge/blobs. A build includes the files
that are here and never downloads. Proxies and CA files are those of the environment: HTTPS_PROXY, NO_PROXY,
SSL_CERT_FILE.
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("fetch", "status"), help="what to do")
    parser.add_argument("names", metavar="NAME", nargs="*", help="a file, a project or tests; default: what nodes use")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="PATH",
        type=Path,
        help="take the files from here instead of downloading them (fetch)",
    )
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..blobs import store_of

    if args.action == "status" and args.origin is not None:
        raise CannotRead("--from is an option of `blobs fetch`", "see `cycleforge blobs --help`")
    blobs, store = _wanted(args.names), store_of(os.environ)
    return _fetch(blobs, store, args) if args.action == "fetch" else _status(blobs, store, args)


def _wanted(names: Sequence[str]) -> list[Blob]:
    """Return the blobs that the words name, each once, in the order of the catalogue."""
    from ..blobs import pinned

    every = pinned().values()
    known = [*(blob.file for blob in every), *dict.fromkeys(blob.project for blob in every)]
    for name in names:
        if name not in known:
            raise CannotRead(f"there is no blob '{name}'", suggestion(name, known) or f"known: {', '.join(known)}")
    return [blob for blob in every if (blob.file in names or blob.project in names if names else blob.is_for_nodes)]


def _row(blob: Blob) -> dict[str, object]:
    return {
        "file": blob.file,
        "project": blob.project,
        "version": blob.version,
        "size_bytes": blob.size_bytes,
        "sha256": blob.sha256,
    }


# ---------------------------------------------------------------- status


def _status(blobs: Sequence[Blob], store: Store, args: Namespace) -> int:
    found = [(blob, store.look(blob)) for blob in blobs]
    damaged = [(blob, look.reason) for blob, look in found if look.state == "damaged"]
    if args.json:
        rows = [
            _row(blob) | {"state": look.state, "reason": look.reason, "path": str(store.path(blob)), "url": blob.url,
                          "license": blob.license, "used_for": blob.used_for, "without": blob.without}
            for blob, look in found
        ]  # fmt: skip
        common.emit_json({"ok": not damaged, "store": str(store.folder), "blobs": rows})
    else:
        head = ("FILE", "PROJECT", "VERSION", "SIZE", "STATE")
        table = [(blob.file, blob.project, blob.version, size(blob.size_bytes), look.state) for blob, look in found]
        common.emit(f"{columns([head, *table])}in {store.folder}")
        for blob, reason in damaged:
            common.say(f"cycleforge: {store.path(blob)} {reason}")
        if any(look.state != "present" for _, look in found):
            common.say("  hint: cycleforge blobs fetch")
    return ProblemsFound.exit_code if damaged else OK


# ---------------------------------------------------------------- fetch


def _fetch(blobs: Sequence[Blob], store: Store, args: Namespace) -> int:
    from ..blobs.fetch import fetch

    meter = _Meter(is_shown=not args.json and sys.stderr.isatty(), no_color=not common.use_color(sys.stderr, args))
    # A folder or clone for some of the files is fine, unless they were asked for by name.
    optional = args.origin is not None and not args.names
    done: list[Outcome] = []
    failure: CannotWrite | None = None
    try:
        for outcome in fetch(blobs, store, _source(args, meter), optional=optional):
            meter.close()
            done.append(outcome)
            if not args.json:
                _print(outcome)
    except CannotWrite as error:
        if not args.json:
            raise
        failure = error
    finally:
        meter.close()
    code = _exit_code(done, failure)
    if optional and done and all(outcome.state == "absent" for outcome in done):
        code = ProblemsFound.exit_code
    if args.json:
        rows = [_row(each.blob) | {"state": each.state, "reason": each.reason, "hint": each.hint,
                                   "path": str(each.path)} for each in done]  # fmt: skip
        errors = [common.error_json(failure)] if failure else []
        common.emit_json({"ok": code == OK, "store": str(store.folder), "blobs": rows, "errors": errors})
    return code


def _source(args: Namespace, meter: _Meter) -> Source:
    if args.origin is not None:
        from ..blobs.fetch import LocalPath

        return LocalPath(args.origin)
    from ..blobs.fetch import Network

    return Network(progress=meter.show)


def _exit_code(done: Sequence[Outcome], failure: CannotWrite | None) -> int:
    if failure is not None:
        return failure.exit_code
    return ProblemsFound.exit_code if any(outcome.state == "failed" for outcome in done) else OK


def _print(outcome: Outcome) -> None:
    blob = outcome.blob
    if outcome.state == "fetched":
        common.emit(f"{blob.file}: fetched, {size(blob.size_bytes)}, {outcome.path}")
    elif outcome.state == "present":
        common.emit(f"{blob.file}: present, {outcome.path}")
    elif outcome.state == "absent":
        common.say(f"{blob.file}: not taken: {outcome.reason}")
    else:
        common.say(f"{blob.file}: failed: {outcome.reason}")
        if outcome.hint:
            common.say(f"  hint: {outcome.hint}")


class _Meter(Meter):
    """Shows the progress of each download."""

    _shown: Blob | None = None

    def show(self, blob: Blob, size_bytes: int, total_bytes: int | None) -> None:
        if blob is not self._shown:
            self._shown = blob
            self.begin(blob.file, total_bytes)
        self.reach(size_bytes)
