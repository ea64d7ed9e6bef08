"""Words that Azure keeps for itself in names that are host names."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import NewDatabase
from ..plan import names
from ..plan.resources import resource_names
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site
from .figures import figures
from .wording import quoted


class ReservedName(DefinitionRule):
    id = "E0224"
    summary = "A name that becomes global in Azure has a reserved word."
    why = (
        "Storage accounts and database servers have host names, in which Azure refuses 'microsoft' and 'windows' "
        "anywhere, 'login' at the start, and some product names as a whole (ReservedResourceName). Names that "
        "CycleForge makes begin with yours."
    )
    fix = "Choose another name, or give the resource a name of its own."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-reserved-resource-name"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, name, what, key in self._global_names(site):
            word = _reserved_word(name)
            if word is None:
                continue
            if path[-1] == key:
                yield self.problem(path, f"{what} cannot have the name {quoted(name)}: Azure reserves {quoted(word)}")
            else:
                text = f"{what} would get a name that begins with {quoted(name)}: Azure reserves {quoted(word)}"
                yield self.problem(path, text, f"give it a name of its own: {key}")

    def _global_names(self, site: Site) -> Iterator[tuple[Path, str, str, str]]:
        """(where, name or its beginning, whose it is, key that gives it another) of what the deployment creates."""
        definition = site.definition
        prefix = names.prefix(definition)
        stems = resource_names(prefix, definition.name, "", definition.azure.cloud)
        if definition.server.existing is None:
            account = definition.storage.locker.account_name
            path: Path = ("name",) if account is None else ("storage", "locker", "account_name")
            yield path, account or stems.locker_account_stem, "the storage account of the locker", "account_name"
        accounting = definition.slurm.accounting if definition.slurm else None
        if isinstance(accounting, NewDatabase):
            given = ("azure", "prefix") if definition.azure.prefix else ("name",)
            path = given if accounting.server_name is None else ("slurm", "accounting", "server_name")
            yield path, accounting.server_name or stems.database_server_stem, "the database server", "server_name"


def _reserved_word(name: str) -> str | None:
    """The reserved word that makes Azure refuse a name; None where there is none."""
    words, lower = figures()["reserved_resource_names"], name.lower()
    inside = next((word for word in words["anywhere"] if word in lower), None)
    at_start = next((word for word in words["at_the_start"] if lower.startswith(word)), None)
    return inside or at_start or (lower if lower in words["as_a_whole"] else None)
