"""The block `custom_vm_sizes` of a definition, written from what Azure lists of the sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from ... import catalog
from ..skus import Offer, Restriction, Sku

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_WAYS_OUT = {
    "notavailableforsubscription": "ask Azure support for access",
    "quotaid": "this kind of subscription cannot have it",
}
"""Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-sku-not-available"""


def blocks_text(skus: Sequence[Sku]) -> str:
    """YAML to paste into a definition; what Azure's list does not say is left open, with a comment that asks for it."""
    lines = ["custom_vm_sizes:"]
    for sku in skus:
        lines += [f"  # {text}" for text in _comments(sku)]
        if not catalog.vm_size(sku.name).known:
            lines += _entry(sku)
    return "\n".join(lines) + "\n" if any(line.startswith("  - ") for line in lines) else _nothing(lines[1:])


def _nothing(comments: list[str]) -> str:
    """Every size is known: there is nothing to paste."""
    return "\n".join(["# no block is needed", *(line.strip() for line in comments)]) + "\n"


def block_data(sku: Sku) -> dict[str, object]:
    """The block as plain data, `null` for what the list does not say; and where the size is offered."""
    figures = sku.figures
    gpus = {"count": figures.gpus, "vendor": None, "model": None, "memory_gb": None}
    return {
        "name": sku.name,
        "in_catalogue": catalog.vm_size(sku.name).known,
        "vcpus": figures.vcpus,
        "memory_gib": figures.memory_gib,
        "architecture": figures.architecture,
        "gpus": gpus if figures.gpus or figures.gpus_text else None,
        "infiniband": {"nics": None, "gbps_per_nic": None} if figures.infiniband else None,
        "nvme_disks": figures.nvme_disks,
        "premium_storage": figures.premium_storage,
        "encryption_at_host": figures.encryption_at_host,
        "quota_family": figures.family,
        "offered": [{"region": offer.region, "zones": list(offer.zones)} for offer in sku.offers],
        "restrictions": [
            {"reason": each.reason, "regions": list(each.regions), "zones": list(each.zones)}
            for each in sku.restrictions
        ],
    }


def _comments(sku: Sku) -> Iterator[str]:
    if catalog.vm_size(sku.name).known:
        yield f"{sku.name} is in the catalogue and needs no block"
    yield f"{sku.name} is offered in {_offers(sku.offers)}" if sku.offers else f"{sku.name}: the file names no region"
    if sku.figures.retirement is not None:
        yield f"{sku.name} RETIRES on {sku.figures.retirement}"
    for each in sku.restrictions:
        yield f"{sku.name} is RESTRICTED{_where(each)}: {each.reason}{_way_out(each)}"


def _offers(offers: Sequence[Offer]) -> str:
    texts = [f"{offer.region}{f' (zones {_listed(offer.zones)})' if offer.zones else ''}" for offer in offers]
    more = f" and {len(texts) - 8} more regions" if len(texts) > 8 else ""
    return ", ".join(texts[:8]) + more


def _where(restriction: Restriction) -> str:
    zones = f" in {'zone' if len(restriction.zones) == 1 else 'zones'} {_listed(restriction.zones)}"
    regions = f" {'of' if restriction.zones else 'in'} {_listed(restriction.regions)}"
    return f"{zones if restriction.zones else ''}{regions if restriction.regions else ''}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def _way_out(restriction: Restriction) -> str:
    way = _WAYS_OUT.get(restriction.reason.casefold())
    return f" ({way})" if way else ""


def _entry(sku: Sku) -> Iterator[str]:
    figures = sku.figures
    of_machine = f"  # of {figures.vcpus_of_machine} of the whole machine" if figures.vcpus_of_machine else ""
    yield f"  - name: {sku.name}"
    yield f"    vcpus: {_or_open(figures.vcpus)}{of_machine}"
    yield f"    memory_gib: {_or_open(None if figures.memory_gib is None else f'{figures.memory_gib:g}')}"
    yield "    # guest_memory_mib: RealMemory of `slurmd -C` on such a VM, which Azure's list does not say"
    yield f"    architecture: {_or_open(figures.architecture, 'x86_64 or aarch64')}"
    if figures.gpus or figures.gpus_text:
        written = f"whole GPUs; the file says {figures.gpus_text}"
        yield "    gpus:"
        yield f"      count: {figures.gpus or _or_open(None, written)}"
        yield f"      vendor: {_or_open(None, 'NVIDIA or AMD')}"
        yield f"      model: {_or_open(None, 'for example H100')}"
        yield "      # memory_gb: of one GPU, which Azure's list does not say"
    if figures.infiniband:
        yield "    infiniband:"
        yield f"      nics: {_or_open(None, 'ports of one VM')}"
        yield f"      gbps_per_nic: {_or_open(None, 'Gb/s of one port')}"
    if figures.nvme_disks is not None:
        yield f"    nvme_disks: {figures.nvme_disks}"
    elif figures.nvme_mib:
        yield f"    # nvme_disks: how many; together they have {figures.nvme_mib} MiB"
    if figures.premium_storage is not None:
        yield f"    premium_storage: {'true' if figures.premium_storage else 'false'}"
    if figures.encryption_at_host is not None:
        yield f"    encryption_at_host: {'true' if figures.encryption_at_host else 'false'}"
    if figures.family is not None:
        yield f"    quota_family: {figures.family if _PLAIN.fullmatch(figures.family) else json.dumps(figures.family)}"


def _or_open(value: object, wanted: str | None = None) -> str:
    """A value, or the comment that asks for it: the key without a value is a problem until someone has filled it in."""
    return f" # fill in: {wanted or 'Azure does not say it'}".lstrip() if value is None else str(value)
