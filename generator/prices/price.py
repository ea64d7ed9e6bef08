"""One price of the list: what a unit costs in an hour."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal

from .. import catalog
from ..records import record

_UNIT = re.compile(r"(?P<count>\d+)(?:\s*(?P<size>GB|GiB|TB|TiB))?\s*/?\s*(?P<time>Hour|Day|Month)s?", re.I)
_GIB = {"": 1.0, "gb": 1.0, "gib": 1.0, "tb": 1024.0, "tib": 1024.0}
"""Azure bills capacity by powers of two, whichever way the list writes the unit.

Source: https://azure.microsoft.com/pricing/details/managed-disks (disk sizes in GiB)
"""
_HOURS = {"hour": 1.0, "day": 24.0}


@record
class Price:
    """What the list says of one meter."""

    state: Literal["found", "none", "several", "unknown"]
    """`none`: the list has no such meter; `several`: it has more than one; `unknown`: it could not be asked."""
    per_hour: float | None = None
    """For one unit: a VM, a disk, a GiB."""
    meter: str = ""
    """What the list calls it."""
    reason: str = ""


def price_of(items: Sequence[Mapping[str, Any]], quantity: int) -> Price:
    """The price among the items of one meter. Two prices are none: nobody knows which of them will be billed."""
    try:
        steps = {_number(item, "tierMinimumUnits") for item in items}
        tier = max((step for step in steps if step <= quantity), default=0.0)
        prices = {
            (_per_hour(item), f"{item['productName']}, {item['meterName']}, {item['unitOfMeasure']}")
            for item in items
            if _number(item, "tierMinimumUnits") == tier
        }
    except (KeyError, TypeError, ValueError) as error:
        return Price("unknown", reason=f"the price list answered in a form that is not known ({error})")
    if not prices:
        return Price("none", reason="no price found")
    if len({amount for amount, _ in prices}) > 1:
        names = "; ".join(f"{name}: {amount:g} an hour" for amount, name in sorted(prices))
        return Price("several", reason=f"several prices found: {names}")
    amount, name = min(prices)
    return Price("found", amount, name)


def _per_hour(item: Mapping[str, Any]) -> float:
    unit = _UNIT.fullmatch(str(item["unitOfMeasure"]).strip())
    if unit is None:
        raise ValueError(f"the unit {item['unitOfMeasure']!r}")
    hours = _HOURS.get(unit["time"].lower(), float(catalog.meters()["month"]["hours"]))
    return _number(item, "retailPrice") / (int(unit["count"]) * _GIB[(unit["size"] or "").lower()] * hours)


def _number(item: Mapping[str, Any], key: str) -> float:
    value = item.get(key, 0.0) if key == "tierMinimumUnits" else item[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise ValueError(f"{key} {value!r}")
    return float(value)
