"""`node_attributes`: what CycleCloud takes of the VMs of a role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from .. import catalog
from ..catalog.slurm_facts import NodeAttribute
from ..definition.model.slurm import Value
from ..plan.names import tags_of
from ..plan.vm_attributes import Named, effective, known_attributes, named, set_by_template, vm_attributes
from ..problems.problem import Problem
from .azure_names import resource_id_fault
from .base import DefinitionRule, Path, Site, choose_from, meant, partitions, quoted
from .names import tag_fault
from .roles import RoleNode, partition_label, roles

_NODE = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/node-nodearray-reference"
_KEY = "node_attributes"
_NAME = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


def _given(site: Site) -> Iterator[tuple[RoleNode, Path, str, Named, Value]]:
    """Every key of every role, in the order of the file: role, path, key as written, what it names, value."""
    for node in roles(site):
        for key, value in node.settings.node_attributes.items():
            yield node, (*node.path, _KEY, key), key, named(key), value


def _role_kind(node: RoleNode) -> str:
    return "partition" if node.partition is not None else str(node.path[1])


class UnderConfiguration(DefinitionRule):
    id = "E0514"
    summary = "An attribute of the VM is in `configuration`."
    why = (
        "`configuration` is for the scripts on the node: CycleCloud would make the VM without the attribute, and "
        "nobody would notice."
    )
    fix = "Move it to node_attributes of the same role."
    source = _NODE

    def check(self, site: Site) -> Iterator[Problem]:
        for node in roles(site):
            for key, value in node.settings.configuration.items():
                if _is_of_vm(key):
                    text = f"{node.label}: {quoted(key)} is an attribute of the VM, which does nothing in configuration"
                    owner = _owner(named(key))
                    shown = str(value).lower() if isinstance(value, bool) else value
                    hint = owner or f"{_KEY}: {{{key}: {shown}}}"
                    yield self.problem((*node.path, "configuration", key), text, hint, on_key=True)


def _is_of_vm(key: str) -> bool:
    """Whether a key of `configuration` is meant for CycleCloud. A plain word in lower case may be a script's own."""
    found = named(key)
    if found.is_tag or found.volume is not None:
        return True
    known = found.attribute in known_attributes(of_volume=False) or found.attribute in set_by_template(of_volume=False)
    return known and (key == found.attribute or not found.attribute[1:].islower())


def _owner(found: Named) -> str | None:
    """What decides an attribute that the template sets; None for one that a definition may set."""
    return None if found.is_tag else set_by_template(of_volume=found.volume is not None).get(found.attribute)


class SetByTemplate(DefinitionRule):
    id = "E0515"
    summary = "An attribute of the VM is one that the cluster template sets itself."
    why = "The template would have it twice, and the rest of the deployment relies on the template's own value."
    fix = "Remove the attribute; the message names the key of the definition that decides it."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check(self, site: Site) -> Iterator[Problem]:
        for node, path, key, found, _ in _given(site):
            owner = _owner(found)
            if owner is not None:
                text = f"{node.label}: the cluster template sets {quoted(key)} itself"
                yield self.problem(path, text, owner, on_key=True)


class BadNodeAttribute(DefinitionRule):
    id = "E0524"
    summary = "An attribute of the VM has a value that CycleCloud or Azure does not take."
    why = "CycleCloud ignores what it cannot read, and Azure refuses the VM when a job already waits for the node."
    fix = "Write a value that the message allows."
    source = _NODE

    def check(self, site: Site) -> Iterator[Problem]:
        yield from self._too_many_tags(site)
        for node, path, key, found, value in _given(site):
            if found.is_tag:
                fault = tag_fault(found.attribute, str(value))
                if fault:
                    yield self.problem(path, f"{node.label}: the tag {quoted(found.attribute)} {fault}", on_key=True)
                continue
            accepted = known_attributes(of_volume=found.volume is not None).get(found.attribute)
            if accepted is None:
                continue
            if accepted.roles and _role_kind(node) not in accepted.roles:
                text = f"{node.label}: {quoted(key)} is for login nodes and partitions, which are scale sets"
                yield self.problem(path, text, on_key=True)
            elif fault := _FAULTS[accepted.type](value, accepted):
                yield self.problem(path, f"{node.label}: {key} {fault}")

    def _too_many_tags(self, site: Site) -> Iterator[Problem]:
        most = catalog.limits().names.tags_per_resource.value
        for node in roles(site):
            count = len(vm_attributes(node.settings, tags_of(site.definition)).tags)
            if count > most:
                text = (
                    f"{node.label}: the VMs would have {count} tags, with those of the deployment; Azure allows {most}"
                )
                yield self.problem((*node.path, _KEY), text, on_key=True)


def _switch(value: Value, accepted: NodeAttribute) -> str | None:
    return None if isinstance(value, bool) else f"is true or false, not {quoted(str(value))}"


def _whole(value: Value, accepted: NodeAttribute) -> str | None:
    least, most = accepted.min, accepted.max
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        return f"is a whole number from {least} to {most}, not {quoted(str(value))}"
    return None


def _choice(value: Value, accepted: NodeAttribute) -> str | None:
    allowed = accepted.values
    return None if value in allowed else f"is one of {', '.join(allowed)}, not {quoted(str(value))}"


def _text(value: Value, accepted: NodeAttribute) -> str | None:
    if isinstance(value, str) and len(value) <= 1024 and re.fullmatch(accepted.pattern, value, re.ASCII):
        return None
    return f"cannot be {quoted(str(value))}; for example {accepted.example}"


