"""`cycleforge project build`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead, CannotWrite, CycleForgeError
from ..words.counts import counted, size
from . import common
from .project_show import errors_json, named, packaged, print_failures, total_bytes

if TYPE_CHECKING:
    from ..projects.local import Located
    from ..projects.package import Package


def build(args: Namespace) -> int:
    """Package all first, so that nothing is written when one of them cannot be."""
    from ..projects import build as writing

    done, failures = packaged(_wanted(args.names))
    rows: list[dict[str, object]] = []
    stopped: CycleForgeError | None = None
    if not failures:
        _demand_distinct(done)
        for _, package in done:
            try:
                is_changed = writing.build(package, args.out)
            except (CannotRead, CannotWrite) as error:
                if not args.json:
                    raise
                stopped = error
                break
            rows.append(_row(package, args.out, is_changed=is_changed))
            if not args.json:
                common.emit(_text(package, args.out, is_changed=is_changed))
    if args.json:
        errors = errors_json(failures) + ([common.error_json(stopped)] if stopped else [])
        common.emit_json({"ok": not errors, "projects": rows, "errors": errors})
    else:
        print_failures(failures)
    if stopped is not None:
        return stopped.exit_code
    return CannotRead.exit_code if failures else OK


def _wanted(words: Sequence[str]) -> list[Located]:
    from ..projects.local import all_shipped, find_project, located

    if words:
        return list({found.folder.resolve(): found for found in map(find_project, words)}.values())
    return [located(Path())] if Path("project.ini").is_file() else all_shipped()


def _demand_distinct(done: Sequence[tuple[Located, Package]]) -> None:
    folders: dict[str, Path] = {}
    for found, package in done:
        other = folders.setdefault(package.project.name, found.folder)
        if other != found.folder:
            raise CannotRead(
                f"{found.folder} and {other} are both named '{package.project.name}'", "build them into two folders"
            )


def _row(package: Package, out: Path, *, is_changed: bool) -> dict[str, object]:
    return {
        "name": package.project.name,
        "version": package.project.version,
        "path": str(out / package.project.name),
        "changed": is_changed,
        "files": len(package.files),
        "bytes": total_bytes(package.files),
        "blobs": [{"path": str(path), "bytes": each.size_bytes, "md5": each.md5.hex()}
                  for path, each in package.blobs.items()],
        "left_out": [str(path) for path in package.left_out],
    }  # fmt: skip


def _text(package: Package, out: Path, *, is_changed: bool) -> str:
    project = package.project
    parts = [f"version {project.version}", counted(len(package.files), "file"), size(total_bytes(package.files))]
    if package.blobs:
        parts.append(f"{counted(len(package.blobs), 'blob')} of {size(total_bytes(package.blobs))} beside it")
    lines = [f"{out / project.name}: {', '.join(parts)}{'' if is_changed else ', up to date'}"]
    if package.left_out:
        lines.append(f"  left out: {named(package.left_out)}")
    return "\n".join(lines)
