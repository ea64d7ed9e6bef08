"""The resource types that a deployment creates, refers to or leaves behind, each with all that is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from ..records import record
from .files import table

Removal = Literal["in order", "by id"]
Data = Literal["holds", "serves", "without"]
Node = Literal["machine", "part"]


@record
class ResourceType:
    """One row of the table."""

    name: str
    """As Azure spells it: `Microsoft.Network/bastionHosts`."""
    api_version: str | None
    """Of modules and requests; None: nothing names the type to Azure."""
    removal: Removal | None
    """How `delete` removes one by itself: after those that use it, or by its id; None: it goes with its parent."""
    data: Data | None
    """Whether it holds data, is kept where data is kept, or goes in any case; None: what its parent does."""
    node: Node | None
    """Whether one can be a node, or part of one, which does not carry the deployment's tag."""
    uses: tuple[str, ...]
    """Actions on others that creating one takes."""
    kept: str | None
    """What Azure keeps for some days when one is deleted."""
    kept_page: str
    minutes: int | None
    """That Azure usually takes to create one; None: nobody documents it."""
    or_more: bool

    @property
    def namespace(self) -> str:
        """The resource provider."""
        return self.name.partition("/")[0]


@cache
def resource_types() -> Mapping[str, ResourceType]:
    """By name in lower case, since Azure answers in any; in the order in which they can be deleted."""
    return {row["type"].lower(): _read(row) for row in table("resource_types")["types"]["rows"]}


def _read(row: Mapping[str, Any]) -> ResourceType:
    return ResourceType(
        name=row["type"],
        api_version=row.get("api_version"),
        removal=row.get("removal"),
        data=row.get("data"),
        node=row.get("node"),
        uses=tuple(row.get("uses", ())),
        kept=row.get("kept"),
        kept_page=row.get("kept_page", ""),
        minutes=row.get("minutes"),
        or_more=row.get("or_more", False),
    )


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
    return {row["name"]: row["id"] for row in table("resource_types")["roles"]["rows"]}


def providers_always_needed() -> tuple[str, ...]:
    """Namespaces that must be registered whatever a deployment creates."""
    return tuple(table("resource_types")["providers"]["always"])


def providers_of_azure() -> tuple[str, ...]:
    """Namespaces that every subscription has."""
    return tuple(table("resource_types")["providers"]["by_azure"])
