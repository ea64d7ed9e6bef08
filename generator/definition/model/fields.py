"""How the model is declared: a section is a class, a key is one annotated field with everything there is to say of it.

The annotation says what the key accepts (`definition/kinds.py` reads it), `setting` the rest. The modules of the model
do without `from __future__ import annotations`: as text, every annotation would have to be compiled once more.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NoReturn, dataclass_transform

from ..text.source import MissingVariable

Change = Literal["in place", "node restart", "recreate"]
"""What a change of a field costs on a running cluster.

`in place`: redeploy or import the template; `node restart`: nodes that already run keep the old value until they are
replaced; `recreate`: the resource or the cluster must be deleted first, or its data is lost.
"""

Askable = str | MissingVariable
"""Text that may as well be asked for at deployment: an unset `${VARIABLE}` becomes a parameter of `main.bicep`."""

EXAMPLE_GROUPS = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups"
"""How the resource ids of the examples begin."""


class Setting:
    """What is declared of one key. `default` is None for what has no value unless one is given.

    `limits` are `ge`, `le`, `gt` (numbers) and `min_length` (texts, lists), as `setting` takes them.
    """

    def __init__(
        self, *, default: Any, text: str, change: Change, unit: str | None, example: Any, active: bool,
        limits: Mapping[str, float],
    ) -> None:  # fmt: skip
        self.annotation: Any = None
        self.is_required = default is ...
        self.make: Callable[[], Any] | None = default if isinstance(default, type) else None
        self.default = None if self.is_required or self.make is not None else default
        self.text, self.change, self.unit = text, change, unit
        self.example, self.active, self.limits = example, active, limits

    def new_default(self) -> Any:
        """The value of a key that is left out; None too for a required one."""
        return self.default if self.make is None else self.make()

    @property
    def may_be_none(self) -> bool:
        """Whether the key may be without a value."""
        return not self.is_required and self.make is None and self.default is None


def setting(
    default: Any = ...,
    *,
    text: str,
    change: Change = "in place",
    unit: str | None = None,
    example: Any = None,
    active: bool = True,
    ge: float | None = None,
    le: float | None = None,
    gt: float | None = None,
    min_length: int | None = None,
) -> Any:
    """One key: default (a value, or the class to make one from), description, unit, cost of a change, limits.

    `example` is what the reference definition shows; it also replaces a missing or invalid required value while
    the rest of the file is checked. `active=False` prints the key of the reference definition as a comment, because it
    excludes another key.
    """
    given = {"ge": ge, "le": le, "gt": gt, "min_length": min_length}
    limits = {name: value for name, value in given.items() if value is not None}
    return Setting(default=default, text=text, change=change, unit=unit, example=example, active=active, limits=limits)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Section:
    """One mapping of the definition. Its instances cannot be changed; two are equal when their values are.

    `read_model` makes them from what a user wrote. Where the code makes one itself, only the names are checked.
    A section with `short="key"` may be written as a text alone, which is the value of that key. `removed` says of keys
    that earlier releases had what to do instead.
    """

    declared_keys: ClassVar[Mapping[str, Setting]] = {}
    required_keys: ClassVar[tuple[str, ...]] = ()
    short_form: ClassVar[str | None] = None
    removed_keys: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, short: str | None = None, removed: Mapping[str, str] | None = None) -> None:
        keys: dict[str, Setting] = {}
        for base in reversed(cls.__mro__[1:]):
            keys.update(getattr(base, "declared_keys", {}))
        for name, annotation in cls.__annotations__.items():
            declared = cls.__dict__.get(name)
            if not isinstance(declared, Setting) or isinstance(annotation, str):
                raise TypeError(f"{cls.__name__}.{name} needs `setting(…)` and an annotation that is not a text")
            declared.annotation = annotation
            keys[name] = declared
        cls.declared_keys = keys
        cls.required_keys = tuple(name for name, declared in keys.items() if declared.is_required)
        cls.short_form = short
        cls.removed_keys = removed or {}

    def __init__(self, **values: Any) -> None:
        own = self.__dict__
        for name, declared in self.declared_keys.items():
            if name in values:
                own[name] = values.pop(name)
            elif declared.is_required:
                raise TypeError(f"{type(self).__name__}() needs {name}")
            else:
                own[name] = declared.new_default()
        if values:
            raise TypeError(f"{type(self).__name__}() does not know {', '.join(values)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed, so not its {name} either")


def values_of(section: Section) -> dict[str, Any]:
    """The value of each key of a section, in order; sections in it stay what they are."""
    return dict(section.__dict__)


def plain_values(value: Any) -> Any:
    """A section, or a list or mapping of sections, as dictionaries."""
    if isinstance(value, Section):
        return {name: plain_values(inner) for name, inner in value.__dict__.items()}
    if isinstance(value, dict):
        return {name: plain_values(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain_values(inner) for inner in value]
    return value
