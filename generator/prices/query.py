"""How one meter is asked for, and which items of the answer are its own.

Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices: the filter knows `eq`,
`and`, `or` and `contains`, and its values are case-sensitive from version 2023-01-01-preview on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .. import catalog
from ..records import record

Item = Mapping[str, Any]
_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "is": lambda value, text: value == text,
    "contains": lambda value, text: text in value,
    "ends": lambda value, text: value.endswith(text),
    "word": lambda value, text: re.search(rf"(?<![0-9a-z]){re.escape(text)}(?![0-9a-z])", value, re.I) is not None,
}


@record
class Query:
    """One question to the price list, and the meter that it is for."""

    address: str
    meter: str
    words: tuple[tuple[str, str], ...]


def query(meter: str, words: tuple[tuple[str, str], ...], region: str, currency: str) -> Query:
    """The question after one meter in a region."""
    facts, parts = catalog.meters()["meters"][meter], ["priceType eq 'Consumption'"]
    parts += [_asked(condition, words) for condition in facts["ask"]]
    if "region" in facts:
        parts.append(f"armRegionName eq {_text(region if facts['region'] == 'own' else facts['region'])}")
    shop = catalog.meters()["price_list"]
    filter_text = quote(" and ".join(parts), safe="")
    start = f"{shop['address']}?api-version={shop['api_version']}&currencyCode={_text(currency)}"
    return Query(f"{start}&$filter={filter_text}", meter, words)


def own_items(asked: Query, items: Iterable[Item]) -> list[Item]:
    """The items of an answer that are the meter's: of the primary region of it where the list has several."""
    facts = catalog.meters()["meters"][asked.meter]
    found = [
        item
        for item in items
        if item.get("type") == "Consumption"
        and all(_holds(condition, asked.words, item) for condition in facts.get("keep", ()))
        and not any(_holds(condition, asked.words, item) for condition in facts.get("drop", ()))
    ]
    return [item for item in found if item.get("isPrimaryMeterRegion")] or found


def _holds(condition: Mapping[str, str], words: Sequence[tuple[str, str]], item: Item) -> bool:
    kind, text = _test(condition, words)
    return _TESTS[kind](str(item.get(condition["field"], "")), text)


def _asked(condition: Mapping[str, str], words: Sequence[tuple[str, str]]) -> str:
    kind, text = _test(condition, words)
    field = condition["field"]
    return f"contains({field}, {_text(text)})" if kind == "contains" else f"{field} eq {_text(text)}"


def _test(condition: Mapping[str, str], words: Sequence[tuple[str, str]]) -> tuple[str, str]:
    (kind,) = set(condition) - {"field"}
    return kind, condition[kind].format(**dict(words))


def _text(value: str) -> str:
    """A text of the filter; a quotation mark in it is doubled, as OData has it."""
    return "'" + value.replace("'", "''") + "'"
