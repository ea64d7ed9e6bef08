"""Whether the quota of the region leaves room: of every family, of spot VMs, of all vCPUs together.

Source: https://learn.microsoft.com/rest/api/compute/usage/list. A limit says what may run, not what Azure has left.
What runs in the deployment's own resource group is part of what is needed, so it does not count as in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from shlex import quote
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ...plan.deployment import Plan
from ...plan.fleet import Machines
from ...plan.quota import ALL, SPOT, by_limit
from ...problems.problem import KeyPath
from ..answers import Item, OddAnswer, below, folded, number, same
from ..check import Check, Finding
from ..reader import Reader
from ..request import Request
from ..requests.compute import SCALE_SETS, SIZES, USAGES, VMS
from ..requests.network import NETWORK_USAGES
from ..requests.services import STORAGE_USAGES
from .names import own_resources
from .vm_sizes import Offered, offered

_ESSENTIAL = frozenset({"server", "jumpbox", "scheduler"})
"""Without these the deployment or the start of the cluster fails; without others only jobs wait."""
_TITLES = {ALL: "all vCPUs of the region", SPOT: "all spot vCPUs of the region"}


class Limit(Struct, frozen=True):
    name: str
    """As Azure spells it."""
    limit: int
    """Negative: unlimited."""
    used: int
    is_missing: bool = False
    """The region has no such limit: there is no quota."""

    def is_below(self, count: int) -> bool:
        return 0 <= self.limit < count


class Running(Struct, frozen=True):
    """VMs of one size in the deployment's own resource group."""

    vm_size: str
    count: int
    spot: bool


class Need(Struct, frozen=True):
    """vCPUs that must fit below one limit."""

    name: str
    path: KeyPath
    most: int
    """With every partition at its limit."""
    least: int
    """For the deployment, the start of the cluster and the largest of the planned jobs."""
    essential: int
    """For the server, its jumpbox and the scheduler."""
    others: tuple[str, ...]
    """Titles of what the rest is for."""


def limits(answer: Iterable[Item]) -> Mapping[str, Limit]:
    """The limits of a region by their folded names; an item without a name is none."""
    found = {}
    for each in answer:
        name = below(each, "name", "value")
        if name:
            what = f"the limit {name}"
            found[folded(name)] = Limit(
                str(name), number(each, "limit", what=what), number(each, "currentValue", what=what)
            )
    if not found:
        raise OddAnswer("the answer about the limits of the region names none")
    return found


def running(vms: Iterable[Item], scale_sets: Iterable[Item], region: str) -> tuple[Running, ...]:
    """What the resource group has in the region. VMs of a flexible scale set are listed as VMs, those of a uniform one
    are its capacity.

    Source: https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-orchestration-modes
    """
    found = [
        Running(str(below(vm, "properties", "hardwareProfile", "vmSize")), 1, _is_spot(vm, "properties", "priority"))
        for vm in vms
        if same(vm.get("location"), region)
    ]
    for each in scale_sets:
        flexible = same(below(each, "properties", "orchestrationMode"), "Flexible")
        if same(each.get("location"), region) and not flexible and below(each, "sku", "capacity"):
            count = number(each, "sku", "capacity", what="a scale set")
            spot = _is_spot(each, "properties", "virtualMachineProfile", "priority")
            found.append(Running(str(below(each, "sku", "name")), count, spot))
    return tuple(found)


def _is_spot(answer: Item, *keys: str) -> bool:
    return folded(below(answer, *keys)) in ("spot", "low")


def needs(plan: Plan, sizes: Offered) -> tuple[Need, ...]:
    """By limit, in the order of the machines, then all vCPUs. Azure's word on family and vCPUs of a size is better."""
    counted = [each for each in plan.fleet if _vcpus_of(each, sizes) and (each.spot or _family_of(each, sizes))]
    limits = by_limit(counted, lambda each: str(_family_of(each, sizes)))
    return tuple(
        _need(plan, name, [(each, _vcpus_of(each, sizes) or 0) for each in using])
        for name, using in limits.items()
        if using
    )


def _vcpus(sizes: Offered, name: str) -> int | None:
    """Whether quota counts the vCPUs that a size has switched off is not documented, so the larger figure counts."""
    sku = sizes.get(folded(name))
    return (sku.figures.vcpus_of_machine or sku.figures.vcpus) if sku is not None else None


def _family(sizes: Offered, name: str) -> str | None:
    sku = sizes.get(folded(name))
    return sku.figures.family if sku is not None else None


def _vcpus_of(machines: Machines, sizes: Offered) -> int | None:
    return _vcpus(sizes, machines.vm_size) or machines.hardware.vcpus


def _family_of(machines: Machines, sizes: Offered) -> str | None:
    return _family(sizes, machines.vm_size) or machines.hardware.quota_family


