"""`update`: import what was built, let Slurm have it, and replace old nodes as they become idle."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..azure import az_lines, deployment
from ..azure.deployment import Seen
from ..cyclecloud import cluster, slurm, updating
from ..cyclecloud.command_line import NotDone, must
from ..cyclecloud.shell import Unreachable
from ..cyclecloud.slurm import Queue
from ..cyclecloud.updating import Ages
from ..errors import AzureRefused, CannotRead, ProblemsFound
from ..plan.deployment import Plan
from ..plan.parameters import SecretPlan, secret_plans
from ..render.cluster_template import late_parameters
from ..words.counts import counted, first
from ..words.terminal import printable
from .cluster import AGAIN, Place
from .decisions import Updating, must_be_right, reference_of
from .locker import Locker

_FROM_USER = "secret:"
"""What the source of a parameter begins with that no fact of the deployment fills."""


def update(place: Place, decisions: Updating) -> bool:
    """Look, do what is left to do, read back; whether all was wanted and nothing is left to do by hand."""
    return _imported(place, decisions) and _nodes(place, decisions)


def lines(place: Place) -> list[str]:
    lines = [*_import_lines(place), *place.lines(["sudo", "azslurm", "scale"], host="scheduler")]
    if not place.has_records:
        return lines
    listing = ["sudo", updating.NODES, "list", *place.generations]
    replacing = updating.replace_words(place.generations, starts=not place.slurm.autoscale)
    return lines + place.lines(listing, replacing, host="scheduler")


def _import_lines(place: Place) -> list[str]:
    """Projects, template and parameters. Parameters hold secrets, which one's own server has from the deployment."""
    plan, name = place.plan, place.name
    if plan.server is not None:
        lines = [*az_lines.beginning(plan), az_lines.deployment(plan, "create")]
        return [f"(cd {shlex.quote(str(place.found.folder))} && {' && '.join(lines)})"]
    scp = shlex.join(["scp", "-F", str(place.config)])
    template, values = place.found.folder / "cluster" / f"{name}.txt", f"{name}.deployed.json"
    words = ["cyclecloud", "import_cluster", name, "-c", name, "-f", f"{name}.txt", "-p", values, "--force"]
    show = ["az", "deployment", "sub", "show", "--name", plan.deployment_name]
    query = ["--query", "properties.outputs.clusterParameters.value", "--output", "json"]
    return [
        *([f"cycleforge upload {shlex.quote(plan.definition_name)}"] if plan.projects else []),
        f"{shlex.join([*show, *query])} >{shlex.quote(values)}",
        f"{scp} {shlex.quote(str(template))} {shlex.quote(values)} server:",
        *place.lines(words),
    ]


# ---------------------------------------------------------------- on the server


def _imported(place: Place, decisions: Updating) -> bool:
    """Upload and import, unless the deployment has done it; whether that was wanted."""
    cluster.look(place.cyclecloud, place.name)
    seen = deployment.last(place.plan, place.writer)
    if seen is None or seen.state != "done":
        state = "does not exist" if seen is None else f"is {seen.state}"
        raise ProblemsFound(
            f"the deployment {place.plan.deployment_name} {state}", f"cycleforge deploy {decisions.name}"
        )
    if place.plan.server is not None and seen.content == deployment.content_of(place.found.folder):
        place.say("projects, template and parameters: as deployed")
        return True
    place.say(f"{place.name}: template and parameters would be imported; what was edited in the portal is replaced")
    if not decisions.agrees(f"import {place.name}?"):
        return False
    if not place.server.is_direct:
        raise AzureRefused(
            "files do not go through Azure's run command",
            f"`cycleforge deploy {decisions.name}` lets the server import them",
        )
    values = _parameters(place, seen, decisions)
    _upload(place, decisions, seen)
    template = (place.found.folder / "cluster" / f"{place.name}.txt").read_bytes()
    place.cyclecloud.import_cluster(place.name, template, json.dumps(values, sort_keys=True).encode())
    cluster.look(place.cyclecloud, place.name)
    kept = "scheduler and login nodes keep what they started with until the cluster is stopped"
    decisions.done(f"{place.name}: template and parameters imported; {kept}")
    return True


