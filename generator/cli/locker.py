"""`cycleforge locker`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OK, CannotRead, CycleForgeError, ProblemsFound
from ..operate import definitions
from ..words.counts import first_lines, size
from ..words.terminal import columns, printable
from . import common
from .packages import add_locker, needed_address, opened, plan_of, targets

if TYPE_CHECKING:
    from ..locker.compare import Wanted
    from ..locker.container import Container
    from ..locker.layout import Version
    from ..locker.prune import Prune
    from ..operate.reading import Definition
    from ..plan.types import Plan

DESCRIPTION = """\
Inspect the locker of a cluster and tidy it up. Only the projects in it are touched.
"""
_VERIFY = """\
Compare the locker with the projects here: what is missing, what has different content, what does not belong there.

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
    """Declare the actions with their flags."""
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
    common.add_json(parser)
    return parser


def run(args: Namespace) -> int:
    """Do one of them."""
    try:
        return {"verify": _verify, "ls": _ls, "pull": _pull, "prune": _prune}[args.action](args)
    except CycleForgeError as error:
        if not args.json:
            raise
        common.emit_json({"ok": False, "errors": [common.error_json(error)]})
        return error.exit_code


# ---------------------------------------------------------------- verify


def _verify(args: Namespace) -> int:
    from ..locker.compare import wanted_of

    rows: list[dict[str, object]] = []
    is_right = True
    for target in targets(args, args.names):
        container = opened(target.address, args)
        for package in target.packages:
            wanted = wanted_of(package)
            row = _verify_one(container, wanted, content=args.content)
            rows.append({**row, "locker": str(target.address)})
            is_right &= bool(row["ok"])
            if not args.json:
                common.emit(_verify_text(row, wanted))
    if args.json:
        common.emit_json({"ok": is_right, "projects": rows})
    return OK if is_right else ProblemsFound.exit_code


def _verify_one(container: Container, wanted: Wanted, *, content: bool) -> dict[str, object]:
    from ..locker.compare import compare
    from ..locker.layout import blobs_prefix
    from ..locker.look import proven

    listing = dict(container.listing(wanted.prefix))
    if wanted.blobs:
        listing |= container.listing(blobs_prefix(wanted.project.name))
    unproven = [name for name in wanted.all if name in listing] if content else compare(wanted, listing).unproven
    listing |= proven(container, listing, unproven)
    found = compare(wanted, listing)
    return {
        "ok": not found.any,
        "name": wanted.project.name,
        "version": wanted.project.version,
        "files": len(wanted.all),
        "read": len(unproven),
        "missing": list(found.missing),
        "changed": list(found.changed),
        "foreign": list(found.foreign),
        "is_visible": wanted.manifest_name in listing,
    }


def _verify_text(row: dict[str, object], wanted: Wanted) -> str:
    title = f"{row['name']} {row['version']}"
    if row["ok"]:
        return f"{title}: as here, {row['files']} files"
    words = {"missing": "missing", "changed": "differs", "foreign": "does not belong there"}
    lines = [
        f"  {words[kind]}: {printable(name.removeprefix(wanted.prefix))}"
        for kind in words
        for name in row[kind]  # type: ignore[attr-defined]
    ]
    if not row["is_visible"] and len(row["missing"]) == row["files"]:  # type: ignore[arg-type]
        return f"{title}: not in the locker\n  hint: cycleforge upload"
    return "\n".join([f"{title}: differs", *first_lines(lines, _SHOWN)])


# ---------------------------------------------------------------- ls