def _need(plan: Plan, name: str, uses: list[tuple[Machines, int]]) -> Need:
    largest = max(uses, key=lambda use: use[0].most * use[1])[0]
    always = sum(each.count * vcpus for each, vcpus in uses)
    job = max((_largest_job(plan, each) * vcpus for each, vcpus in uses if each.role == "partition"), default=0)
    path = ("slurm", "partitions") if name == ALL and len(uses) > 1 else largest.path
    essential = sum(each.count * vcpus for each, vcpus in uses if each.role in _ESSENTIAL)
    others = tuple(dict.fromkeys(each.label for each, _ in uses if each.role not in _ESSENTIAL))
    return Need(name, path, sum(each.most * vcpus for each, vcpus in uses), always + job, essential, others)


def _largest_job(plan: Plan, machines: Machines) -> int:
    """Nodes; jobs run one after the other, so only the largest counts."""
    where = (machines.partition, machines.vm_size)
    return max((job.nodes for job in plan.jobs if (job.node_array, job.vm_size) == where), default=1)


def own_use(name: str, own: Iterable[Running], sizes: Offered) -> int:
    """vCPUs that the deployment has in use below a limit already."""
    total = 0
    for each in own:
        counts = (
            each.spot if name == SPOT else not each.spot and (name == ALL or same(_family(sizes, each.vm_size), name))
        )
        total += each.count * (_vcpus(sizes, each.vm_size) or 0) if counts else 0
    return total


def _compared(
    plan: Plan, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running]
) -> Iterator[tuple[Need, Limit, int]]:
    """Each need, its limit, and what others have in use of it."""
    own = tuple(own)
    for need in needs(plan, sizes):
        limit = known.get(folded(need.name)) or Limit(need.name, 0, 0, is_missing=True)
        yield need, limit, max(0, limit.used - own_use(need.name, own, sizes))


def request_line(subscription: str, region: str, name: str, value: int) -> str:
    """What asks Azure for more.

    Source: https://learn.microsoft.com/cli/azure/quota#az-quota-update
    """
    scope = f"/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{region}"
    kind = "lowPriority" if same(name, SPOT) else "dedicated"
    return (
        f"az quota update --resource-name {quote(name)} --scope {quote(scope)} --limit-object value={value} "
        f"--resource-type {kind}"
    )


def uncounted(plan: Plan, sizes: Offered) -> Iterator[tuple[KeyPath, str]]:
    """VMs of which neither Azure nor the plan says enough to count them."""
    for each in plan.fleet:
        if not _vcpus_of(each, sizes):
            yield each.path, f"the vCPU count of {each.vm_size} is unknown, so {each.label} is not counted"
        elif not each.spot and not _family_of(each, sizes):
            yield each.path, f"the quota family of {each.vm_size} is unknown, so {each.label} is not counted"


class _OfQuota(Check):
    source = "https://learn.microsoft.com/azure/virtual-machines/quotas"
    question = "whether the quota of the region leaves room"
    path = ("location",)

    def needed(self, plan: Plan) -> bool:
        return bool(plan.fleet)

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        lists = reader.together(
            [
                partial(reader.pages, SIZES(region=plan.location)),
                partial(reader.pages, USAGES(region=plan.location)),
                partial(reader.find_pages, VMS(group=plan.resource_group)),
                partial(reader.find_pages, SCALE_SETS(group=plan.resource_group)),
            ]
        )
        own = running(lists[2], lists[3], plan.location)
        names = {*(each.vm_size for each in plan.fleet), *(each.vm_size for each in own)}
        return self.judged(plan, reader.subscription, offered(lists[0], names), limits(lists[1]), own)

    def judged(
        self, plan: Plan, subscription: str, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running]
    ) -> Iterator[Finding]:
        """What is wrong, by what the region says of sizes and limits, and what of this deployment runs already."""
        raise NotImplementedError

    def too_small(
        self, plan: Plan, subscription: str, need: Need, limit: Limit, others: int, why: str, has: str = ""
    ) -> Finding:
        """A limit below what is needed; `why` ends in the figure."""
        use = f"the limit is {limit.limit}, {others} of it in use by others"
        if limit.is_missing:
            use = "the region has no such limit, so there is no quota"
        text = f"quota {limit.name} ({_TITLES.get(need.name, 'vCPUs of the family')}): {why}; {use}{has}"
        line = request_line(subscription, plan.location, limit.name, others + need.most)
        return self.finding(need.path, text, line)


