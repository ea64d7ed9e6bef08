"""Odd answers say that nothing is known; null lists are empty ones; names are compared as Azure does."""

from __future__ import annotations

import pytest

from generator.azure import answers
from generator.azure.answers import OddAnswer
from generator.azure.checks import images, quota, vm_sizes
from tests.azure_checks.answers import size, usage
from tests.bed.plans import plan_from


@pytest.mark.parametrize("answer", [{}, {"value": 3}, {"value": ["text"]}, "text", 4])
def test_what_is_no_list_is_not_an_empty_one(answer: object) -> None:
    with pytest.raises(OddAnswer):
        answers.items(answer, "sizes")


def test_null_is_an_empty_list() -> None:
    assert answers.items({"value": None}, "sizes") == []
    nothing = size("Standard_D4as_v5") | {"locationInfo": None, "capabilities": None, "restrictions": None}
    (sku,) = vm_sizes.offered([nothing], ["standard_d4as_V5"]).values()
    assert vm_sizes.usable_zones(sku, "southcentralus") == []


@pytest.mark.parametrize("figure", [None, "4", True, 4.5])
def test_a_limit_without_a_number_is_not_known(figure: object) -> None:
    with pytest.raises(OddAnswer):
        quota.limits([usage("cores", 0, 100) | {"limit": figure}])


def test_an_empty_list_of_limits_is_not_known() -> None:
    with pytest.raises(OddAnswer):
        quota.limits([])


def test_the_newest_image_is_that_of_the_highest_numbers() -> None:
    assert images.newest([{"name": "8.9.1"}, {"name": "8.10.0"}, {"name": "8.9.12"}]) == "8.10.0"
    assert images.newest([]) is None


def test_sizes_that_nobody_wants_may_be_odd() -> None:
    odd = size("Standard_Odd", capabilities={"vCPUs": "many"})
    assert list(vm_sizes.offered([odd, size("Standard_D4as_v5")], ["Standard_D4as_v5"])) == ["standard_d4as_v5"]
    with pytest.raises(OddAnswer):
        vm_sizes.offered([odd], ["Standard_Odd"])


def test_a_region_and_a_family_may_be_written_otherwise() -> None:
    plan = plan_from()
    items = [
        size(name, "Standard DASv5 Family", region="SouthCentralUS")
        for name in ("Standard_D4as_v5", "Standard_D64ds_v5")
    ]
    sizes = vm_sizes.offered(items, ("Standard_D4as_v5", "Standard_D64ds_v5"))
    known = quota.limits([usage("standardDASv5Family", 0, 1), usage("cores", 0, 1000)])
    assert list(vm_sizes.SizeNotOffered().judged(plan, sizes)) == []
    assert [need.name for need in quota.needs(plan, sizes)] == ["Standard DASv5 Family", "cores"]
    texts = [found.message for found in quota.QuotaTooSmall().judged(plan, "S", sizes, known, ())]
    assert len(texts) == 1
    assert "standardDASv5Family" in texts[0]
