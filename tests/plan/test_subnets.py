"""Subnets: fixed places, no overlap, inside the address space, whatever the definition adds."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.plan.subnets import ROLES, parse_network, place_subnets

SPACES = st.builds(
    lambda address, length: IPv4Network(((address >> (32 - length)) << (32 - length), length)),
    st.integers(0x0A000000, 0x0AFFFFFF),
    st.integers(8, 29),
)


@given(space=SPACES, roles=st.sets(st.sampled_from(ROLES)), lustre=st.integers(22, 27))
def test_planned_subnets_are_disjoint_and_inside(space: IPv4Network, roles: set[str], lustre: int) -> None:
    layout = place_subnets(space, tuple(role for role in ROLES if role in roles), {}, {"lustre": lustre})
    assert set(layout.subnets) | set(layout.without_room) == roles
    assert not set(layout.subnets) & set(layout.without_room)
    assert all(subnet.subnet_of(space) for subnet in layout.subnets.values())
    assert not any(one.overlaps(other) for one, other in combinations(layout.subnets.values(), 2))


@given(space=SPACES, roles=st.sets(st.sampled_from(ROLES)), more=st.sets(st.sampled_from(ROLES)))
def test_adding_a_subnet_moves_no_other(space: IPv4Network, roles: set[str], more: set[str]) -> None:
    before = place_subnets(space, tuple(role for role in ROLES if role in roles), {}, {"lustre": 24}).subnets
    after = place_subnets(space, tuple(role for role in ROLES if role in roles | more), {}, {"lustre": 24}).subnets
    assert all(after[role] == subnet for role, subnet in before.items() if role in after)


def test_the_default_network_holds_a_thousand_nodes() -> None:
    layout = place_subnets(IPv4Network("10.50.0.0/20"), ROLES, {}, {"lustre": 23})
    assert layout.without_room == ()
    assert layout.subnets["compute"].num_addresses == 2048


def test_a_given_prefix_is_kept() -> None:
    given_prefix = IPv4Network("10.50.3.0/24")
    layout = place_subnets(IPv4Network("10.50.0.0/20"), ("server", "compute"), {"compute": given_prefix}, {})
    assert layout.subnets["compute"] == given_prefix


@pytest.mark.parametrize(
    "text", ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.1/24", "10.0.0.0/", "a/b", "10.0.0.0/99", "::/64"]
)
def test_what_is_no_network(text: str) -> None:
    assert parse_network(text) is None


def test_a_network() -> None:
    assert parse_network("10.50.0.0/20") == IPv4Network("10.50.0.0/20")
