"""What is reachable in a new network, in every kind of access, with a jumpbox and without: as meant, and nothing else.

The rules are those that Azure would receive: the rendered Bicep is evaluated.
"""

from __future__ import annotations

import pytest

from tests.bed.security_groups import Host
from tests.flows.expected import OF_AZURE, expected
from tests.flows.worlds import WITH_NETWORK, world

PORTS = (
    22, 80, 111, 135, 443, 445, 635, 987, 988, 1018, 1019, 1021, 1023, 1024, 2049, 3306, 3389, 4045, 4046, 4047, 4049,
    5701, 5985, 8080, 9443, 17171,
)  # fmt: skip
"""Every port that some flow names, its neighbours, usual targets of attacks, and one that nothing uses."""
OUTSIDE = ("users", "stranger", "internet", "probe", *OF_AZURE)


@pytest.mark.parametrize("name", WITH_NETWORK)
def test_exactly_what_is_meant_is_reachable(name: str) -> None:
    here = world(name)
    groups, hosts = here.groups(), here.hosts
    wrong = [
        (source, destination, protocol, port)
        for source, one in hosts.items()
        for destination, other in hosts.items()
        if destination != "probe" and not {source, destination} <= set(OUTSIDE)
        for protocol in ("Tcp", "Udp")
        for port in PORTS
        if groups.allow(one, _another(one, other), protocol, port)
        != expected(name, source, destination, protocol, port)
    ]
    assert wrong[:20] == []


def _another(one: Host, other: Host) -> Host:
    """The destination; within a subnet a second host."""
    return Host(other.address + 1, other.card) if one.address == other.address else other
