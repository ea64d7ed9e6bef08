"""Names that CycleForge makes up, against the limits of what they name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..plan.derived_names import derived_names
from ..plan.types import Plan
from ..problems.problem import Problem
from .base import PlanRule


class DerivedNameDoesNotFit(PlanRule):
    id = "E0256"
    summary = "A name that is made from the definition is not one that Azure accepts."
    why = (
        "Names of resources are put together from names of the definition, each of which may be valid by itself while "
        "the whole is too long. Azure refuses it when a part of the deployment already exists."
    )
    fix = "Shorten the name at which the message points, or azure.prefix, with which most names begin."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for each in dict.fromkeys(derived_names(plan)):
            rule = catalog.resource_names()[each.type]
            named = f"{rule['words']} would be called '{each.name}'"
            over = len(each.name) - rule["max"]
            if over > 0:
                text = f"{named}, which has {len(each.name)} characters; Azure allows {rule['max']}"
                yield self.problem(each.path, text, f"shorten it, or azure.prefix, by {over}")
            elif len(each.name) < rule["min"] or not re.fullmatch(rule["pattern"], each.name):
                yield self.problem(each.path, f"{named}, which Azure does not accept")