def _parameters(place: Place, seen: Seen, decisions: Updating) -> dict[str, Any]:
    """With secrets from the environment, or typed: they are on no server, and go there through ssh's input only."""
    if place.plan.server is None:
        output = seen.outputs.get("clusterParameters")
        found = output.get("value") if isinstance(output, dict) else None
        if not isinstance(found, dict):
            raise ProblemsFound(
                "the deployment has no parameters for the cluster", "`cycleforge deploy NAME` comes first"
            )
        every = late_parameters(place.plan)
        late = {name: source for name, source in every.items() if source.startswith(_FROM_USER)}
        return updating.parameters(found, late, {}, _secrets(place, late, decisions))
    folder = place.found.folder
    fixed = json.loads((folder / "cluster" / f"{place.name}.params.json").read_text(encoding="utf-8"))
    configuration = json.loads((folder / "bootstrap" / "bootstrap.json").read_text(encoding="utf-8"))
    late = configuration["cluster"]["late"]
    return updating.parameters(fixed, late, updating.facts_of(place.server), _secrets(place, late, decisions))


def _secrets(place: Place, late: Mapping[str, str], decisions: Updating) -> dict[str, str]:
    """What the cluster needs of them. An import replaces all parameters: without it a password would be gone."""
    needed = {source.removeprefix(_FROM_USER) for source in late.values() if source.startswith(_FROM_USER)}
    wanted = [secret for secret in _askable(place.plan) if secret.parameter in needed]
    decisions.secrets.must_be_there(wanted)
    by_variable = decisions.secrets.values(wanted)
    for secret in wanted:
        reference = reference_of(by_variable[secret.variable])
        if reference:
            vault = reference["keyVault"]["id"].rpartition("/")[2]
            words = shlex.join(["az", "keyvault", "secret", "show", "--vault-name", vault, "--name",
                                reference["secretName"], "--query", "value", "--output", "tsv"])  # fmt: skip
            raise CannotRead(
                f"{secret.variable} names a secret in a Key Vault, and only Azure's deployments read that by its name",
                f'export {secret.variable}="$({words})"',
            )
    return {secret.parameter: by_variable[secret.variable] for secret in wanted}


def must_have_right_secrets(plan: Plan) -> None:
    """Raise CannotRead where one of the environment that the cluster needs breaks the rules."""
    sources = set(late_parameters(plan).values())
    must_be_right(each for each in _askable(plan) if f"{_FROM_USER}{each.parameter}" in sources)


def _askable(plan: Plan) -> Sequence[SecretPlan]:
    """Those of the deployment, and the password of a database that is there, which a deployment need not know."""
    known = secret_plans(
        plan.admin.username, has_server=False, has_jumpbox=False, has_accounting=True, has_new_database=False
    )
    of_plan = {secret.parameter for secret in plan.secrets}
    return [*plan.secrets, *(secret for secret in known if secret.parameter not in of_plan)]


def _upload(place: Place, decisions: Updating, seen: Seen) -> None:
    """Versions never change, so only newer ones are sent."""
    if not place.plan.projects:
        return
    output = seen.outputs.get("lockerAccount")
    account = place.plan.locker.account_name or (output.get("value") if isinstance(output, dict) else None)
    if not account:
        raise ProblemsFound(
            "the deployment does not say which account the locker is", "`cycleforge deploy NAME` comes first"
        )
    decisions.upload(Locker(f"az://{account}/{place.plan.locker.container}"))


# ---------------------------------------------------------------- on the scheduler


def _nodes(place: Place, decisions: Updating) -> bool:
    seen = place.look()
    if not seen.is_started:
        decisions.done(f"{place.name} is {seen.way}: what starts will be new")
        return True
    wanted = {array.name: array.max_nodes for array in place.slurm.node_arrays if not array.sizes}
    queue = slurm.look(place.scheduler)
    wrong = updating.different(queue, wanted)
    if wrong:
        place.say(f"partitions: {'; '.join(wrong)}; azslurm writes them anew")
        updating.scale(place.scheduler)
        queue = slurm.look(place.scheduler)
        wrong = updating.different(queue, wanted)
        if wrong:
            raise AzureRefused(f"azslurm has not made the partitions as wanted: {'; '.join(wrong)}", AGAIN)
    by_hand = _sizes(place, queue)
    if not _policy(place, decisions):
        return False
    return _old_nodes(place, decisions) and not by_hand


