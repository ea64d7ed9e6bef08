"""The one-line wrapper around pydantic's Field that keeps unit, cost of a change and example beside the declaration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

# Plugins of other packages have no business in the model, and looking for them costs a tenth of a build.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from pydantic import BaseModel, ConfigDict, Field, WrapValidator

from ..text.source import MissingVariable

Change = Literal["in place", "node restart", "recreate"]
"""What a change of a field costs on a running cluster.

`in place`: redeploy or import the template; `node restart`: nodes that already run keep the old value until they are
replaced; `recreate`: the resource or the cluster must be deleted first, or its data is lost.
"""


EXAMPLE_GROUPS = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups"
"""How the resource ids of the examples begin."""


class Section(BaseModel):
    """One mapping of the definition: unknown keys are problems, values are not converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=(), defer_build=True)


def setting(
    default: Any = ...,
    *,
    text: str,
    change: Change = "in place",
    unit: str | None = None,
    example: Any = None,
    active: bool = True,
    **limits: Any,
) -> Any:
    """One field: default, description, unit, cost of a change, example for the reference definition, limits.

    `active=False` prints the key of the reference definition as a comment, because it excludes another key.
    `example` also stands in for a missing or invalid required value while the rest of the file is checked.
    """
    extra = {"change": change, "unit": unit, "example": example, "active": active}
    if default is ...:
        return Field(description=text, json_schema_extra=extra, **limits)
    if isinstance(default, type):
        # pydantic inspects the factory's signature, which takes long for a class.
        return Field(default_factory=lambda: default(), description=text, json_schema_extra=extra, **limits)
    return Field(default=default, description=text, json_schema_extra=extra, **limits)


def _let_missing_through(value: Any, handler: Any) -> Any:
    return value if isinstance(value, MissingVariable) else handler(value)


if TYPE_CHECKING:
    Askable = str | MissingVariable
else:
    Askable = Annotated[str, WrapValidator(_let_missing_through)]
"""Text that may as well be asked for at deployment: an unset `${VARIABLE}` becomes a parameter of `main.bicep`."""
