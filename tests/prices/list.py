"""A stand-in of Azure's public price list on the loopback. The prices are invented; what it does has sources.

* Parameters, filter, page size of 100, `NextPageLink` with `$skip`, fields of an item, case-sensitive values, and
  `priceType` of the filter being `type` of the item:
  https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
* 429 now and then, with and without `Retry-After`: https://github.com/Azure/azure-rest-api-specs/issues/21500 and
  RFC 6585, section 4, where the header is optional.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from generator.blobs.download import Limits

HOST = "https://prices.azure.com"
PATH = "/api/retail/prices"
PAGE = 100
VERSION = "2023-01-01-preview"
FIELDS = frozenset(
    {"armRegionName", "location", "meterId", "meterName", "productId", "skuId", "productName", "skuName", "serviceName",
     "serviceId", "serviceFamily", "priceType", "armSkuName"}
)  # fmt: skip
_CONDITION = re.compile(r"(\w+) eq '((?:[^']|'')*)'|contains\((\w+), ?'((?:[^']|'')*)'\)")


def item(service: str, product: str, sku: str, meter: str, price: float, **changes: Any) -> dict[str, Any]:
    """One item with all fields that the documentation's example has."""
    fields = {
        "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
        "armRegionName": "southcentralus", "location": "US South Central", "effectiveStartDate": "2026-01-01T00:00:00Z",
        "meterId": "00000000-0000-0000-0000-000000000000", "meterName": meter, "productId": "DZH318Z0BPVW",
        "skuId": "DZH318Z0BPVW/003D", "productName": product, "skuName": sku, "serviceName": service,
        "serviceId": "DZH313Z7MMC8", "serviceFamily": "Compute", "unitOfMeasure": "1 Hour", "type": "Consumption",
        "isPrimaryMeterRegion": True, "armSkuName": "",
    }  # fmt: skip
    return fields | changes


def vm(size: str, price: float, **changes: Any) -> list[dict[str, Any]]:
    """What the list has of one VM size: Linux, Windows, both as spot and low priority, and a reservation."""
    short = size.removeprefix("Standard_").replace("_", " ")
    series = f"Virtual Machines {short} Series"
    own: dict[str, Any] = {"armSkuName": size} | changes
    return [
        item("Virtual Machines", series, short, short, price, **own),
        item("Virtual Machines", f"{series} Windows", short, short, price * 2, **own),
        item("Virtual Machines", series, f"{short} Spot", f"{short} Spot", price / 5, **own),
        item("Virtual Machines", series, f"{short} Low Priority", f"{short} Low Priority", price / 4, **own),
        item("Virtual Machines", f"{series} CloudServices", short, short, price * 3, **own),
        item(
            "Virtual Machines", series, short, short, price * 5000, type="Reservation", reservationTerm="1 Year", **own
        ),
    ]


@dataclass
class PriceServer:
    """Its items and its moods, and what it was asked."""

    url: str
    items: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[str | None] = field(default_factory=list)
    """Each makes one request end with 429, with this `Retry-After` if there is one."""
    body: bytes | None = None
    """Given to every request instead of an answer: a proxy's page, half an answer."""
    asked: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limits(self) -> Limits:
        """Every address of the price list led here."""
        return Limits(answer_s=20, total_s=60, tries=3, pause_s=0.01, schemes=("https", "http"), address=self.led)

    def led(self, address: str) -> str:
        """The same path and question on the loopback."""
        parts = urlsplit(address)
        assert (parts.scheme, parts.hostname) == ("https", urlsplit(HOST).hostname), address
        return f"{self.url}{parts.path}?{parts.query}"

    def answer(self, target: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body for a request."""
        with self._lock:
            self.asked.append(target)
            if self.refusals:
                after = self.refusals.pop()
                return 429, {} if after is None else {"Retry-After": after}, b""
        if self.body is not None:
            return 200, {}, self.body
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=True).items()}
        assert parts.path == PATH, target
        assert query.keys() <= {"api-version", "currencyCode", "$filter", "$skip", "meterRegion"}, target
        assert query["api-version"] == VERSION
        currency, skip = query["currencyCode"].strip("'"), int(query.get("$skip", 0))
        found = [each | {"currencyCode": currency} for each in self.items if _fits(query["$filter"], each)]
        page = found[skip : skip + PAGE]
        more = f"{HOST}:443{PATH}?{re.sub('&[$]skip=[0-9]+', '', parts.query)}&$skip={skip + PAGE}"
        answer = {
            "BillingCurrency": currency, "CustomerEntityId": "Default", "CustomerEntityType": "Retail", "Items": page,
            "NextPageLink": more if len(found) > skip + PAGE else None, "Count": len(page),
        }  # fmt: skip
        return 200, {}, json.dumps(answer).encode()


def _fits(text: str, each: Mapping[str, Any]) -> bool:
    """Whether an item is what a filter asks for; a filter of another grammar fails the test."""
    fits = True
    for part in text.split(" and "):
        found = _CONDITION.fullmatch(part)
        assert found is not None, f"not a condition of the list: {part}"
        name, wanted = found[1] or found[3], (found[2] if found[1] else found[4]).replace("''", "'")
        assert name in FIELDS, f"the list cannot be filtered by {name}"
        value = each["type" if name == "priceType" else name]
        fits = fits and (value == wanted if found[1] else wanted in value)
    return fits


@contextmanager
def serving_prices(items: list[dict[str, Any]]) -> Iterator[PriceServer]:
    """The list on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                code, headers, body = server.answer(self.path)
            except AssertionError as error:
                code, headers, body = 400, {}, str(error).encode()
                server.asked.append(f"REFUSED: {error}")
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = PriceServer(f"http://127.0.0.1:{http.server_address[1]}", items)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
