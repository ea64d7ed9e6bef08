"""docs/training-versions.md: what training runs, and which driver it needs, out of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import catalog

PAGE = "docs/training-versions.md"
_START = """# Versions of training

Generated from the catalogue by `make accept`. Do not edit.

The recipes take their versions from `generator/catalog/training_versions.json` and from nowhere else; a definition may
name others in the `settings` of a job. No digest of an image is known from public sources: the first import on a file
system records it, and a later one that differs is refused ([images of jobs](../recipes/README.md#images)).

"""


def page() -> str:
    found = catalog.training_versions()
    containers, frameworks = found.containers.values(), found.frameworks.items()
    parts = (
        _table(
            "Frameworks",
            "",
            ("framework", "version", "commit", "repository", "source"),
            ((name, _text(row.version), f"`{row.commit}`", row.url, _sources(row.source)) for name, row in frameworks),
        ),
        _table(
            "Containers",
            "",
            ("image", "CUDA", "NCCL", "frameworks", "notes", "source"),
            (
                (
                    f"`{row.reference}`",
                    row.cuda,
                    _text(row.nccl),
                    ", ".join(row.frameworks) or "–",
                    row.note or "",
                    _sources(row.source),
                )
                for row in containers
            ),
        ),
        _table(
            "Driver that a CUDA needs",
            found.cuda_drivers.note,
            ("CUDA", "driver", "also", "source"),
            (
                (f"{major}.x", f"{row.branch} or newer", _branches(row.forward), _sources(row.source))
                for major, row in found.cuda_drivers.rows.items()
            ),
        ),
        _table(
            "Driver of an image",
            f"{found.image_drivers.note}. Source: {_sources(found.image_drivers.source)}",
            ("operating system", "version from", "driver"),
            ((system, str(row.since), row.driver) for system, rows in found.image_drivers.rows.items() for row in rows),
        ),
    )
    return _START + "\n".join(parts)


def _table(title: str, words: str | None, columns: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [f"## {title}", "", *([f"{words[:1].upper()}{words[1:]}.", ""] if words else [])]
    lines += [_line(columns), "|---" * len(columns) + "|", *(_line(row) for row in rows), ""]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(value: object) -> str:
    return "not known" if value is None else str(value)


def _branches(forward: Sequence[int]) -> str:
    return ", ".join(map(str, forward)) or "–"


def _sources(keys: Sequence[str]) -> str:
    known = catalog.sources()
    rows = ((known[key].title, known[key].url) if key in known else (key, key) for key in keys)
    return "; ".join(f"[{title}]({address})" for title, address in rows)
