"""One price among the items of a meter."""

from __future__ import annotations

from typing import Any

import pytest

from generator.prices.price import price_of
from tests.prices.list import item


def disk(price: float = 7.3, **changes: Any) -> dict[str, Any]:
    return item("Storage", "Premium SSD Managed Disks", "P10 LRS", "P10 LRS Disk", price, **changes)


@pytest.mark.parametrize(
    ("unit", "price", "per_hour"),
    [
        ("1 Hour", 7.3, 7.3),
        ("1/Hour", 7.3, 7.3),
        ("1/Month", 7.3, 0.01),
        ("1 GB/Month", 73, 0.1),
        ("1 GiB/Hour", 0.5, 0.5),
        ("1 TiB/Hour", 512, 0.5),
        ("100 Hours", 50, 0.5),
        ("1/Day", 48, 2),
    ],
)
def test_every_unit_is_brought_to_an_hour(unit: str, price: float, per_hour: float) -> None:
    assert price_of([disk(price, unitOfMeasure=unit)], 1).per_hour == pytest.approx(per_hour)


@pytest.mark.parametrize("unit", ["1K", "10K/Month", "1 GB", "Hour", "", "1 Hour extra"])
def test_an_unknown_unit_is_no_price(unit: str) -> None:
    found = price_of([disk(unitOfMeasure=unit)], 1)
    assert (found.state, found.per_hour) == ("unknown", None)
    assert repr(unit) in found.reason


@pytest.mark.parametrize("value", ["7", None, True, -1, float("nan"), float("inf")])
def test_what_is_no_amount_is_no_price(value: object) -> None:
    found = price_of([disk() | {"retailPrice": value}], 1)
    assert (found.state, found.per_hour) == ("unknown", None)


def test_no_item_is_no_price_and_never_zero() -> None:
    found = price_of([], 1)
    assert (found.state, found.per_hour, found.reason) == ("none", None, "no price found")


def test_two_prices_are_both_named_and_none_is_taken() -> None:
    found = price_of([disk(7.3), disk(14.6, productName="Another")], 1)
    assert (found.state, found.per_hour) == ("several", None)
    assert "Premium SSD Managed Disks" in found.reason
    assert "Another" in found.reason


def test_the_same_price_twice_is_one() -> None:
    assert price_of([disk(), disk(meterId="11111111-1111-1111-1111-111111111111")], 1).state == "found"


@pytest.mark.parametrize(("quantity", "price"), [(1, 5.0), (10, 4.0), (5000, 4.0)])
def test_the_step_that_the_quantity_reaches_counts(quantity: int, price: float) -> None:
    steps = [disk(5.0, unitOfMeasure="1 Hour"), disk(4.0, unitOfMeasure="1 Hour", tierMinimumUnits=10.0)]
    assert price_of(steps, quantity).per_hour == price


def test_an_item_without_a_field_is_no_price() -> None:
    broken = disk()
    del broken["unitOfMeasure"]
    assert price_of([broken], 1).state == "unknown"
