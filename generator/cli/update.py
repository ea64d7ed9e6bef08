"""`cycleforge update`."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..azure.deployment import Seen
    from ..cyclecloud.slurm import Queue
    from ..cyclecloud.updating import Ages
    from ..operate.cluster import Place
    from ..plan.types import Plan, SecretPlan

DESCRIPTION = """\
Bring a cluster to what was built: upload newer projects, import template and parameters, let Slurm have changed
partitions and another scheduling policy, name the nodes that are old, and replace them as they become idle. Running
nodes stay until then.

What `cycleforge deploy` has deployed already is not uploaded and imported a second time. Every step looks first and may
be repeated, so after an interruption the same command goes on. The replacement runs on the scheduler, not here.
"""
_FROM_USER = "secret:"
"""What the source of a parameter begins with that no fact of the deployment fills."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=True)
    parser.add_argument("--now", action="store_true", help="end old nodes at once, with their jobs; asks first")
    parser.add_argument("--end-jobs", action="store_true", help="with --now --yes: also when jobs run on them")


def run(args: Namespace) -> int:
    """Look, ask, do what is left to do, read back."""
    with cluster.at(args) as place:
        if args.print:
            common.emit("\n".join(_lines(place)))
            return OK
        place.must_be_current(args.name)
        _secrets_are_right(place.plan)
        if not _imported(place, args):
            return ProblemsFound.exit_code
        return _nodes(place, args)


def _lines(place: Place) -> list[str]:
    from ..cyclecloud.updating import NODES, replace_words

    lines = [*_import_lines(place), *place.lines(["sudo", "azslurm", "scale"], host="scheduler")]
    if not place.has_records:
        return lines
    listing = ["sudo", NODES, "list", *place.generations]
    replacing = replace_words(place.generations, starts=not place.slurm.autoscale)
    return lines + place.lines(listing, replacing, host="scheduler")


def _import_lines(place: Place) -> list[str]:
    """Projects, template and parameters. Parameters hold secrets, which one's own server has from the deployment."""
    from ..azure import az_lines

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


def _imported(place: Place, args: Namespace) -> bool:
    """Upload and import, unless the deployment has done it; whether that was wanted."""
    from ..azure import deployment
    from ..cyclecloud import nodes

    nodes.look(place.cyclecloud, place.name)
    seen = deployment.last(place.plan, place.writer)
    if seen is None or seen.state != "done":
        state = "does not exist" if seen is None else f"is {seen.state}"
        raise ProblemsFound(f"the deployment {place.plan.deployment_name} {state}", f"cycleforge deploy {args.name}")
    if place.plan.server is not None and seen.content == deployment.content_of(place.found.folder):
        cluster.say("projects, template and parameters: as deployed")
        return True
    cluster.say(f"{place.name}: template and parameters would be imported; what was edited in the portal is replaced")
    if not args.yes and not azure.confirmed(f"import {place.name}?", "give --yes"):
        return False
    if not place.server.is_direct:
        raise AzureRefused(
            "files do not go through Azure's run command",
            f"`cycleforge deploy {args.name}` lets the server import them",
        )
    values = _parameters(place, seen)
    _upload(place, args, seen)
    template = (place.found.folder / "cluster" / f"{place.name}.txt").read_bytes()
    place.cyclecloud.import_cluster(place.name, template, json.dumps(values, sort_keys=True).encode())
    nodes.look(place.cyclecloud, place.name)
    kept = "scheduler and login nodes keep what they started with until the cluster is stopped"
    common.emit(f"{place.name}: template and parameters imported; {kept}")
    return True


