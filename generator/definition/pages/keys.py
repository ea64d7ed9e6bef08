"""The reference page docs/definition.md, written from the declarations."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.definition import Definition
from ..model.fields import Section
from ..walk import change_of, extra_of, item_annotation, sections, type_tags
from .reference import default_text, kind_text

HEADER = """\
# The definition

One YAML file describes one deployment. Unknown keys and wrong types are problems; everything but `name`, `location`
and `slurm.partitions` has a default. `${NAME}` and `${NAME:-default}` read the environment; `$$` is a dollar sign.
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
        for name, field in section.model_fields.items():
            unit = extra_of(field).get("unit")
            kind = kind_text(field.annotation).replace("|", "\\|") + (f", {unit}" if unit else "")
            lines.append(f"| `{name}` | {kind} | {default_text(field)} | {change_of(field)} | {field.description} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _walk(title: str, section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    yield title, section
    for name, field in section.model_fields.items():
        item = item_annotation(field.annotation)
        inner = sections(item) if item is not None else sections(field.annotation)
        for part in inner:
            path = f"{title}.{name}" if title else name
            tags = type_tags(part)
            label = f"{path}{'[]' if item is not None else ''}{f' (type: {tags[0]})' if tags else ''}"
            yield from _walk(label, part)
