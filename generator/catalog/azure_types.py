"""The resource types that a deployment creates, refers to or leaves behind, each with all that is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import field

from .files import Fact, Row, Rows, table


class ResourceType(Fact, frozen=True, kw_only=True):
    name: str = field(name="type")
    """As Azure spells it: `Microsoft.Network/bastionHosts`."""
    api_version: str | None = None
    """Of modules and requests; None: nothing names the type to Azure."""
    removal: Literal["in order", "by id"] | None = None
    """How `delete` removes one by itself: after those that use it, or by its id; None: it goes with its parent."""
    data: Literal["holds", "serves", "without"] | None = None
    """Whether it holds data, is kept where data is kept, or goes in any case; None: what its parent does."""
    node: Literal["machine", "part"] | None = None
    """Whether one can be a node, or part of one, which does not carry the deployment's tag."""
    uses: tuple[str, ...] = ()
    """Actions on others that creating one takes."""
    kept: str | None = None
    """What Azure keeps for some days when one is deleted."""
    kept_page: str = ""
    minutes: int | None = None
    """That Azure usually takes to create one; None: nobody documents it."""
    minutes_source: tuple[str, ...] = ()
    or_more: bool = False

    @property
    def namespace(self) -> str:
        """The resource provider."""
        return self.name.partition("/")[0]


class Role(Fact, frozen=True, kw_only=True):
    name: str
    id: str


class Providers(Row, frozen=True, kw_only=True):
    always: tuple[str, ...]
    by_azure: tuple[str, ...]


class Types(Fact, frozen=True, kw_only=True):
    types: Rows[tuple[ResourceType, ...]]
    roles: Rows[tuple[Role, ...]]
    providers: Providers


_table = table("resource_types", Types)


@cache
def resource_types() -> Mapping[str, ResourceType]:
    """By name in lower case, since Azure answers in any; in the order in which they can be deleted."""
    return {row.name.lower(): row for row in _table().types.rows}


def resource_type(name: str) -> ResourceType:
    """The row of a type that the code names; LookupError where the table lacks it."""
    found = resource_types().get(name.lower())
    if found is None:
        raise LookupError(f"catalog/resource_types.json has no row for {name}")
    return found


def holds_data(name: str) -> bool:
    """Whether resources of a type, known or not, hold data that goes with them."""
    found = resource_types().get(name.lower())
    return found is not None and found.data == "holds"


def roles() -> Mapping[str, str]:
    """Built-in roles that deployments assign: name → id."""
    return {row.name: row.id for row in _table().roles.rows}


def providers_always_needed() -> tuple[str, ...]:
    """Namespaces that must be registered whatever a deployment creates."""
    return _table().providers.always


def providers_of_azure() -> tuple[str, ...]:
    """Namespaces that every subscription has."""
    return _table().providers.by_azure
