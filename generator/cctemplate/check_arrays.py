"""Node arrays: what only single nodes may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..problems.problem import Problem
from ..words.counts import listed
from .errors import EvaluationError
from .evaluate import Value
from .resolve import ResolvedNode
from .rules import NodeOnly
from .syntax import Attribute
from .values import value_of
from .vocabulary import NODE_ONLY, STANDALONE_ONLY

_METHOD, _STANDALONE = "azure.allocationmethod", "standalone"


def check_arrays(nodes: Iterable[ResolvedNode], known: Mapping[str, Value]) -> Iterator[Problem]:
    """Attributes of network interfaces that CycleCloud refuses of arrays; `known` is what expressions may read.

    What an array inherits is reported once, where it is written, with all arrays that get it.
    """
    arrays: dict[int, tuple[Attribute, list[ResolvedNode]]] = {}
    for node in nodes:
        if node.section.kind == "nodearray" and not node.is_abstract and not _stays_empty(node, known):
            for attribute in _refused(node, known):
                arrays.setdefault(id(attribute), (attribute, []))[1].append(node)
    for attribute, having in arrays.values():
        names = listed([repr(node.name) for node in having])
        text = f"{attribute.name} is for single nodes, but the node array{'s' * (len(having) > 1)} {names} would get it"
        hint = "Azure.AllocationMethod = StandAlone" if _is_in(attribute, STANDALONE_ONLY) else None
        yield NodeOnly.problem((), text, hint, place=attribute.place)


def _stays_empty(node: ResolvedNode, known: Mapping[str, Value]) -> bool:
    """Whether the array begins without nodes and nothing adds one, as that of a second scheduler that is not wanted."""
    first, autoscale = node.attributes.get("initialcount"), node.configuration.get("autoscale.enabled")
    begins_empty = first is not None and _value(first, known) == 0
    grows = autoscale is None or _value(autoscale, known) is not False or "maxcount" in node.attributes
    return begins_empty and not grows


def _refused(node: ResolvedNode, known: Mapping[str, Value]) -> Iterator[Attribute]:
    method = node.attributes.get(_METHOD)
    is_standalone = method is not None and str(_value(method, known)).lower() == _STANDALONE
    for attributes in node.interfaces.values():
        for attribute in attributes.values():
            may_be_refused = _is_in(attribute, NODE_ONLY) or (_is_in(attribute, STANDALONE_ONLY) and not is_standalone)
            if may_be_refused and _value(attribute, known) not in (None, False, ""):
                yield attribute


def _is_in(attribute: Attribute, names: frozenset[str]) -> bool:
    return attribute.name.lower() in {name.lower() for name in names}


def _value(attribute: Attribute, known: Mapping[str, Value]) -> Value:
    """The value; undefined where something is not known, which other checks report."""
    try:
        return value_of(attribute.value, known)
    except EvaluationError:
        return None