def _parameters(place: Place, seen: Seen) -> dict[str, Any]:
    """With secrets from the environment, or typed: they are on no server, and go there through ssh's input only."""
    from ..cyclecloud import updating
    from ..render.cluster_template import late_parameters

    if place.plan.server is None:
        output = seen.outputs.get("clusterParameters")
        found = output.get("value") if isinstance(output, dict) else None
        if not isinstance(found, dict):
            raise ProblemsFound(
                "the deployment has no parameters for the cluster", "`cycleforge deploy NAME` comes first"
            )
        every = late_parameters(place.plan)
        late = {name: source for name, source in every.items() if source.startswith(_FROM_USER)}
        return updating.parameters(found, late, {}, _secrets(place, late))
    folder = place.found.folder
    fixed = json.loads((folder / "cluster" / f"{place.name}.params.json").read_text(encoding="utf-8"))
    configuration = json.loads((folder / "bootstrap" / "bootstrap.json").read_text(encoding="utf-8"))
    late = configuration["cluster"]["late"]
    return updating.parameters(fixed, late, updating.facts_of(place.server), _secrets(place, late))


def _secrets(place: Place, late: Mapping[str, str]) -> dict[str, str]:
    """What the cluster needs of them. An import replaces all parameters: without it a password would be gone."""
    from ..operate.secrets import reference_of
    from . import secrets

    needed = {source.removeprefix(_FROM_USER) for source in late.values() if source.startswith(_FROM_USER)}
    wanted = [secret for secret in _askable(place.plan) if secret.parameter in needed]
    secrets.must_be_there(wanted)
    by_variable = secrets.values(wanted)
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


def _secrets_are_right(plan: Plan) -> None:
    """Raises CannotRead where one of the environment that the cluster needs breaks the rules."""
    from ..operate.secrets import must_be_right
    from ..render.cluster_template import late_parameters

    sources = set(late_parameters(plan).values())
    must_be_right(each for each in _askable(plan) if f"{_FROM_USER}{each.parameter}" in sources)


def _askable(plan: Plan) -> Sequence[SecretPlan]:
    """Those of the deployment, and the password of a database that is there, which a deployment need not know."""
    from ..plan.parameters import secret_plans

    known = secret_plans(
        plan.admin.username, has_server=False, has_jumpbox=False, has_accounting=True, has_new_database=False
    )
    of_plan = {secret.parameter for secret in plan.secrets}
    return [*plan.secrets, *(secret for secret in known if secret.parameter not in of_plan)]


def _upload(place: Place, args: Namespace, seen: Seen) -> None:
    """Versions never change, so only newer ones are sent."""
    from ..operate.packages import Locker
    from . import upload

    if not place.plan.projects:
        return
    output = seen.outputs.get("lockerAccount")
    account = place.plan.locker.account_name or (output.get("value") if isinstance(output, dict) else None)
    if not account:
        raise ProblemsFound(
            "the deployment does not say which account the locker is", "`cycleforge deploy NAME` comes first"
        )
    locker = f"az://{account}/{place.plan.locker.container}"
    upload.send([args.name], Locker(locker), Namespace(json=False, no_color=getattr(args, "no_color", False)))


# ---------------------------------------------------------------- on the scheduler


def _nodes(place: Place, args: Namespace) -> int:
    from ..cyclecloud import slurm, updating
    from ..operate.cluster import AGAIN

    seen = place.look()
    if not seen.is_started:
        common.emit(f"{place.name} is {seen.way}: what starts will be new")
        return OK
    wanted = {array.name: array.max_nodes for array in place.slurm.node_arrays if not array.sizes}
    queue = slurm.look(place.scheduler)
    wrong = updating.different(queue, wanted)
    if wrong:
        cluster.say(f"partitions: {'; '.join(wrong)}; azslurm writes them anew")
        updating.scale(place.scheduler)
        queue = slurm.look(place.scheduler)
        wrong = updating.different(queue, wanted)
        if wrong:
            raise AzureRefused(f"azslurm has not made the partitions as wanted: {'; '.join(wrong)}", AGAIN)
    by_hand = _sizes(place, queue)
    if not _policy(place, args):
        return ProblemsFound.exit_code
    return _old_nodes(place, args) or (ProblemsFound.exit_code if by_hand else OK)


def _sizes(place: Place, queue: Queue) -> bool:
    """Say which nodes of partitions with several sizes are left to do by hand; whether there are any."""
    from ..cyclecloud import updating
    from ..words.terminal import printable

    found = []
    for array in place.slurm.node_arrays:
        wanted = {size.hardware.name: size.host_list for size in array.sizes}
        found += updating.of_sizes(queue, array.partition, wanted) if wanted else []
    for text in found:
        cluster.say(printable(text))
    if found:
        readme = place.found.folder / "README.md"
        cluster.say(f"{readme} has the lines that create nodes; `sudo scontrol delete NodeName=…` takes idle ones away")
    return bool(found)


