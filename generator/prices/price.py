"""One price of the list: what a unit costs in an hour, how its meter is asked for, and which items are its own.

Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices: the filter knows `eq`,
`and`, `or` and `contains`, and its values are case-sensitive from version 2023-01-01-preview on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Literal
from urllib.parse import quote

from msgspec import Struct

from .. import catalog
from ..catalog.azure_facts import Condition

_UNIT = re.compile(r"(?P<count>\d+)(?:\s*(?P<size>GB|GiB|TB|TiB))?\s*/?\s*(?P<time>Hour|Day|Month)s?", re.I)
_GIB = {"": 1.0, "gb": 1.0, "gib": 1.0, "tb": 1024.0, "tib": 1024.0}
"""Azure bills capacity by powers of two, whichever way the list writes the unit.

Source: https://azure.microsoft.com/pricing/details/managed-disks (disk sizes in GiB)
"""
_HOURS = {"hour": 1.0, "day": 24.0}


class Price(Struct, frozen=True):
    state: Literal["found", "none", "several", "unknown"]
    """`none`: the list has no such meter; `several`: it has more than one; `unknown`: it could not be asked."""
    per_hour: float | None = None
    """For one unit: a VM, a disk, a GiB."""
    meter: str = ""
    """What the list calls it."""
    reason: str = ""


def price_of(items: Sequence[Mapping[str, Any]], quantity: int) -> Price:
    """The price among the items of one meter. Two prices count as none: which of them will be billed is unknown."""
    try:
        steps = {_number(item, "tierMinimumUnits") for item in items}
        tier = max((step for step in steps if step <= quantity), default=0.0)
        prices = {
            (_per_hour(item), f"{item['productName']}, {item['meterName']}, {item['unitOfMeasure']}")
            for item in items
            if _number(item, "tierMinimumUnits") == tier
        }
    except (KeyError, TypeError, ValueError) as error:
        return Price("unknown", reason=f"the price list answered in an unknown form ({error})")
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
    hours = _HOURS.get(unit["time"].lower(), float(catalog.meters().month.hours))
    return _number(item, "retailPrice") / (int(unit["count"]) * _GIB[(unit["size"] or "").lower()] * hours)


def _number(item: Mapping[str, Any], key: str) -> float:
    value = item.get(key, 0.0) if key == "tierMinimumUnits" else item[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise ValueError(f"{key} {value!r}")
    return float(value)


Item = Mapping[str, Any]
_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "is": lambda value, text: value == text,
    "contains": lambda value, text: text in value,
    "ends": lambda value, text: value.endswith(text),
    "word": lambda value, text: re.search(rf"(?<![0-9a-z]){re.escape(text)}(?![0-9a-z])", value, re.I) is not None,
}


class Query(Struct, frozen=True):
    """One question to the price list, and the meter that it is for."""

    address: str
    meter: str
    words: tuple[tuple[str, str], ...]


def query(meter: str, words: tuple[tuple[str, str], ...], region: str, currency: str) -> Query:
    facts, parts = catalog.meters().meters[meter], ["priceType eq 'Consumption'"]
    parts += [_asked(condition, words) for condition in facts.ask]
    if facts.region is not None:
        parts.append(f"armRegionName eq {_text(region if facts.region == 'own' else facts.region)}")
    shop = catalog.meters().price_list
    filter_text = quote(" and ".join(parts), safe="")
    start = f"{shop.address}?api-version={shop.api_version}&currencyCode={_text(currency)}"
    return Query(f"{start}&$filter={filter_text}", meter, words)


def own_items(asked: Query, items: Iterable[Item]) -> list[Item]:
    """The items of an answer that are the meter's: of the primary region of it where the list has several."""
    facts = catalog.meters().meters[asked.meter]
    found = [
        item
        for item in items
        if item.get("type") == "Consumption"
        and all(_holds(condition, asked.words, item) for condition in facts.keep)
        and not any(_holds(condition, asked.words, item) for condition in facts.drop)
    ]
    return [item for item in found if item.get("isPrimaryMeterRegion")] or found


def _holds(condition: Condition, words: Sequence[tuple[str, str]], item: Item) -> bool:
    kind, text = _test(condition, words)
    return _TESTS[kind](str(item.get(condition.field, "")), text)


def _asked(condition: Condition, words: Sequence[tuple[str, str]]) -> str:
    kind, text = _test(condition, words)
    field = condition.field
    return f"contains({field}, {_text(text)})" if kind == "contains" else f"{field} eq {_text(text)}"


def _test(condition: Condition, words: Sequence[tuple[str, str]]) -> tuple[str, str]:
    tests = {"is": condition.is_, "contains": condition.contains, "ends": condition.ends, "word": condition.word}
    (found,) = ((kind, text) for kind, text in tests.items() if text is not None)
    return found[0], found[1].format(**dict(words))


def _text(value: str) -> str:
    """A text of the filter; a quotation mark in it is doubled, as OData has it."""
    return "'" + value.replace("'", "''") + "'"
