"""Tags: how many, and what they may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .. import catalog
from ..plan.created_types import created_types
from ..plan.names import OWNER_TAG
from ..plan.tags import tags_of, writes_dns_zone
from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .figures import figures
from .wording import quoted


class Tags(DefinitionRule):
    id = "E0212"
    summary = "A tag is not valid in Azure."
    why = (
        "Azure limits the number, length and characters of tags; an invalid tag stops the deployment. A resource takes "
        "50, a private DNS zone and its link take 15; a storage account takes shorter names than others, and Bicep no "
        "longer ones than its identifiers are. All resources get the same tags."
    )
    fix = "Shorten or rename the tag, or leave out some."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources"

    def check(self, site: Site) -> Iterator[Problem]:
        tags = site.definition.tags
        has_account = any(each.type == "Microsoft.Storage/storageAccounts" for each in created_types(site.definition))
        yield from self._too_many(site)
        seen: dict[str, str] = {}
        for name, value in tags.items():
            fault = tag_fault(name, value, "tag_name_of_storage_account" if has_account else "tag_name_in_bicep")
            if fault is None and name.lower() in seen:
                fault = f"differs from {quoted(seen[name.lower()])} only in case, which Azure does not tell apart"
            if fault:
                yield self.problem(("tags", name), f"the tag {quoted(name)} {fault}", on_key=True)
            seen.setdefault(name.lower(), name)

    def _too_many(self, site: Site) -> Iterator[Problem]:
        given, names = len(site.definition.tags), catalog.limits().names
        with_zone = writes_dns_zone(site.definition, site.layout)
        own = len(tags_of(site.definition)) - given
        most = (names.tags_per_dns_zone if with_zone else names.tags_per_resource).value - own
        if given > most:
            text = f"{given} tags are given; with the {own} that CycleForge adds, {most} are possible"
            why = f": a private DNS zone or its link, which this deployment creates, takes {most + own}"
            yield self.problem(("tags",), text + why * with_zone, on_key=True)


_Longest = Literal["tag_name", "tag_name_of_storage_account", "tag_name_in_bicep"]


def tag_fault(name: str, value: str, limit: _Longest = "tag_name") -> str | None:
    """Why Azure or CycleForge refuses a tag; None for one that is fine. `limit` names the one of its length."""
    rule, names = figures().tag_names, catalog.limits().names
    longest_name = getattr(names, limit).value
    longest_value = names.tag_value.value
    if name.lower() == OWNER_TAG:
        return "is the one by which CycleForge finds what belongs to a deployment"
    forbidden = [sign for sign in rule.forbidden_characters if sign in name]
    if not name.strip():
        return "has no name"
    if len(name) > longest_name:
        where = {"tag_name_of_storage_account": " on a storage account", "tag_name_in_bicep": " in Bicep"}.get(
            limit, ""
        )
        return f"has a name of {len(name)} characters; at most {longest_name} are allowed{where}"
    if forbidden:
        return f"has the character {forbidden[0]}, which is not allowed in tag names"
    if name.lower().startswith(tuple(rule.reserved_prefixes)):
        return "begins with a word that Azure reserves: azure, microsoft or windows"
    if len(value) > longest_value:
        return f"has a value of {len(value)} characters; at most {longest_value} are allowed"
    if not all(sign.isprintable() for sign in name + value):
        return "has a control character"
    return None
