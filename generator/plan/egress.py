"""Which destinations on the internet a deployment uses: the rows of the catalogue that apply to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from .. import catalog
from ..catalog.azure_facts import Destination
from ..catalog.node_images import NodeImage
from .cluster import SlurmPlan
from .file_systems.base import FileSystem
from .jobs import JobPlan
from .network import NetworkPlan
from .resources import MonitoringPlan
from .server import ServerPlan
from .subnets import compute_name

_HOST = re.compile(r"(?:docker|https?)://([A-Za-z0-9.-]+\.[a-z]{2,})(?=[#/:]|$)")
_SUBNETS = {"server": "server", "nodes": "compute", "lustre": "lustre", "jumpbox": "server"}
"""Who connects → role of the subnet that it is in."""


class EgressRule(Struct, frozen=True):
    """One kind of destination; exactly one of `fqdns`, `service_tags`, `addresses` and `described` is given."""

    name: str
    sources: tuple[str, ...]
    """Who connects: `server`, `nodes`, `lustre` or `jumpbox`."""
    prefixes: tuple[str, ...]
    """Their subnets (CIDR); empty where they are not known."""
    protocol: str
    ports: tuple[int, ...]
    fqdns: tuple[str, ...]
    service_tags: tuple[str, ...]
    addresses: tuple[str, ...]
    described: str
    """In words: which hosts these are depends on how the site has set up its tools."""
    reason: str
    optional: bool
    """Whether everything works without it."""

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.fqdns, *self.service_tags, *self.addresses)


class EgressPlan(Struct, frozen=True):
    """Everything outside of the network that a deployment connects to."""

    rules: tuple[EgressRule, ...]
    direct: tuple[str, ...]
    """Addresses of Azure itself, which neither a firewall nor a proxy may be in front of."""

    @property
    def has_lustre(self) -> bool:
        """Whether a file system is created that needs rules of its own."""
        return any("lustre" in rule.sources for rule in self.rules)


def egress_plan(
    cloud: str,
    network: NetworkPlan,
    server: ServerPlan | None,
    slurm: SlurmPlan | None,
    mounts: Iterable[FileSystem],
    monitoring: MonitoringPlan | None,
    jobs: Iterable[JobPlan],
) -> EgressPlan:
    """The rules, by name. Hosts of jobs that the catalogue does not know get one of their own."""
    rows = catalog.egress().rules
    used = dict(_hosts(jobs))
    uses = {*_uses(server, slurm, mounts, monitoring), *(f"host:{host}" for host in used)}
    present = {"server"} if server else set()
    present |= {"nodes"} if slurm else set()
    present |= {"lustre"} if "lustre" in uses else set()
    present |= {"jumpbox"} if server and server.jumpbox else set()
    found = [
        _rule(name, row, tuple(who for who in row.who if who in present), cloud, network)
        for name, row in sorted(rows.items())
        if row.when in uses and present & set(row.who)
    ]
    known = {row.when for row in rows.values()}
    own = sorted(host for host in used if f"host:{host}" not in known)
    rules = (*found, *(_own_rule(host, used[host], network) for host in own))
    return EgressPlan(rules, catalog.egress().direct.addresses)


def _rule(name: str, row: Destination, who: tuple[str, ...], cloud: str, network: NetworkPlan) -> EgressRule:
    return EgressRule(
        name=name,
        sources=who,
        prefixes=_prefixes(who, network),
        protocol=row.protocol,
        ports=row.ports,
        fqdns=row.by_cloud.get(cloud, row.fqdns),
        service_tags=row.service_tags,
        addresses=row.addresses,
        described=row.described,
        reason=row.reason,
        optional=row.optional,
    )


def _own_rule(host: str, job: str, network: NetworkPlan) -> EgressRule:
    reason = f"a setting of the job {job} names it"
    return EgressRule(
        host, ("nodes",), _prefixes(("nodes",), network), "TCP", (443,), (host,), (), (), "", reason, optional=False
    )


def _prefixes(who: tuple[str, ...], network: NetworkPlan) -> tuple[str, ...]:
    roles = [_SUBNETS[each] for each in who]
    subnets = (
        each
        for each in network.subnets
        if each.role in roles or ("compute" in roles and compute_name(each.role) is not None)
    )
    return tuple(dict.fromkeys(subnet.prefix for subnet in subnets if subnet.prefix))


def _uses(
    server: ServerPlan | None, slurm: SlurmPlan | None, mounts: Iterable[FileSystem], monitoring: MonitoringPlan | None
) -> Iterator[str]:
    """What the catalogue's `when` may name."""
    yield "any"
    if server is not None:
        yield "server"
        if server.image is not None:
            yield "marketplace-server"
        if server.jumpbox is not None:
            yield "jumpbox"
    if any(mount.subnet is not None and mount.subnet.role == "lustre" for mount in mounts):
        yield "lustre"
    if slurm is None:
        return
    yield "cluster"
    images = (slurm.scheduler.image, slurm.login.image, *(array.image for array in slurm.node_arrays))
    for row in (row for image in images if (row := _image(image)) is not None):
        yield f"os:{row.os.split('-')[0]}"
        yield "hpc-image"  # CycleCloud's own names stand for Microsoft's HPC images
    if slurm.accounting is not None and slurm.accounting.certificate_url is not None:
        yield "certificate-address"
    if monitoring is not None:
        yield "monitoring"
        if any(array.hardware.gpu_count for array in slurm.node_arrays):
            yield "monitoring-gpu"


def _image(name: str) -> NodeImage | None:
    """The catalogue's row of a node image or of a marketplace image for HPC; None for one's own."""
    return catalog.images().node_images.get(name) or catalog.images().hpc_marketplace.get(name)


def _hosts(jobs: Iterable[JobPlan]) -> Iterator[tuple[str, str]]:
    """(host, job) of every address in the settings of jobs, and what their recipes add."""
    by_recipe = catalog.egress().recipe_hosts.rows
    for job in jobs:
        yield from ((host, job.name) for host in by_recipe.get(job.recipe, ()))
        yield from ((host, job.name) for _, value in job.settings for host in _HOST.findall(str(value)))
