"""No answer is ever taken for a good one: each request in turn is refused, answered by a proxy, or answered oddly."""

from __future__ import annotations

import re
from itertools import product

import pytest

from generator.plan.deployment import Plan
from tests.bed.arm import Arm
from tests.bed.arm.exchange import RefusedError
from tests.preflight.asked import AskedOnce, found_by, signed_in
from tests.preflight.test_networks import EXISTING, PEERED, healthy
from tests.preflight.test_resources import OTHERS, own_images

ANSWERS = {
    "forbidden": RefusedError(403, "AuthorizationFailed", "The client does not have authorization to perform it."),
    "another 404": RefusedError(404, "SomethingElse", "This is not what Azure says of what is not there."),
    "odd": RefusedError(200, "Odd", "A good status, and a body of another form."),
}
EVERYTHING: dict[str, Plan] = {
    "hub": PEERED,
    "existing": EXISTING,
    "others": OTHERS,
}
OF_OTHERS = re.compile(r"/subscriptions/[^/]+(/locations|/providers(/Microsoft.(Features|Authorization)/.*|/[^/]+)?)?")
"""Paths that are asked about subscription, providers and rights."""


@pytest.mark.parametrize(
    ("definition", "answer"),
    [("existing", "another 404"), *product(EVERYTHING, ("forbidden", "odd"))],
)
def test_nothing_is_good_that_was_not_answered(arm: Arm, definition: str, answer: str) -> None:
    plan = EVERYTHING[definition]
    healthy(arm.state)
    own_images(arm.state)
    wrong = []
    with AskedOnce(signed_in(plan)) as azure:
        assert found_by(arm, plan, azure.reader()) == []
        asked = {(each.method, each.path) for each in arm.requests if not OF_OTHERS.fullmatch(each.path)}
        assert len(asked) >= 10
        for method, path in sorted(asked):
            arm.faults.due.clear()
            arm.fail(method, path, ANSWERS[answer], times=1000)
            azure.anew, count = (method, path), len(arm.requests)
            if found_by(arm, plan, azure.reader()) == []:
                wrong.append(f"{method} {path}")
            assert (method, path) in [(each.method, each.path) for each in arm.requests[count:]]
    assert wrong == []