class QuotaTooSmall(_OfQuota):
    id = "E4305"
    summary = "The quota does not even hold the server, the cluster's own nodes and the largest planned job."
    why = (
        "Azure refuses VMs beyond the quota of their family, of spot VMs or of all vCPUs of a region (QuotaExceeded). "
        "Where it does not hold server and scheduler, the deployment fails: an error. Where it lacks only for a "
        "partition or login nodes, everything else can be deployed while the request is under way, and only their jobs "
        "wait: a warning, about which `cycleforge deploy` asks."
    )
    fix = (
        "Request the quota that the message names; the command needs `az extension add --name quota`. "
        "`cycleforge deploy --accept E4305` deploys meanwhile without asking."
    )

    def judged(
        self, plan: Plan, subscription: str, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running]
    ) -> Iterator[Finding]:
        """Each limit; and what could not be counted."""
        for need, limit, others in _compared(plan, sizes, known, own):
            if not limit.is_below(others + need.least):
                continue
            why = f"the start and the largest planned job need {need.least}"
            if limit.is_below(others + need.essential):
                yield self.too_small(plan, subscription, need, limit, others, why)
            else:
                has = f"; server and scheduler fit, {' and '.join(need.others)} not"
                found = self.too_small(plan, subscription, need, limit, others, why, has)
                yield replace(found, level="warning", asks=True)
        for path, reason in uncounted(plan, sizes):
            yield self.not_known(reason, path=path)


class QuotaBelowMaximum(_OfQuota):
    id = "W4306"
    summary = "The quota does not hold all partitions at their limits."
    why = "CycleCloud starts as many nodes as the quota allows, and the rest of max_nodes never comes."
    fix = "Request the quota that the message names, or lower max_nodes."

    def judged(
        self, plan: Plan, subscription: str, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running]
    ) -> Iterator[Finding]:
        """Each limit; one that lacks even the least is for the other check to say."""
        for need, limit, others in _compared(plan, sizes, known, own):
            if limit.is_below(others + need.most) and not limit.is_below(others + need.least):
                why = f"with all partitions full it takes {need.most}"
                yield self.too_small(plan, subscription, need, limit, others, why)


# ------------------------------------------------------------ other limits


def public_addresses(plan: Plan) -> int:
    """Public addresses that the deployment creates, and those that nodes may have."""
    server = plan.server is not None and plan.access.is_public
    having = {"none": (), "scheduler": ("scheduler", "login"), "all": ("scheduler", "login", "partition")}
    roles = having[plan.slurm.public_addresses if plan.slurm else "none"]
    nodes = sum(each.most for each in plan.fleet if each.role in roles)
    return sum((server, plan.network.nat_gateway, plan.access.creates_bastion)) + nodes


class _OfCounts(Check):
    path: ClassVar[KeyPath] = ("location",)
    request: ClassVar[Request]
    names: ClassVar[tuple[str, ...]]
    type: ClassVar[str]
    what: ClassVar[str]

    def needed(self, plan: Plan) -> bool:
        return self.count(plan) > 0

    def count(self, plan: Plan) -> int:
        """How many there will be."""
        raise NotImplementedError

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """A count beyond the limit, without those of an earlier run."""
        known, ours = limits(reader.pages(self.request(region=plan.location))), own_resources(plan, reader)
        found = [known[folded(name)] for name in self.names if folded(name) in known]
        if not found:
            raise OddAnswer(f"the limits of the region do not name {self.names[0]}")
        new = max(0, self.count(plan) - sum(kind == self.type for kind, _ in ours))
        limit = next((each for each in found if new and each.is_below(each.used + new)), None)
        if limit is not None:
            text = f"{self.what}: {new} more are needed; {limit.used} of {limit.limit} exist ({limit.name})"
            hint = "open a support request (type: service and subscription limits (quotas))"
            yield self.finding(self.path, text, hint)


class AddressLimit(_OfCounts):
    id = "E4307"
    summary = "The subscription may have no more public addresses in the region."
    why = "Bastion, NAT gateway or a public server is refused (PublicIPCountLimitReached)."
    fix = "Open a support request for the limit, or delete addresses that are not needed."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"
    question = "whether the region has public addresses left"
    path = ("network", "access")
    request = NETWORK_USAGES
    names = ("StandardSkuPublicIpAddresses", "PublicIPAddresses")
    type = "microsoft.network/publicipaddresses"
    what = "public addresses"

    def count(self, plan: Plan) -> int:
        """Of server, NAT gateway and Bastion, and of nodes."""
        return public_addresses(plan)


class AccountLimit(_OfCounts):
    id = "E4308"
    summary = "The subscription may have no more storage accounts in the region."
    why = "The locker is refused, and with it everything that nodes download."
    fix = "Request a higher limit, or delete accounts that are not needed."
    source = "https://learn.microsoft.com/azure/storage/common/scalability-targets-standard-account"
    question = "whether the region has storage accounts left"
    path = ("storage", "locker")
    request = STORAGE_USAGES
    names = ("StorageAccounts",)
    type = "microsoft.storage/storageaccounts"
    what = "storage accounts"

    def count(self, plan: Plan) -> int:
        created = {name for mount in plan.all_mounts for name, _ in mount.created_accounts}
        return len(created) + plan.locker.is_new
