"""What one thing costs by the hour, in the words of Azure's price list."""

from __future__ import annotations

from msgspec import Struct

from .. import catalog
from .fleet import Machines, Since


class Billed(Struct, frozen=True):
    """One thing that Azure bills by the hour."""

    title: str
    """In words, for example `scheduler`."""
    what: str
    """What Azure sells, for example `Standard_D4s_v5` or `128 TiB`."""
    quantity: int
    """VMs, disks, addresses, or GiB where the meter counts capacity."""
    meter: str | None
    """Key of the catalogue's `meters`; None: it is not known as what it is billed."""
    words: tuple[tuple[str, str], ...]
    """What the meter's texts are completed with."""
    since: Since
    machines: Machines | None = None
    """Those of the fleet, where it is some of these."""


def disk(title: str, size_gib: int, since: Since, count: int = 1) -> Billed | None:
    """Premium SSDs, which are billed as the next larger size that is sold; None beyond the largest."""
    for row in catalog.meters().disk_tiers.rows:
        if size_gib <= row.max_gib:
            number = str(row.number)
            return Billed(title, f"{size_gib} GiB, P{number}", count, "premium_ssd", (("tier", number),), since)
    return None


def one(title: str, what: str, meter: str) -> Billed:
    """One thing that is there as long as the deployment."""
    return Billed(title, what, 1, meter, (), "deployed")


def capacity(title: str, what: str, size_gib: int, meter: str, **words: str) -> Billed:
    """Capacity by the GiB, billed as long as the deployment exists."""
    return Billed(title, what, size_gib, meter, tuple(words.items()), "deployed")
