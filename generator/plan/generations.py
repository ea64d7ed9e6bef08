"""The generation of a node array: a short name for everything that a node gets when it starts and keeps until it ends.

Nodes of one array that have another generation than the definition asks for are old, and only a new VM makes them new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.sizes import VmSize
from .cluster import SlurmPlan
from .deployment import SecurityPlan
from .file_systems.base import FileSystem
from .file_systems.registry import node_settings
from .network import NetworkPlan
from .nodes import NodeArrayPlan
from .resources import MonitoringPlan
from .vm_attributes import VmAttributes

SCHEDULING = frozenset(
    {
        "name",
        "partition",
        "max_nodes",
        "host_list",
        "sizes",
        "is_default",
        "max_scale_set_size",
        "dampen_memory_percent",
        "spot_max_price_usd_per_hour",
        "generation",
    }
)
"""Fields of a node array that azslurm or CycleCloud reads, and no node; every other one counts."""
ON_NODES = (
    "version",
    "project_version",
    "sched",
    "home",
    "health_checks",
    "node_prefix",
    "node_name_is_host_name",
    "public_addresses",
    "terminate_notification",
)
"""Fields of the cluster that reach every node."""
_MOUNTED = ("path", "protocol", "address", "address_fact", "export_path", "mount_options", "mount_order")
"""What a node is told about a file system; how large it is and what it costs, it is not."""
_HARDENED = ("encryption_at_host", "disk_encryption_set_id", "trusted_launch", "secure_boot")
ATTRIBUTE = "cycleforge.generation"
_DIGITS = 12
"""Of a digest: enough for what one cluster ever has."""


def with_generations(
    slurm: SlurmPlan,
    mounts: tuple[FileSystem, ...],
    security: SecurityPlan,
    network: NetworkPlan,
    monitoring: MonitoringPlan | None,
) -> SlurmPlan:
    """The cluster, whose node arrays know their generation.

    Values that are unset do not count, so that a key that a later CycleForge adds makes no node old; nor do tags, for
    which nobody ends a VM.
    """
    common = _given(
        {
            **{name: getattr(slurm, name) for name in ON_NODES},
            **{name: getattr(security, name) for name in _HARDENED},
            "mounts": mounts,
            "node_settings": node_settings(mounts),
            "proxy": network.proxy,
            "monitoring": monitoring,
        }
    )
    return replace(slurm, node_arrays=tuple(_told(each, generation(each, common)) for each in slurm.node_arrays))


def _told(array: NodeArrayPlan, name: str) -> NodeArrayPlan:
    """The node array, whose nodes read the name of their generation."""
    return replace(
        array, generation=name, attributes=tuple(sorted((dict(array.attributes) | {ATTRIBUTE: name}).items()))
    )


def generation(array: NodeArrayPlan, common: Any) -> str:
    """`<node array>.<digest>`, which no reader can take for a number."""
    own = {name: getattr(array, name) for name in array.__struct_fields__ if name not in SCHEDULING}
    text = json.dumps([_given(own), common], sort_keys=True, default=lambda value: value.text)
    return f"{array.name}.{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def _given(value: Any) -> Any:
    """Plain data without what is unset: None, false, empty."""
    if isinstance(value, VmSize):
        return value.name  # its figures reach nodes as attributes
    if isinstance(value, FileSystem):
        return _given({name: getattr(value, name) for name in _MOUNTED})
    if isinstance(value, VmAttributes):
        return _given({"values": value.values, "volumes": value.volumes})
    if isinstance(value, Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        plain = {str(key): _given(item) for key, item in value.items()}
        return {key: item for key, item in plain.items() if item not in (None, False, "", [], {})}
    if isinstance(value, tuple | list):
        return [_given(item) for item in value]
    return value
