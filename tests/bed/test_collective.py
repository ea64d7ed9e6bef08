"""The model of the stand-in for nccl-tests: what is slow, and by how much. Launches of it are in tests/mpi."""

from __future__ import annotations

import pytest

from tests.bed.collective import program

RANKS = {
    host: program.Rank(f"{host}\t0\t{gpus}\t") for host, gpus in (("a", "0,1"), ("b", "0,1"), ("c", "2"), ("d", "3"))
}


@pytest.mark.parametrize(
    ("variables", "slow", "quick"),
    [
        ({"SLOW_NODE": "b,d"}, ("ab", "b", "cd", "abcd"), ("a", "ac")),
        ({"SLOW_PAIR": "a:c,b:d"}, ("ac", "abc", "bd"), ("a", "c", "ab", "cd")),
        ({"SLOW_RAIL": "a:1"}, ("a", "ab"), ("b", "bc")),
        ({"SLOW_RAIL": "a:2 c:2"}, ("c", "ac"), ("a", "bd")),
        ({}, (), ("abcd",)),
    ],
)
def test_what_is_slow_slows_what_it_takes_part_in(
    variables: dict[str, str], slow: tuple[str, ...], quick: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"FAKE_{name}", value)
    for hosts in (*slow, *quick):
        assert program.is_slow([RANKS[host] for host in hosts]) == (hosts in slow), hosts


def test_a_rail_is_an_adapter_where_adapters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SLOW_RAIL", "a:5")
    found = {}
    for adapters in ("mlx5_ib5", "=mlx5_5:1", "mlx5_ib0,mlx5_ib5", "mlx5_ib0", "mlx5_ib15"):
        monkeypatch.setenv("NCCL_IB_HCA", adapters)
        found[adapters] = program.is_slow([RANKS["a"], RANKS["b"]])
    assert list(found.values()) == [True, True, True, False, False]


def test_noise_is_bounded_is_uniform_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BUSBW": "alltoall=40,100", "HALF_BYTES": "0", "NOISE_PERCENT": "5"}.items():
        monkeypatch.setenv(f"FAKE_{name}", value)
    found = [program.speed(1 << 30, [RANKS["a"]], "out") for _ in range(1000)]
    assert 95 <= min(found) < 95.5
    assert 104.5 < max(found) <= 105
    assert abs(sum(found) / len(found) - 100) < 1
    monkeypatch.setenv("FAKE_SLOW_NODE", "a")
    assert max(program.speed(1 << 30, [RANKS["a"]], "out") for _ in range(1000)) < 90
    monkeypatch.setenv("FAKE_SEED", "7")
    same = {program.speed(1 << 30, [RANKS["a"]], "out") for _ in range(9)}
    assert len(same) == 1
    assert program.speed(1 << 30, [RANKS["a"]], "in") not in same


def test_sizes_are_those_of_a_sweep() -> None:
    assert program.Options(["-b", "1M", "-e", "8M", "-f", "2"]).sizes() == [1 << place for place in range(20, 24)]
    assert program.Options(["-b", "1M", "-e", "3M", "-i", "1M"]).sizes() == [1 << 20, 2 << 20, 3 << 20]
    assert program.Options(["-b", "16G", "-e", "16G", "-f", "2"]).sizes() == [16 << 30]
