"""What Slurm, cyclecloud-slurm and CycleCloud take, and what their messages mean."""

from __future__ import annotations

from msgspec import field

from .files import Cited, Fact, Keys, Row, Rows, Value


class DefunctKeys(Cited, frozen=True, kw_only=True):
    since: dict[str, str]


class KeysByVersion(Row, frozen=True, kw_only=True):
    since: dict[str, str]
    until: dict[str, str]


class ListKey(Fact, frozen=True, kw_only=True):
    known: tuple[str, ...]
    stay: tuple[str, ...]
    """What others need of the list."""


class Expected(Fact, frozen=True, kw_only=True):
    matches: str
    why: str


class Values(Cited, frozen=True, kw_only=True):
    refused: dict[str, Expected]
    risky: dict[str, Expected]


class SlurmConf(Fact, frozen=True, kw_only=True):
    """Keys of slurm.conf: which are lists that others add to, which values break something, which Slurm knows a key."""

    defunct_keys: DefunctKeys
    failed_prologs_before_hold: Value[int]
    fatal_together: Keys[dict[str, dict[str, tuple[str, ...]]]]
    fatal_when_unknown: Keys[tuple[str, ...]]
    keys_by_version: KeysByVersion
    lists: Keys[dict[str, ListKey]]
    static_suspend_time_s: Value[int]
    values: Values


class Elsewhere(Row, frozen=True, kw_only=True):
    places: dict[str, tuple[str, ...]]


class SlurmKeys(Fact, frozen=True, kw_only=True):
    """Names of Slurm's keys."""

    elsewhere: Elsewhere
    """Those that belong elsewhere."""
    slurm_conf: Keys[tuple[str, ...]] = field(name="slurm.conf")


class TemplateParameter(Fact, frozen=True, kw_only=True):
    name: str
    key: str | None = None
    """The key of a definition that decides the value."""
    own: str | None = None
    """What it is called here where that is not its name; `{Partition}` and `{Path}` are what those are called."""
    in_: str | None = field(default=None, name="in")
    """`template`: the template has the value."""
    reason: str | None = None
    """Why there is no key."""


class TemplateParameters(Cited, frozen=True, kw_only=True):
    """The parameters of cyclecloud-slurm's own template, in its order."""

    parameters: tuple[TemplateParameter, ...]


class CycleCloudFailure(Row, frozen=True, kw_only=True):
    pattern: str
    words: str
    fix: str


class CycleCloudFailures(Fact, frozen=True, kw_only=True):
    """What CycleCloud's messages about failed nodes mean, and what to do."""

    failures: Rows[tuple[CycleCloudFailure, ...]]


class NodeAttribute(Cited, frozen=True, kw_only=True):
    """What CycleCloud takes for it."""

    type: str
    values: tuple[str, ...] = ()
    pattern: str = ""
    example: str = ""
    min: int = 0
    max: int = 0
    kind: str = ""
    provider: str = ""
    roles: tuple[str, ...] = ()
    """That take it; empty: all."""
    needs: str | None = None


class VolumesOfRoles(Cited, frozen=True, kw_only=True):
    login: tuple[str, ...]
    partition: tuple[str, ...]
    scheduler: tuple[str, ...]


class NodeAttributes(Fact, frozen=True, kw_only=True):
    """What CycleCloud takes of a node and of its volumes, and those that the cluster template sets, with their keys."""

    attributes: dict[str, NodeAttribute]
    set_by_template: Keys[dict[str, str]]
    volume_attributes: dict[str, NodeAttribute]
    volume_set_by_template: Keys[dict[str, str]]
    volumes: VolumesOfRoles