def _sizes(place: Place, queue: Queue) -> bool:
    """Say which nodes of partitions with several sizes are left to do by hand; whether there are any."""
    found = []
    for array in place.slurm.node_arrays:
        wanted = {size.hardware.name: size.host_list for size in array.sizes}
        found += updating.of_sizes(queue, array.partition, wanted) if wanted else []
    for text in found:
        place.say(printable(text))
    if found:
        readme = place.found.folder / "README.md"
        place.say(f"{readme} has the lines that create nodes; `sudo scontrol delete NodeName=…` takes idle ones away")
    return bool(found)


def _old_nodes(place: Place, decisions: Updating) -> bool:
    if not place.has_records:
        decisions.done("nodes keep no record of their age: those that started before are old until they are stopped")
        return True
    found = updating.ages(place.scheduler, place.generations)
    place.say(found.text.rstrip())
    if updating.is_replacing(place.scheduler):
        return _replaced_already(decisions)
    if not found.old:
        decisions.done(f"{place.name}: no running node is old")
        return True
    return _replace(place, decisions, found)


def _replaced_already(decisions: Updating) -> bool:
    """Someone else has begun it."""
    decisions.done(f"old nodes are being replaced already; `cycleforge logs {decisions.name} scheduler` shows how far")
    return True


def _policy(place: Place, decisions: Updating) -> bool:
    """The scheduling policy, where there is one: a running scheduler keeps the one that it started with."""
    file = place.found.folder / "cluster" / "policy.rows"
    if not file.is_file():
        return True
    rows = file.read_bytes()
    changes, text = updating.policy(place.scheduler, rows, dry=True)
    if not changes:
        return True
    for line in text.splitlines():
        place.say(printable(line))
    if not decisions.agrees("apply the scheduling policy?"):
        return False
    updating.policy(place.scheduler, rows, dry=False)
    left, _ = updating.policy(place.scheduler, rows, dry=True)
    if left:
        raise AzureRefused(f"{left} changes of the scheduling policy are left", AGAIN)
    decisions.done(f"{place.name}: the scheduling policy is applied")
    return True


def _replace(place: Place, decisions: Updating, found: Ages) -> bool:
    names = f"{counted(len(found.old), 'old node')}: {first(found.old, 8)}"
    busy = []
    if decisions.now:
        busy = [node.name for node in slurm.look(place.scheduler).nodes if node.name in found.old and node.has_jobs]
        place.say(f"jobs would end on {', '.join(busy) or 'none of them'}")
        if busy and not decisions.asks and not decisions.end_jobs:
            raise ProblemsFound(
                "nothing was replaced, because jobs run on old nodes", "--now --yes --end-jobs ends them"
            )
    how = "end them now" if decisions.now else "replace them as they become idle"
    if not decisions.agrees(f"{names}; {how}?"):
        return False
    # The question may have stood for long, and somebody else be faster.
    if decisions.asks and not decisions.now and updating.is_replacing(place.scheduler):
        return _replaced_already(decisions)
    lost = ""
    try:
        if decisions.now:
            updating.end_now(place.scheduler, found.old)
        else:
            words = updating.replace_words(place.generations, starts=not place.slurm.autoscale)
            must(place.scheduler, shlex.join(words), "the scheduler")
    except Unreachable as error:
        lost = error.reason
        place.say(f"{lost}; checking whether it arrived")
    except NotDone:
        # There is one unit of that name: whoever else has begun it replaces the same nodes.
        if decisions.now or not updating.is_replacing(place.scheduler):
            raise
        return _replaced_already(decisions)
    if decisions.now:
        left = {node.name for node in slurm.look(place.scheduler).nodes if not node.is_down} & set(found.old)
        begun = not left
    else:
        begun = updating.is_replacing(place.scheduler) or not updating.ages(place.scheduler, place.generations).old
    if not begun:
        raise AzureRefused("old nodes are not being replaced" if not lost else "it did not arrive", AGAIN)
    decisions.done(f"{names}; {'they end' if decisions.now else 'they are replaced as they become idle'}")
    return True
