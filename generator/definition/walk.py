"""Finds the declaration that belongs to a path of the definition: for messages, costs, schema and reference."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from .model.fields import Change, Section

Path = tuple[str | int, ...]


def branches(annotation: Any) -> Iterator[Any]:
    """The alternatives of an annotation, without Annotated, None and aliases."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from branches(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from branches(part)
    elif annotation is not type(None):
        yield annotation


def sections(annotation: Any) -> tuple[type[Section], ...]:
    """The section classes that an annotation admits."""
    return tuple(part for part in branches(annotation) if isinstance(part, type) and issubclass(part, Section))


def item_annotation(annotation: Any) -> Any | None:
    """What the items of a list annotation are; None when it is not a list."""
    return next((get_args(part)[0] for part in branches(annotation) if get_origin(part) is list), None)


def is_free_mapping(annotation: Any) -> bool:
    """True for `dict[str, …]`, whose keys the user chooses."""
    return any(get_origin(part) is dict for part in branches(annotation))


def type_tags(section: type[Section]) -> tuple[Any, ...]:
    """The values of the key `type` that select this section; empty when it has none."""
    field = section.model_fields.get("type")
    return get_args(field.annotation) if field and get_origin(field.annotation) is Literal else ()


def choose(candidates: tuple[type[Section], ...], value: Any) -> type[Section] | None:
    """The section that a mapping selects by its `type`; the only candidate, or None when nothing decides."""
    if len(candidates) == 1:
        return candidates[0]
    tag = value.get("type") if isinstance(value, Mapping) else None
    return next((section for section in candidates if tag in type_tags(section)), None)


def field_at(root: type[Section], path: Path, data: Any) -> FieldInfo | None:
    """The innermost declared field on the way along `path`, or None for the root itself.

    Where `data` does not decide between the alternatives of a union, the first one that has the key is taken.
    """
    candidates: tuple[type[Section], ...] = (root,)
    found: FieldInfo | None = None
    annotation: Any = None
    for step in path:
        if isinstance(step, int):
            annotation = item_annotation(annotation) if annotation is not None else None
        else:
            section = next((candidate for candidate in candidates if step in candidate.model_fields), None)
            if section is None:
                return found
            found = section.model_fields[step]
            annotation = found.annotation
        data = descend(data, step)
        candidates = sections(annotation) if annotation is not None else ()
        chosen = choose(candidates, data)
        candidates = (chosen,) if chosen else candidates
    return found


def section_at(root: type[Section], path: Path, data: Any) -> type[Section] | None:
    """The section class that the mapping at `path` is read as; None where the keys are free or nothing decides."""
    if not path:
        return root
    annotation = field_annotation(root, path, data)
    for step in path:
        data = descend(data, step)
    return choose(sections(annotation), data) if annotation is not None else None


def field_annotation(root: type[Section], path: Path, data: Any) -> Any | None:
    """The annotation of the value at `path`."""
    section: type[Section] | None = root
    annotation: Any = None
    for step in path:
        if isinstance(step, int):
            annotation = item_annotation(annotation) if annotation is not None else None
        elif section is not None and step in section.model_fields:
            annotation = section.model_fields[step].annotation
        else:
            return None
        data = descend(data, step)
        section = choose(sections(annotation), data) if annotation is not None else None
    return annotation


def extra_of(field: FieldInfo) -> Mapping[str, Any]:
    """Unit, change, example and active of a field that `setting` declared."""
    return typing.cast("Mapping[str, Any]", field.json_schema_extra or {})


def change_of(field: FieldInfo) -> Change:
    """What a change of the field costs."""
    return typing.cast("Change", extra_of(field).get("change", "in place"))


def descend(data: Any, step: str | int) -> Any:
    """The value below a key or index; None where there is none."""
    if isinstance(data, Mapping):
        return data.get(step)
    if isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data):
        return data[step]
    return None