def _ls(args: Namespace) -> int:
    from ..locker.layout import ROOT, blobs_of, versions_of
    from ..locker.prune import order

    container = opened(needed_address(args), args)
    asked = [_reference(name, version_needed=False) for name in args.names]
    prefix = f"{ROOT}{asked[0][0]}/" if len(asked) == 1 else ROOT
    listing = container.listing(prefix)
    versions = [
        each for each in versions_of(listing)
        if not asked or (each.project, each.version) in asked or (each.project, None) in asked
    ]  # fmt: skip
    versions.sort(key=lambda each: (each.project, order(each.version)))
    blobs = {
        project: files for project, files in sorted(blobs_of(listing).items()) if not asked or (project, None) in asked
    }
    missing = [
        f"{project}:{version}" if version else project for project, version in asked
        if not any(each.project == project and version in (None, each.version) for each in versions)
        and (version or project not in blobs)
    ]  # fmt: skip
    if missing:
        raise CannotRead(f"{container.address} has no {', '.join(missing)}", "cycleforge locker ls")
    if args.json:
        common.emit_json({
            "locker": str(container.address),
            "versions": [
                {"project": each.project, "version": each.version, "is_visible": each.is_complete,
                 "size_bytes": each.size_bytes, "files": _files_json(each.files)} for each in versions
            ],
            "blobs": [{"project": project, "files": _files_json(files)} for project, files in blobs.items()],
        })  # fmt: skip
    elif any(version for _, version in asked):
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


def _files_json(files: object) -> list[dict[str, object]]:
    return [
        {"name": name, "size_bytes": stored.size_bytes, "md5": stored.md5.hex() if stored.md5 else None}
        for name, stored in files.items()  # type: ignore[attr-defined]
    ]


def _reference(word: str, *, version_needed: bool) -> tuple[str, str | None]:
    from ..projects.ini import NAME

    project, _, version = word.partition(":")
    if not NAME.fullmatch(project) or (version_needed and not version) or (version and not NAME.fullmatch(version)):
        raise CannotRead(
            f"'{word}' is not a project of a locker", "write PROJECT:VERSION, as `cycleforge locker ls` lists it"
        )
    return project, version or None


# ---------------------------------------------------------------- pull


def _pull(args: Namespace) -> int:
    from ..locker.pull import pull

    container = opened(needed_address(args), args)
    rows = []
    for word in args.names:
        project, version = _reference(word, version_needed=True)
        assert version is not None
        done = pull(container, project, version, args.into)
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
    from ..locker.prune import plan_prune, prune

    if args.keep < 0:
        raise CannotRead("--keep is a number of versions", "use 0 or more")
    words = args.names or [str(path) for path in definitions.here()]
    used = {reference for word in words for reference in _references(*plan_of(word))}
    projects = {project for project, _ in used}
    container = opened(needed_address(args), args)
    plan = plan_prune(container, projects, used, args.keep)
    if not args.json:
        common.emit("\n".join(_prune_lines(plan)))
    is_nothing = not plan.versions and not plan.blobs
    if not args.dry_run and not is_nothing:
        if not args.yes:
            _ask(f"Remove {len(plan.versions)} versions and {len(plan.blobs)} blobs from {container.address}?")
        prune(container, plan)
        if not args.json:
            common.emit(f"removed, {size(plan.size_bytes)}")
    if args.json:
        common.emit_json({
            "ok": True, "locker": str(container.address), "dry_run": args.dry_run,
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


def _references(plan: Plan, definition: Definition) -> set[tuple[str, str]]:
    """What a node of the cluster would ask the locker for, what travels with the deployment, and what is only named."""
    nodes = plan.slurm.nodes if plan.slurm else ()
    specs = {(spec.project, spec.version) for node in nodes for spec in node.specs}
    named = {(entry["name"], entry["version"]) for entry in _named(definition.checked.source.data)}
    return specs | named | {(project.name, project.version) for project in plan.projects}


def _named(data: Any) -> list[dict[str, str]]:
    """The projects of a definition that are in the locker, also where no role runs them yet."""
    return [entry for entry in data.get("projects") or () if entry.get("version")]


def _prune_lines(plan: Prune) -> list[str]:
    if not plan.versions and not plan.blobs:
        return ["nothing to remove"]
    lines = [f"remove  {_title(each)}, {size(each.size_bytes)}" for each in plan.versions]
    lines += [f"remove  {printable(name)}, {size(blob.size_bytes)}" for name, blob in plan.blobs.items()]
    return lines + [f"keep    {_title(each)}: {reason}" for each, reason in plan.kept]


def _title(version: Version) -> str:
    return printable(f"{version.project} {version.version}")


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise CannotRead("nothing was removed: there is no terminal to ask on", "--yes removes without asking")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ProblemsFound("nothing was removed")