def _old_nodes(place: Place, args: Namespace) -> int:
    from ..cyclecloud import updating

    if not place.has_records:
        common.emit("nodes keep no record of their age: those that started before are old until they are stopped")
        return OK
    found = updating.ages(place.scheduler, place.generations)
    cluster.say(found.text.rstrip())
    if updating.is_replacing(place.scheduler):
        return _replaced_already(args)
    if not found.old:
        common.emit(f"{place.name}: no running node is old")
        return OK
    return _replace(place, args, found)


def _replaced_already(args: Namespace) -> int:
    """Somebody else has begun it."""
    common.emit(f"old nodes are being replaced already; `cycleforge logs {args.name} scheduler` shows how far")
    return OK


def _policy(place: Place, args: Namespace) -> bool:
    """The scheduling policy, where there is one: a running scheduler keeps the one that it started with."""
    from ..cyclecloud import updating
    from ..operate.cluster import AGAIN
    from ..words.terminal import printable

    file = place.found.folder / "cluster" / "policy.rows"
    if not file.is_file():
        return True
    rows = file.read_bytes()
    changes, text = updating.policy(place.scheduler, rows, dry=True)
    if not changes:
        return True
    for line in text.splitlines():
        cluster.say(printable(line))
    if not args.yes and not azure.confirmed("apply the scheduling policy?", "give --yes"):
        return False
    updating.policy(place.scheduler, rows, dry=False)
    left, _ = updating.policy(place.scheduler, rows, dry=True)
    if left:
        raise AzureRefused(f"{left} changes of the scheduling policy are left", AGAIN)
    common.emit(f"{place.name}: the scheduling policy is applied")
    return True


def _replace(place: Place, args: Namespace, found: Ages) -> int:
    from ..cyclecloud import slurm, updating
    from ..cyclecloud.command_line import NotDone
    from ..cyclecloud.shell import Unreachable
    from ..operate.cluster import AGAIN
    from ..words.counts import counted, first

    names = f"{counted(len(found.old), 'old node')}: {first(found.old, 8)}"
    busy = []
    if args.now:
        busy = [node.name for node in slurm.look(place.scheduler).nodes if node.name in found.old and node.has_jobs]
        cluster.say(f"jobs would end on {', '.join(busy) or 'none of them'}")
        if busy and args.yes and not args.end_jobs:
            raise ProblemsFound(
                "nothing was replaced, because jobs run on old nodes", "--now --yes --end-jobs ends them"
            )
    how = "end them now" if args.now else "replace them as they become idle"
    if not args.yes:
        if not azure.confirmed(f"{names}; {how}?", "give --yes"):
            return ProblemsFound.exit_code
        # The question may have stood for long, and somebody else be faster.
        if not args.now and updating.is_replacing(place.scheduler):
            return _replaced_already(args)
    lost = ""
    try:
        if args.now:
            updating.end_now(place.scheduler, found.old)
        else:
            words = updating.replace_words(place.generations, starts=not place.slurm.autoscale)
            updating.must(place.scheduler, shlex.join(words), "the scheduler")
    except Unreachable as error:
        lost = error.reason
        cluster.say(f"{lost}; looking whether it arrived")
    except NotDone:
        # There is one unit of that name: whoever else has begun it replaces the same nodes.
        if args.now or not updating.is_replacing(place.scheduler):
            raise
        return _replaced_already(args)
    if args.now:
        left = {node.name for node in slurm.look(place.scheduler).nodes if not node.is_down} & set(found.old)
        begun = not left
    else:
        begun = updating.is_replacing(place.scheduler) or not updating.ages(place.scheduler, place.generations).old
    if not begun:
        raise AzureRefused("old nodes are not being replaced" if not lost else "it did not arrive", AGAIN)
    common.emit(f"{names}; {'they end' if args.now else 'they are replaced as they become idle'}")
    return OK
