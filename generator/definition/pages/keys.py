"""The reference page docs/definition.md, written from the declarations."""

from __future__ import annotations

from collections.abc import Iterator

from ..kinds import ListOf, kind_of, sections, type_tags
from ..model.definition import Definition
from ..model.fields import Section
from .reference import default_text, kind_text

HEADER = """\
# The definition

One YAML file describes one deployment. Unknown keys and wrong types are problems; everything but `name`, `location`
and `slurm.partitions` has a default. `${NAME}` and `${NAME:-default}` read the environment; `$$` is a dollar sign.
A value that is one variable means what its key says, text or number, with or without quotes.
A variable that is not set is a problem, except for the SSH key and the hub network, which the deployment then asks
for. This page is generated from the model: `make accept`.

The column "change" shows what a change costs on a running cluster: `in place`, `node restart` (running nodes keep
the old value until they are replaced) or `recreate` (the resource or the cluster must be deleted first).
"""


def page() -> str:
    """The text of docs/definition.md."""
    lines = [HEADER]
    for title, section in _walk("", Definition):
        lines += [
            f"## {title or 'Top level'}",
            "",
            (section.__doc__ or "").strip(),
            "",
            "| key | type | default | change | meaning |",
            "|---|---|---|---|---|",
        ]
        for name, declared in section.declared_keys.items():
            kind = kind_text(kind_of(declared)).replace("|", "\\|") + (f", {declared.unit}" if declared.unit else "")
            lines.append(f"| `{name}` | {kind} | {default_text(declared)} | {declared.change} | {declared.text} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _walk(title: str, section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    yield title, section
    for name, declared in section.declared_keys.items():
        kind = kind_of(declared)
        for part in sections(kind):
            path = f"{title}.{name}" if title else name
            tags = type_tags(part)
            label = f"{path}{'[]' if isinstance(kind, ListOf) else ''}{f' (type: {tags[0]})' if tags else ''}"
            yield from _walk(label, part)
