"""What `az deployment sub what-if` can tell: every resource but role assignments.

It runs nothing, so it has no outputs of modules; a resource whose name, parent, scope or condition depends on one is
left out, with the rest of its deployment.
Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/linter-rule-what-if-short-circuiting
"""

from __future__ import annotations

import pytest

from tests.bed.bicep.deployment import resources_of
from tests.bicep.variants import VARIANTS, rendered_files
from tests.definitions import build

ROLE = "Microsoft.Authorization/roleAssignments"


@pytest.mark.parametrize("name", [*build.NAMES, *VARIANTS])
def test_only_role_assignments_are_left_out(name: str) -> None:
    files = build.rendered(name) if name in build.NAMES else rendered_files(VARIANTS[name]())
    found = resources_of(files, outputs_are_late=True)
    undecided = {each.symbol: each.type for each in found if set(each.undecided) - {"body"}}
    assert set(undecided.values()) <= {ROLE}
    alone = {symbol.rpartition("/")[0] for symbol in undecided}
    others = [each for each in found if each.symbol.rpartition("/")[0] in alone and each.symbol not in undecided]
    assert others == [], "what-if leaves out whatever is in the same module"
