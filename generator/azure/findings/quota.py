"""Whether the quota of the region leaves room: of every family, of spot VMs, of all vCPUs together.

Source: https://learn.microsoft.com/rest/api/compute/usage/list. A limit says what may run, not what Azure has left.
What runs in the deployment's own resource group is part of what is needed, so it does not count as in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from ...plan.types import Plan, SlurmPlan
from ...problems.problem import KeyPath
from ...records import record
from .answers import Found, Item, OddAnswer, below, folded, number, same
from .machines import Machines, machines
from .vm_sizes import Offered

ALL, SPOT = "cores", "lowPriorityCores"
_TITLES = {ALL: "all vCPUs of the region", SPOT: "all spot vCPUs of the region"}


@record
class Limit:
    """One limit of the region."""

    name: str
    """As Azure spells it."""
    limit: int
    """Negative: unlimited."""
    used: int


@record
class Running:
    """VMs of one size in the deployment's own resource group."""

    vm_size: str
    count: int
    spot: bool


@record
class Need:
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
    uses: dict[str, list[tuple[Machines, int]]] = {}
    for each in machines(plan):
        vcpus = _vcpus(sizes, each.vm_size) or each.vcpus
        family = _family(sizes, each.vm_size) or _planned_family(plan, each.vm_size)
        if vcpus is None or (family is None and not each.spot):
            continue
        for name in [SPOT] if each.spot else [str(family), ALL]:
            uses.setdefault(name, []).append((each, vcpus))
    ordered = sorted(uses, key=lambda name: name == ALL)
    return tuple(_need(name, uses[name]) for name in ordered)


def uncounted(plan: Plan, sizes: Offered) -> Iterator[Found]:
    """VMs of which neither Azure nor the plan says enough to count them."""
    for each in machines(plan):
        if not (_vcpus(sizes, each.vm_size) or each.vcpus):
            yield Found(each.path, f"nobody says how many vCPUs {each.vm_size} has, so {each.title} is not counted")
        elif not each.spot and not (_family(sizes, each.vm_size) or _planned_family(plan, each.vm_size)):
            yield Found(each.path, f"nobody says of which family {each.vm_size} is, so {each.title} is not counted")


def _vcpus(sizes: Offered, name: str) -> int | None:
    """Whether quota counts the vCPUs that a size has switched off is not documented, so the larger figure counts."""
    sku = sizes.get(folded(name))
    return (sku.figures.vcpus_of_machine or sku.figures.vcpus) if sku is not None else None


def _family(sizes: Offered, name: str) -> str | None:
    sku = sizes.get(folded(name))
    return sku.figures.family if sku is not None else None


def _planned_family(plan: Plan, name: str) -> str | None:
    return next((use.family for use in plan.quota.uses if use.vm_size == name), None)


def _need(name: str, uses: list[tuple[Machines, int]]) -> Need:
    largest = max(uses, key=lambda use: use[0].most * use[1])[0]
    always = sum(each.least * vcpus for each, vcpus in uses if each.starts_alone)
    job = max((each.least * vcpus for each, vcpus in uses if not each.starts_alone), default=0)
    path = ("slurm", "partitions") if name == ALL and len(uses) > 1 else largest.path
    essential = sum(each.least * vcpus for each, vcpus in uses if each.is_essential)
    others = tuple(dict.fromkeys(each.title for each, _ in uses if not each.is_essential))
    return Need(name, path, sum(each.most * vcpus for each, vcpus in uses), always + job, essential, others)


def own_use(name: str, own: Iterable[Running], sizes: Offered) -> int:
    """vCPUs that the deployment has in use below a limit already."""
    total = 0
    for each in own:
        counts = (
            each.spot if name == SPOT else not each.spot and (name == ALL or same(_family(sizes, each.vm_size), name))
        )
        total += each.count * (_vcpus(sizes, each.vm_size) or 0) if counts else 0
    return total


def too_small(
    plan: Plan, subscription: str, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running], *, at_least: bool
) -> Iterator[Found]:
    """Limits below what is needed: `at_least` for the start and the largest job, else with every partition full."""
    yield from (found for found, _ in judged(plan, subscription, sizes, known, own, at_least=at_least))


def judged(
    plan: Plan, subscription: str, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running], *, at_least: bool
) -> Iterator[tuple[Found, bool]]:
    """The same, each with whether not even server and scheduler fit."""
    for need, limit, others in _compared(plan, sizes, known, own):
        lacks_least = _exceeds(limit, others + need.least)
        if not (lacks_least if at_least else _exceeds(limit, others + need.most) and not lacks_least):
            continue
        why = "the start and the largest planned job need" if at_least else "with all partitions full it takes"
        has = f"the limit is {limit.limit}, {others} of it in use by others"
        if folded(need.name) not in known:
            has = "the region has no such limit, so there is no quota"
        is_fatal = _exceeds(limit, others + need.essential)
        if at_least and not is_fatal:
            has += f"; server and scheduler fit, {' and '.join(need.others)} not"
        count = need.least if at_least else need.most
        text = f"quota {limit.name} ({_TITLES.get(need.name, 'vCPUs of the family')}): {why} {count}; {has}"
        line = request_line(subscription, plan.location, limit.name, others + need.most)
        yield Found(need.path, text, line), is_fatal


def _compared(
    plan: Plan, sizes: Offered, known: Mapping[str, Limit], own: Iterable[Running]
) -> Iterator[tuple[Need, Limit, int]]:
    """Each need, its limit, and what others have in use of it."""
    own = tuple(own)
    for need in needs(plan, sizes):
        limit = known.get(folded(need.name)) or Limit(need.name, 0, 0)
        yield need, limit, max(0, limit.used - own_use(need.name, own, sizes))


def _exceeds(limit: Limit, count: int) -> bool:
    return 0 <= limit.limit < count


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


# ------------------------------------------------------------ other limits

PUBLIC_ADDRESSES = ("StandardSkuPublicIpAddresses", "PublicIPAddresses")
ACCOUNTS = ("StorageAccounts",)


def public_addresses(plan: Plan) -> int:
    """Public addresses that the deployment creates, and those that nodes may have."""
    server = plan.server is not None and plan.access.is_public
    return sum((server, plan.network.nat_gateway, plan.access.creates_bastion)) + _of_nodes(plan.slurm)


def _of_nodes(slurm: SlurmPlan | None) -> int:
    if slurm is None or slurm.public_addresses == "none":
        return 0
    schedulers = 2 if slurm.scheduler.high_availability else 1
    execute = sum(array.max_nodes for array in slurm.node_arrays) if slurm.public_addresses == "all" else 0
    return schedulers + slurm.login.max_count + execute


def accounts(plan: Plan) -> int:
    """Storage accounts that the deployment creates."""
    created = {name for mount in plan.all_mounts for name, _ in mount.created_accounts}
    return len(created) + (1 if plan.locker.is_new else 0)


def too_many(
    names: tuple[str, ...], need: int, own: int, known: Mapping[str, Limit], path: KeyPath, what: str
) -> Iterator[Found]:
    """A count beyond one of the named limits; OddAnswer where the answer has none of them."""
    found = [known[folded(name)] for name in names if folded(name) in known]
    if not found:
        raise OddAnswer(f"the limits of the region do not name {names[0]}")
    new = max(0, need - own)
    for limit in found:
        if new and 0 <= limit.limit < limit.used + new:
            text = f"{what}: {new} more are needed; {limit.used} of {limit.limit} exist ({limit.name})"
            yield Found(path, text, "open a support request (type: service and subscription limits (quotas))")
            return
