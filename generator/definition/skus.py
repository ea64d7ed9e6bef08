"""VM sizes as Azure lists them: the JSON of `az vm list-skus`, which a user saved in a file.

The items are those of the Resource SKUs API, with texts as values, and null where a list is empty.
Source: https://learn.microsoft.com/rest/api/compute/resource-skus/list
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..errors import CannotRead

MAX_BYTES = 512 * 2**20
"""All sizes of all regions take tens of megabytes; more is no such file."""
COMMAND = "az vm list-skus -l REGION --size SIZE --all -o json > FILE"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)
_MOST_DISKS = 128
"""What `nvme_disks` takes; more come from a wrong figure."""
_ARCHITECTURES = {"x64": "x86_64", "arm64": "aarch64"}
_BOOLEANS = {"true": True, "false": False}


class Offer(Struct, frozen=True):
    region: str
    zones: tuple[str, ...]


class Restriction(Struct, frozen=True):
    """Why a size cannot be used somewhere, although Azure lists it."""

    reason: str
    """For example `NotAvailableForSubscription`."""
    regions: tuple[str, ...]
    zones: tuple[str, ...]
    """Only these zones are meant; empty = the whole region."""


class Figures(Struct, frozen=True):
    """What the list says about a size, as far as a plan needs it; None: not in the list.

    It never says whose GPUs a size has, which ones, nor how many InfiniBand ports.
    """

    vcpus: int | None
    vcpus_of_machine: int | None
    """Of a size with fewer vCPUs than its machine: those of the whole machine."""
    memory_gib: float | None
    architecture: str | None
    gpus: int
    gpus_text: str | None
    """The number of GPUs as it is written, where it is not a whole one."""
    infiniband: bool
    nvme_disks: int | None
    nvme_mib: int | None
    """Of all local NVMe disks together."""
    premium_storage: bool | None
    encryption_at_host: bool | None
    family: str | None
    retirement: str | None
    """Date after which Azure stops the size."""
    low_priority: bool | None = None
    """True when Azure offers the size as spot VMs."""
    trusted_launch: bool | None = None


class Sku(Struct, frozen=True):
    """One VM size of the list; the items of several regions are one."""

    name: str
    figures: Figures
    offers: tuple[Offer, ...]
    restrictions: tuple[Restriction, ...]


def read_skus(content: bytes, filename: str) -> tuple[Sku, ...]:
    """The VM sizes of a file, sorted by name. CannotRead says what is wrong with it, and what to type."""
    return skus_of(_machines(_items(content, filename), filename), filename)


def skus_of(items: Iterable[Mapping[str, Any]], filename: str = "Azure's list") -> tuple[Sku, ...]:
    """The VM sizes of items that are known to be VM sizes, sorted by name; `filename` says where they are from."""
    found: dict[str, Sku] = {}
    for item in items:
        sku = _sku(item, filename)
        known = found.get(sku.name)
        if known is not None and known.figures != sku.figures:
            regions = " and ".join(dict.fromkeys(offer.region for each in (known, sku) for offer in each.offers[:1]))
            message = f"{filename} has two items with different figures of {sku.name}"
            raise CannotRead(f"{message} ({regions})" if regions else message, f"name one region: {COMMAND}")
        found[sku.name] = sku if known is None else _together(known, sku)
    return tuple(found[name] for name in sorted(found))


def _items(content: bytes, filename: str) -> Sequence[object]:
    """The items of the list: bare, as az prints them, or below `value`, as the API answers."""
    value = _json(content, filename)
    if isinstance(value, Mapping) and isinstance(value.get("value"), list):
        value = value["value"]
    if not isinstance(value, list):
        raise CannotRead(f"{filename} is JSON, but not the list that az vm list-skus prints", COMMAND)
    if not value:
        hint = "check region and name; without --all az leaves out what your subscription cannot use"
        raise CannotRead(f"{filename} is an empty list: az found no such VM size", hint)
    return value


def _json(content: bytes, filename: str) -> Any:
    if not content.strip(b"\0 \t\r\n"):
        raise CannotRead(f"{filename} is empty", COMMAND)
    try:
        # Some shells write what a command prints as UTF-16, with a mark at the beginning.
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        raise CannotRead(f"{filename} is not text", COMMAND) from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        message = f"{filename}:{error.lineno}:{error.colno}: this is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
        raise CannotRead(message, COMMAND) from None
    except RecursionError:
        raise CannotRead(f"{filename}: its brackets are nested too deeply", COMMAND) from None
    except ValueError:  # a number of thousands of digits
        raise CannotRead(f"{filename} has a number that is too long", COMMAND) from None


def _machines(items: Sequence[object], filename: str) -> Iterator[Mapping[str, Any]]:
    """The items that are VM sizes; at least one, or CannotRead."""
    none = True
    for number, item in enumerate(items, 1):
        if not isinstance(item, Mapping):
            raise CannotRead(f"item {number} of {filename} is not a mapping", COMMAND)
        if str(item.get("resourceType")).casefold() == "virtualmachines":
            none = False
            yield item
    if none:
        kinds = sorted(
            {_word(item["resourceType"]) for item in items if isinstance(item, Mapping) and "resourceType" in item}
        )
        what = f": it has {', '.join(kinds[:5])}" if kinds else ""
        raise CannotRead(f"{filename} has no item of the type virtualMachines{what}", COMMAND)


def _sku(item: Mapping[str, Any], filename: str) -> Sku:
    name = item.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CannotRead(f"{filename} has a VM size without a usable name: {_word(name)}", COMMAND)
    return Sku(name, _figures(item, f"{filename}: {name}"), tuple(_offers(item)), tuple(_restrictions(item)))


def _figures(item: Mapping[str, Any], place: str) -> Figures:
    capabilities = {
        str(each.get("name")).casefold(): str(each.get("value")).strip()
        for each in _list(item.get("capabilities"))
        if each.get("value") is not None
    }

    def whole(name: str) -> int | None:
        value = _number(capabilities, name, _WHOLE, place)
        return None if value is None else int(value)

    of_machine, usable, gpus = whole("vCPUs"), whole("vCPUsAvailable"), capabilities.get("gpus")
    memory, nvme_mib = _number(capabilities, "MemoryGB", _DECIMAL, place), whole("NvmeDiskSizeInMiB")
    is_whole = gpus is None or _WHOLE.fullmatch(gpus) is not None
    family = item.get("family")
    return Figures(
        vcpus=usable or of_machine,
        vcpus_of_machine=of_machine if usable and usable != of_machine else None,
        memory_gib=None if memory is None else float(memory),
        architecture=_ARCHITECTURES.get(capabilities.get("cpuarchitecturetype", "").casefold()),
        gpus=int(gpus) if gpus and is_whole else 0,
        gpus_text=None if gpus is None or is_whole else _word(gpus if gpus.isprintable() else ascii(gpus)),
        infiniband=capabilities.get("rdmaenabled", "").casefold() == "true",
        nvme_disks=_disks(nvme_mib, whole("NvmeSizePerDiskInMiB")),
        nvme_mib=nvme_mib,
        premium_storage=_BOOLEANS.get(capabilities.get("premiumio", "").casefold()),
        encryption_at_host=_BOOLEANS.get(capabilities.get("encryptionathostsupported", "").casefold()),
        family=family.strip() if isinstance(family, str) and family.strip() else None,
        retirement=_word(capabilities["retirementdateutc"]) if "retirementdateutc" in capabilities else None,
        low_priority=_BOOLEANS.get(capabilities.get("lowprioritycapable", "").casefold()),
        # The list names what cannot have it; a size of which it says nothing can.
        trusted_launch=False if capabilities.get("trustedlaunchdisabled", "").casefold() == "true" else None,
    )


def _number(capabilities: Mapping[str, str], name: str, pattern: re.Pattern[str], place: str) -> str | None:
    """A capability that must be a number, as it is written."""
    value = capabilities.get(name.casefold())
    if value is not None and not pattern.fullmatch(value):
        raise CannotRead(f"{place}: the capability {name} is {_word(value)}, not a number", COMMAND)
    return value


def _disks(together: int | None, each: int | None) -> int | None:
    """Number of disks; Azure rounds both sizes to whole MiB. None: unknown, or the sizes contradict each other."""
    if not together or not each:
        return None
    count = round(together / each)
    return count if 0 < count <= _MOST_DISKS and abs(together - count * each) <= count else None


def _offers(item: Mapping[str, Any]) -> Iterator[Offer]:
    """Regions by name; Azure writes some in two ways (`WestUS3`, `westus3`)."""
    zones = {
        _word(each.get("location")).casefold(): _words(each.get("zones")) for each in _list(item.get("locationInfo"))
    }
    for region in dict.fromkeys([*(word.casefold() for word in _words(item.get("locations"))), *zones]):
        yield Offer(region, tuple(sorted(zones.get(region, ()))))


def _restrictions(item: Mapping[str, Any]) -> Iterator[Restriction]:
    for each in _list(item.get("restrictions")):
        info = each.get("restrictionInfo")
        info = info if isinstance(info, Mapping) else {}
        regions = _words(info.get("locations")) or _words(each.get("values"))
        zones = _words(info.get("zones")) if str(each.get("type")).casefold() == "zone" else []
        yield Restriction(_word(each.get("reasonCode") or "no reason given"), tuple(regions), tuple(sorted(zones)))


def _together(first: Sku, second: Sku) -> Sku:
    offers = dict.fromkeys((*first.offers, *second.offers))
    restrictions = dict.fromkeys((*first.restrictions, *second.restrictions))
    return Sku(first.name, first.figures, tuple(offers), tuple(restrictions))


def _list(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list; null is an empty one."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _words(value: object) -> list[str]:
    return [_word(each) for each in value] if isinstance(value, list) else []


def _word(value: object) -> str:
    """Shorten a foreign text to one printable line."""
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in str(value)).split())
    return text if len(text) <= 60 else text[:59] + "…"
