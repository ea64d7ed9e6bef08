"""What NCCL and nccl-tests printed elsewhere, and what the jobs have to read from it: `public_logs.yaml`."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Excerpt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    source: str
    printed_by: str
    text: str


class Algorithm(msgspec.Struct, frozen=True, array_like=True):
    """What a log says of the algorithm for one collective and size; `share` is that of a rank where it differs."""

    log: str
    collective: str
    size: int
    expected: str
    share: int = 0


class Ranks(msgspec.Struct, frozen=True, array_like=True):
    """How many ranks and nodes were asked for, and what is wrong with those in the header (nothing: all is well)."""

    log: str
    ranks: int
    nodes: int
    problem: str


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measurement, or the problem with it; `ranks` where the collective divides its message among them."""

    log: str
    size: int
    measured: int = 0
    bus: str = ""
    wrong: str = ""
    kind: str = ""
    problem: str = ""
    ranks: int = 0


class _Logs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: str
    excerpts: list[Excerpt]
    algorithms: list[Algorithm]
    ranks: list[Ranks]
    measured: list[Row]
    fabrics: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    footers: list[tuple[str, str, str | None]]


_LOGS = msgspec.yaml.decode(Path(__file__).with_suffix(".yaml").read_bytes(), type=_Logs)
EXCERPTS = [msgspec.structs.replace(each, text=each.text.replace("{rows}\n", _LOGS.rows)) for each in _LOGS.excerpts]
ALGORITHMS, RANKS, ROWS = _LOGS.algorithms, _LOGS.ranks, _LOGS.measured
FABRICS, VERSIONS, FOOTERS = _LOGS.fabrics, _LOGS.versions, _LOGS.footers
