"""`cycleforge upload`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import INTERRUPTED, OK, CycleForgeError
from ..words.counts import size
from ..words.terminal import Meter
from . import common
from .locker import add_locker, locker_of, teller

if TYPE_CHECKING:
    from ..operate.locker import Locker, Look, Sending, Wanted

DESCRIPTION = """\
Package projects and upload them to the locker from this machine, without the CycleCloud command line.

  cycleforge upload llm-a100                  the projects of a definition, to the locker that it names
  cycleforge upload ./site --locker az://ACCOUNT/cyclecloud
  cycleforge upload                           the project in this folder, else every definition in cluster_defs/

Nodes see a version through its manifest, which is written last, so a node never sees half of one. What is already
there is not sent again; after an interruption the next run continues. A version never changes: different content under
an existing version is refused, and nothing is sent, unless --force is given. Then the new content is first sent out of
sight and replaces the old content in a few requests.

Authentication: AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN if one is set, else what
DefaultAzureCredential finds (az login, a managed identity, AZURE_CLIENT_ID …). Writing needs the role 'Storage Blob
Data Contributor' on the account.
"""


class _Progress:
    """A bar on a terminal, a plain line per project elsewhere, nothing with --json."""

    def __init__(self, args: Namespace) -> None:
        is_terminal = sys.stderr.isatty()
        self._lines = not args.json and not is_terminal
        self._meter = Meter(is_shown=not args.json and is_terminal, no_color=not common.use_color(sys.stderr, args))
        self.note, self.sent, self.close = self._meter.say, self._meter.advance, self._meter.close

    def begin(self, wanted: Wanted, files: int, size_bytes: int) -> None:
        """A package of so much begins."""
        title = f"{wanted.project.name} {wanted.project.version}"
        if self._lines:
            common.say(f"{title}: sending {files} files, {size(size_bytes)}")
        self._meter.begin(title, size_bytes)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="a definition, a project that CycleForge ships, or a project folder"
    )
    add_locker(parser)
    parser.add_argument("--force", action="store_true", help="replace different content under the same version")
    parser.add_argument("--dry-run", action="store_true", help="send nothing; show what would be sent")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    return send(args.names, locker_of(args), args, force=args.force, dry_run=args.dry_run)


def send(names: Sequence[str], locker: Locker, args: Namespace, *, force: bool = False, dry_run: bool = False) -> int:
    """Send projects, and show how far it is; returns the exit code."""
    from ..operate.locker import upload

    progress = _Progress(args)
    rows: list[Sending] = []
    failure: CycleForgeError | None = None
    code = OK

    def ended(row: Sending) -> None:
        progress.close()
        if not args.json:
            common.emit(_done_text(row) if row.done else f"{row.title}: {_plan_text(row.found)}")

    try:
        upload(
            names,
            locker,
            rows,
            progress,
            force=force,
            dry_run=dry_run,
            tell=teller(args),
            ended=ended,
            note=progress.note,
        )
    except KeyboardInterrupt:
        code = INTERRUPTED
    except CycleForgeError as error:
        failure, code = error, error.exit_code
    finally:
        progress.close()
    if args.json:
        errors = [common.error_json(failure)] if failure else []
        rows_json = [_as_json(row, dry_run=dry_run) for row in rows]
        common.emit_json({"ok": code == OK, "projects": rows_json, "errors": errors})
        return code
    if code == INTERRUPTED:
        left = [row.title for row in rows if row.done is None]
        text = f"; not in the locker yet: {', '.join(left)}. The next run continues" if left else ""
        common.say(f"\ninterrupted{text}")
    if failure is not None:
        raise failure
    return code


# ---------------------------------------------------------------- texts


def _plan_text(found: Look) -> str:
    if found.state == "same":
        return f"unchanged, {len(found.wanted.all)} files"
    names = [*found.difference.missing, *found.difference.changed]
    size_bytes = sum(found.wanted.all[name].size_bytes for name in names)
    word = {"different": "would be replaced", "damaged": "would be repaired"}.get(found.state, "would be uploaded")
    deleted = f", {len(found.difference.foreign)} removed" if found.difference.foreign else ""
    return f"{word}: {len(names)} files, {size(size_bytes)}{deleted}"


def _done_text(row: Sending) -> str:
    assert row.done is not None
    done, title = row.done, row.title
    if done.word == "unchanged":
        return f"{title}: unchanged, {len(row.found.wanted.all)} files"
    deleted = f", {len(done.deleted)} removed" if done.deleted else ""
    sent = f"{len(done.sent)} files, {size(done.sent_bytes)}"
    return f"{title}: {done.word}, {sent} in {row.seconds:.1f} s{deleted}, {row.locker}"


def _as_json(row: Sending, *, dry_run: bool) -> dict[str, object]:
    project, difference = row.found.wanted.project, row.found.difference
    return {
        "name": project.name,
        "version": project.version,
        "locker": row.locker,
        "state": row.found.state,
        "result": row.done.word if row.done else ("not sent" if not dry_run else "dry run"),
        "files": len(row.found.wanted.all),
        "size_bytes": row.found.wanted.size_bytes,
        "missing": list(difference.missing),
        "changed": list(difference.changed),
        "foreign": list(difference.foreign),
        "reasons": list(row.found.reasons),
        "sent": list(row.done.sent) if row.done else [],
        "sent_bytes": row.done.sent_bytes if row.done else 0,
        "deleted": list(row.done.deleted) if row.done else [],
    }
