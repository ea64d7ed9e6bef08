"""`node_attributes` of a role: what its VMs are to CycleCloud beyond what other keys decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct

from .. import catalog
from ..catalog.slurm_facts import NodeAttribute
from ..definition.model.security import Security
from ..definition.model.slurm import NodeProjects, Value

_TAG, _VOLUME = "tags", "volume"


class VmAttributes(Struct, frozen=True):
    """What a definition says of the VMs of a role to CycleCloud, in the spelling of its reference, sorted by name.

    They are attributes of the role's own section, where they win over those of `[[node defaults]]`.
    """

    values: tuple[tuple[str, str | int | bool], ...]
    volumes: tuple[tuple[str, tuple[tuple[str, str | int | bool], ...]], ...]
    """Volume → its attributes."""
    tags: tuple[tuple[str, str], ...]
    """All tags of the VMs, those of the deployment included; empty: only those."""

    def volume(self, name: str) -> tuple[tuple[str, str | int | bool], ...]:
        """The attributes of one volume; empty where the definition says nothing of it."""
        return dict(self.volumes).get(name, ())


class Named(Struct, frozen=True):
    """A key of `node_attributes`, taken apart: an attribute of the node, of one of its volumes, or a tag."""

    attribute: str
    """In the spelling of the catalogue where it knows it; the name of a tag is as it was written."""
    volume: str | None = None
    is_tag: bool = False


def named(key: str) -> Named:
    """What a key names. CycleCloud does not tell upper and lower case apart, except in the names of tags."""
    first, dot, rest = key.partition(".")
    if dot and first.lower() == _TAG:
        return Named(rest, is_tag=True)
    if dot and first.lower() == _VOLUME:
        volume, _, attribute = rest.partition(".")
        return Named(_spelling("volume_").get(attribute.lower(), attribute), volume=volume.lower())
    return Named(_spelling("").get(key.lower(), key))


def known_attributes(*, of_volume: bool) -> Mapping[str, NodeAttribute]:
    known = catalog.node_attributes()
    return known.volume_attributes if of_volume else known.attributes


def set_by_template(*, of_volume: bool) -> Mapping[str, str]:
    """Attribute that the cluster template sets itself → the key that decides it, or why there is none."""
    known = catalog.node_attributes()
    return known.volume_set_by_template.keys if of_volume else known.set_by_template.keys


@cache
def _spelling(start: str) -> Mapping[str, str]:
    """Lower case → the catalogue's spelling."""
    of_volume = bool(start)
    names = (*known_attributes(of_volume=of_volume), *set_by_template(of_volume=of_volume))
    return {name.lower(): name for name in names}


def vm_attributes(node: NodeProjects, tags: Iterable[tuple[str, str]]) -> VmAttributes:
    """The attributes of a role; `tags` are those of the deployment, over which the role's own win."""
    values: dict[str, Value] = {}
    volumes: dict[str, dict[str, Value]] = {}
    own: dict[str, str] = {}
    for key, value in node.node_attributes.items():
        found = named(key)
        if found.is_tag:
            own[found.attribute] = str(value).lower() if isinstance(value, bool) else str(value)
        elif found.volume is not None:
            volumes.setdefault(found.volume, {})[found.attribute] = value
        else:
            values[found.attribute] = value
    given = {name.lower() for name in own}
    merged = {name: value for name, value in tags if name.lower() not in given} | own
    return VmAttributes(
        values=tuple(sorted(values.items())),
        volumes=tuple((name, tuple(sorted(volumes[name].items()))) for name in sorted(volumes)),
        tags=tuple(sorted(merged.items())) if own else (),
    )


def own_key(node: NodeProjects, attribute: str) -> str | None:
    """The key of `node_attributes` that sets an attribute of the node, as it is written; None if none does."""
    return next((key for key in node.node_attributes if named(key) == Named(attribute)), None)


def effective(security: Security, node: NodeProjects, attribute: str) -> Value | None:
    """What the VMs of a role have of this attribute: the role's own value, else what `security` asks for, else None."""
    key = own_key(node, attribute)
    if key is not None:
        return node.node_attributes[key]
    asked: dict[str, Value] = {}
    if security.encryption_at_host:
        asked["EncryptionAtHost"] = True
    if security.trusted_launch:
        asked |= {"SecurityType": "TrustedLaunch", "EnableSecureBoot": security.secure_boot, "EnableVTPM": True}
    return asked.get(attribute)
