"""`cycleforge locker`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, CycleForgeError, ProblemsFound
from ..operate.reading import Definition
from ..words.counts import first_lines, size
from ..words.terminal import columns, printable
from . import azure, common

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..operate.locker import Listing, Locker, Prune, Verified, Version

DESCRIPTION = """\
Inspect the locker of a cluster and tidy it up. Only the projects in it are touched.
"""
_VERIFY = """\
Compare the locker with the projects here: what is missing, what differs, what does not belong there.

  cycleforge locker verify llm-a100           the projects of a definition
  cycleforge locker verify --content          read every byte instead of trusting sizes and checksums

The exit code is 1 when something differs.
"""
_LS = "List the projects of the locker with their versions, or the files of one: PROJECT or PROJECT:VERSION.\n"
_PULL = """\
Fetch a version with its project blobs, in the layout of the locker: DIR/<project>/<version>/ and DIR/<project>/blobs/.
Every file is verified.
"""
_PRUNE = """\
Remove versions that no definition here refers to, and the project blobs that only they use. Projects that no definition
names are left alone. It shows what would be removed, and asks. Clusters that run elsewhere may use versions that your
definitions no longer name: --keep N keeps the newest N of each project.
"""
_SHOWN = 10
"""Differences of a project that are listed; --json has all."""


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    verify = _action(actions, "verify", "compare the locker with the projects here", _VERIFY)
    verify.add_argument("names", metavar="NAME", nargs="*", help="a definition, a project or a project folder")
    verify.add_argument("--content", action="store_true", help="read every byte of the locker")
    ls = _action(actions, "ls", "list projects, versions or files", _LS)
    ls.add_argument("names", metavar="PROJECT[:VERSION]", nargs="*", help="default: everything")
    pull = _action(actions, "pull", "fetch a version", _PULL)
    pull.add_argument("names", metavar="PROJECT:VERSION", nargs="+", help="what to fetch")
    pull.add_argument(
        "--into", metavar="DIR", type=Path, default=Path("pulled"), help="target folder (default: pulled)"
    )
    prune = _action(actions, "prune", "remove versions that nothing refers to", _PRUNE)
    prune.add_argument("names", metavar="DEFINITION", nargs="*", help="default: every definition in cluster_defs/")
    prune.add_argument(
        "--keep", metavar="N", type=int, default=1, help="newest versions to keep in any case (default: 1)"
    )
    prune.add_argument("--yes", action="store_true", help="do not ask")
    prune.add_argument("--dry-run", action="store_true", help="only show what would be removed")


def _action(actions: object, name: str, summary: str, description: str) -> ArgumentParser:
    parser = common.add_action(actions, name, summary, description)
    add_locker(parser)
    common.add(parser, "--json")
    return parser


def add_locker(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--locker", metavar="ADDRESS",
        help="az://ACCOUNT/CONTAINER or https://ACCOUNT.blob.core.windows.net/CONTAINER (default: $CYCLEFORGE_LOCKER, "
        "else what the definition names, else the account that AZURE_STORAGE_* names)",
    )  # fmt: skip
    parser.add_argument(
        "--auth", choices=("auto", "login", "key", "sas", "connection-string"), default="auto",
        help="how to sign in; auto: AZURE_STORAGE_CONNECTION_STRING, _KEY or _SAS_TOKEN if set, else az login, an "
        "identity or anything else that DefaultAzureCredential finds",
    )  # fmt: skip


def locker_of(args: Namespace) -> Locker:
    from ..operate.locker import Locker

    return Locker(args.locker, args.auth)


def teller(args: Namespace) -> Callable[[Definition | str], None]:
    """Return what prints the problems of a definition and, without --json, other sentences."""

    def tell(what: Definition | str) -> None:
        if isinstance(what, Definition):
            common.print_problems([what], Namespace(no_color=False, all=False))
        elif not args.json:
            common.say(what)

    return tell


def run(args: Namespace) -> int:
    try:
        return {"verify": _verify, "ls": _ls, "pull": _pull, "prune": _prune}[args.action](args)
    except CycleForgeError as error:
        if not args.json:
            raise
        common.emit_json({"ok": False, "errors": [common.error_json(error)]})
        return error.exit_code


# ---------------------------------------------------------------- verify


def _verify(args: Namespace) -> int:
    from ..operate.locker import verify

    found = []
    for each in verify(args.names, locker_of(args), teller(args), content=args.content):
        found.append(each)
        if not args.json:
            common.emit(_verify_text(each))
    is_right = not any(each.difference.any for each in found)
    if args.json:
        common.emit_json({"ok": is_right, "projects": [_verify_json(each) for each in found]})
    return OK if is_right else ProblemsFound.exit_code


def _verify_json(each: Verified) -> dict[str, object]:
    return {
        "ok": not each.difference.any,
        "name": each.wanted.project.name,
        "version": each.wanted.project.version,
        "files": len(each.wanted.all),
        "read": each.read,
        "missing": list(each.difference.missing),
        "changed": list(each.difference.changed),
        "foreign": list(each.difference.foreign),
        "is_visible": each.is_visible,
        "locker": each.locker,
    }


def _verify_text(each: Verified) -> str:
    wanted, found = each.wanted, each.difference
    title, files = f"{wanted.project.name} {wanted.project.version}", len(wanted.all)
    if not found.any:
        return f"{title}: as here, {files} files"
    if not each.is_visible and len(found.missing) == files:
        return f"{title}: not in the locker\n  hint: cycleforge upload"
    words = {"missing": found.missing, "differs": found.changed, "does not belong there": found.foreign}
    lines = [
        f"  {word}: {printable(name.removeprefix(wanted.prefix))}" for word, names in words.items() for name in names
    ]
    return "\n".join([f"{title}: differs", *first_lines(lines, _SHOWN)])


# ---------------------------------------------------------------- ls


def _ls(args: Namespace) -> int:
    from ..operate.locker import contents

    container, versions, blobs = contents(args.names, locker_of(args))
    if args.json:
        common.emit_json({
            "locker": str(container.address),
            "versions": [
                {"project": each.project, "version": each.version, "is_visible": each.is_complete,
                 "size_bytes": each.size_bytes, "files": _files_json(each.files)} for each in versions
            ],
            "blobs": [{"project": project, "files": _files_json(files)} for project, files in blobs.items()],
        })  # fmt: skip
    elif any(name.partition(":")[2] for name in args.names):
        names = [(name, each.files[name].size_bytes) for each in versions for name in each.files]
        common.emit(columns([(size_bytes, printable(name)) for name, size_bytes in names]))
    elif not versions and not blobs:
        common.emit(f"{container.address} contains no projects")
    else:
        rows: list[tuple[object, ...]] = [("PROJECT", "VERSION", "FILES", "SIZE", "STATE")]
        rows += [
            (printable(each.project), printable(each.version), len(each.files), size(each.size_bytes),
             "visible" if each.is_complete else "no manifest")
            for each in versions
        ]  # fmt: skip
        rows += [
            (printable(project), "blobs", len(files), size(sum(file.size_bytes for file in files.values())), "")
            for project, files in blobs.items()
        ]
        common.emit(columns(rows))
    return OK


def _files_json(files: Listing) -> list[dict[str, object]]:
    return [
        {"name": name, "size_bytes": stored.size_bytes, "md5": stored.md5.hex() if stored.md5 else None}
        for name, stored in files.items()
    ]


# ---------------------------------------------------------------- pull


def _pull(args: Namespace) -> int:
    from ..operate.locker import pull

    rows = []
    for project, version, done in pull(args.names, locker_of(args), args.into):
        rows.append(
            {"project": project, "version": version, "folder": str(done.folder), "files": done.files,
             "size_bytes": done.size_bytes, "blobs": [str(path) for path in done.blobs]}
        )  # fmt: skip
        if not args.json:
            blobs = f", {len(done.blobs)} blobs" if done.blobs else ""
            common.emit(f"{done.folder}: {done.files} files, {size(done.size_bytes)}{blobs}")
    if args.json:
        common.emit_json({"ok": True, "versions": rows})
    return OK


# ---------------------------------------------------------------- prune


def _prune(args: Namespace) -> int:
    from ..operate.locker import prune, pruning

    container, plan = prune(args.names, locker_of(args), teller(args), args.keep)
    address = str(container.address)
    if not args.json:
        common.emit("\n".join(_prune_lines(plan)))
    if not args.dry_run and (plan.versions or plan.blobs):
        question = f"remove {len(plan.versions)} versions and {len(plan.blobs)} blobs from {address}?"
        if not args.yes and not azure.asked(question, "--yes removes without asking"):
            raise ProblemsFound("nothing was removed")
        pruning.prune(container, plan)
        if not args.json:
            common.emit(f"removed, {size(plan.size_bytes)}")
    if args.json:
        common.emit_json({
            "ok": True, "locker": address, "dry_run": args.dry_run,
            "removed" if not args.dry_run else "would_remove": [
                {"project": each.project, "version": each.version, "size_bytes": each.size_bytes}
                for each in plan.versions
            ],
            "blobs": sorted(plan.blobs),
            "kept": [
                {"project": each.project, "version": each.version, "reason": reason} for each, reason in plan.kept
            ],
        })  # fmt: skip
    return OK


def _prune_lines(plan: Prune) -> list[str]:
    if not plan.versions and not plan.blobs:
        return ["nothing to remove"]
    lines = [f"remove  {_title(each)}, {size(each.size_bytes)}" for each in plan.versions]
    lines += [f"remove  {printable(name)}, {size(blob.size_bytes)}" for name, blob in plan.blobs.items()]
    return lines + [f"keep    {_title(each)}: {reason}" for each, reason in plan.kept]


def _title(version: Version) -> str:
    return printable(f"{version.project} {version.version}")