def _resource(value: Value, accepted: NodeAttribute) -> str | None:
    fault = resource_id_fault(str(value), accepted.provider, accepted.kind)
    return fault and f"{fault}: {quoted(str(value))}"


_FAULTS: Mapping[str, Callable[[Value, NodeAttribute], str | None]] = {
    "switch": _switch,
    "whole": _whole,
    "choice": _choice,
    "text": _text,
    "resource": _resource,
}


class UnknownNodeAttribute(DefinitionRule):
    id = "W0525"
    summary = "CycleCloud's reference does not name an attribute of the VM."
    why = "CycleCloud ignores what it does not know, without a message; most often it is misspelt."
    fix = "Correct the name, or silence this rule if your release of CycleCloud has it."
    source = _NODE

    def check(self, site: Site) -> Iterator[Problem]:
        for node, path, key, found, _ in _given(site):
            if found.is_tag or _owner(found) is not None:
                continue
            of_volume = found.volume is not None
            known = (*known_attributes(of_volume=of_volume), *set_by_template(of_volume=of_volume))
            if found.attribute not in known and _NAME.fullmatch(found.attribute):
                what = "a volume" if of_volume else "a node"
                text = f"{node.label}: the reference of CycleCloud names no attribute {quoted(key)} of {what}"
                yield self.problem(path, text, meant(found.attribute, known), on_key=True)


class MalformedNodeAttribute(DefinitionRule):
    id = "E0534"
    summary = "A key of `node_attributes` cannot be written into the cluster template."
    why = "Names are words joined by dots; a line break in a value would begin another line, and a name counts once."
    fix = "Write the name as CycleCloud's reference does, once, and the value on one line."
    source = _NODE

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[tuple[object, ...], str] = {}
        for node, path, key, found, value in _given(site):
            one = (node.path, found.is_tag, found.volume, found.attribute.lower())
            fault = self._fault(node, found, value)
            if fault is None and one in seen:
                fault = f"differs from {quoted(seen[one])} only in case"
            if fault is not None:
                yield self.problem(path, f"{node.label}: the key {quoted(key)} {fault}", on_key=True)
            seen.setdefault(one, key)

    def _fault(self, node: RoleNode, found: Named, value: Value) -> str | None:
        volumes = getattr(catalog.node_attributes().volumes, _role_kind(node))
        if found.volume is not None and found.volume not in volumes:
            return f"names a volume that these nodes do not have; {choose_from(found.volume, volumes)}"
        if not found.is_tag and (len(found.attribute) > 128 or not _NAME.fullmatch(found.attribute)):
            return "is not made of words joined by dots"
        if isinstance(value, str) and not value.isprintable():
            return "has a value with a line break or control character"
        return None


class NeedsAnother(DefinitionRule):
    id = "E0535"
    summary = "An attribute of the VM needs another one."
    why = "CycleCloud ignores it alone: Secure Boot would be off without a word on a VM of the usual security type."
    fix = "Add the attribute that the message names, or remove this one."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/vm-security"

    def check(self, site: Site) -> Iterator[Problem]:
        for node, path, key, found, value in _given(site):
            accepted = known_attributes(of_volume=found.volume is not None).get(found.attribute)
            needed = accepted.needs if accepted else None
            if needed is not None and value is not False and not found.is_tag:
                has = effective(site.definition.security, node.settings, needed)
                if has is None or has is False:
                    yield self.problem(path, f"{node.label}: {key} is ignored without {needed}", on_key=True)
            is_ephemeral = effective(site.definition.security, node.settings, "EphemeralOSDisk") is True
            if is_ephemeral and found == Named("StorageAccountType", volume="boot"):
                text = f"{node.label}: {key} is ignored, because EphemeralOSDisk puts the OS disk on the host"
                yield self.problem(path, text, on_key=True)


_HOOK = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm-install/imex_prolog.sh"
_IMEX_KEY = "slurm.imex.enabled"


class ImexIsNoSwitch(DefinitionRule):
    id = "E3301"
    summary = "slurm.imex.enabled is neither true nor false."
    why = "cyclecloud-slurm's job hooks compare the value with True and False, and take anything else for not set."
    fix = "Write true or false, without quotes."
    source = _HOOK

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            value = partition.configuration.get(_IMEX_KEY)
            if value is not None and not isinstance(value, bool) and value not in ("True", "False"):
                text = f"{partition_label(partition)}: the job hooks take {_IMEX_KEY} {quoted(str(value))} for not set"
                yield self.problem((*path, "configuration", _IMEX_KEY), text, "true or false")


class ImexIsOff(DefinitionRule):
    id = "W3302"
    summary = "IMEX is off on nodes that share NVLink across a rack."
    why = (
        "Without it the GPUs of one node cannot reach the memory of another's over NVLink; jobs use InfiniBand instead."
    )
    fix = "Remove slurm.imex.enabled, or silence this rule if something else starts IMEX."
    source = _HOOK

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            is_off = partition.configuration.get(_IMEX_KEY) in (False, "False")
            if is_off and any(name in (partition.vm_size or "") for name in ("GB200", "GB300")):
                text = f"{partition_label(partition)} has no IMEX, so its jobs do not use NVLink between nodes"
                yield self.problem((*path, "configuration", _IMEX_KEY), text)
