"""`cycleforge deploy`."""

from __future__ import annotations

import os
import sys
import time
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from ..words.counts import counted
from . import azure, common

if TYPE_CHECKING:
    from ..azure.bicep import Compiled
    from ..azure.boot_watch import BootWatch
    from ..azure.deployment import Seen
    from ..azure.operation_tree import Part
    from ..azure.preflight import Report
    from ..azure.writer import Writer
    from ..operate.built import Built

DESCRIPTION = """\
Deploy the built folder: look what would fail (preflight), show what Azure would do (what-if), ask, deploy, and show how
far each part is until the server has configured itself: its first boot step by step, and how long a part usually takes
where that is documented. What preflight could not ask does not count as good: it asks whether to go on all the same,
and with --yes it goes on only with --accept-unknown. Where only a part would work, such as a partition whose quota is
on its way, it asks as well, and with --yes it goes on only with --accept and the id of the finding.

Ctrl-C ends only the watching. Azure goes on, and the same command attaches again, also from another machine; so a
second person who deploys meanwhile is told, and watches the same deployment.

Secrets are read from the environment or asked for without echo, are sent to Azure, and stored nowhere. In place of a
secret the environment may have the id of one in a Key Vault: /subscriptions/…/vaults/VAULT/secrets/NAME.

The exit code is 0 when the deployment has succeeded, 1 when it was not begun, and 4 when it failed.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    azure.add_arguments(parser)
    parser.set_defaults(json=False)
    parser.add_argument("--yes", action="store_true", help="do not ask; data is deleted only after a question, though")
    parser.add_argument("--no-preflight", action="store_true", help="do not look first what would fail")
    parser.add_argument(
        "--accept-unknown", action="store_true", help="go on without asking when preflight could not ask everything"
    )
    text = "deploy in spite of what preflight's check ID finds; may be given several times"
    parser.add_argument("--accept", metavar="RULE", action="append", default=[], help=text)
    parser.add_argument(
        "--rerun-first-boot", action="store_true", help="let the server repeat what is unfinished of its first boot"
    )


def run(args: Namespace) -> int:
    """Look, ask, deploy, watch."""
    from .built import built

    found = built(args)
    if args.print:
        common.emit("\n".join(_lines(found)))
        return OK
    from ..azure.writer import Writer
    from . import secrets

    _must_be_checks(args.accept)
    secrets.must_be_right(found.plan.secrets)
    with azure.refusals(found.plan, "type the same command again; what was begun goes on, and it attaches"):
        writer = Writer(azure.session_of(found.plan, args))
        try:
            _must_not_be_a_stack(found, writer)
            return _deploy(found, writer, args)
        finally:
            writer.close()


def _lines(found: Built) -> list[str]:
    from ..azure import az_lines

    plan = found.plan
    return [
        *az_lines.beginning(plan), az_lines.deployment(plan, "what-if"), az_lines.deployment(plan, "create"),
        *az_lines.watching(plan),
    ]  # fmt: skip


def _must_not_be_a_stack(found: Built, writer: Writer) -> None:
    """Raises ProblemsFound where a stack has this name: it does not become a plain deployment by being deployed."""
    from ..azure import deployment

    name = found.plan.deployment_name
    if deployment.is_stack(found.plan, writer):
        raise ProblemsFound(
            f"{name} is a deployment stack",
            f"az stack sub delete --name {name} --action-on-unmanage detachAll --yes ends the stack, and deletes "
            "nothing else; or update it by hand: operations.md, Deployment stack, has the lines",
        )


def _deploy(found: Built, writer: Writer, args: Namespace) -> int:
    from ..azure import deployment

    seen = deployment.look(found.plan, writer)
    if seen is None or seen.state != "running":
        if not _begun(found, writer, args):
            return ProblemsFound.exit_code
        before, seen = seen, deployment.look(found.plan, writer)
        if seen is None or (before is not None and before.correlation == seen.correlation):
            raise AzureRefused("Azure took the deployment, and has none of this name", "run the command again")
        if seen.content == deployment.content_of(found.folder):
            return _watched(found, writer, args)
    return _watched(found, writer, args) if _may_attach(found, seen, args) else ProblemsFound.exit_code


# ---------------------------------------------------------------- someone deploys already


def _may_attach(found: Built, running: Seen, args: Namespace) -> bool:
    """Tell that a deployment runs; one of another content is not taken for this one without a word."""
    from ..azure.deployment import content_of

    name = found.plan.deployment_name
    print(f"{name} is being deployed since {running.began}; nothing new is begun", file=sys.stderr)
    if running.content == content_of(found.folder):
        return True
    print("what is being deployed is not what this folder holds", file=sys.stderr)
    return args.yes or azure.confirmed("watch it?", "run the command again when it has ended")


# ---------------------------------------------------------------- begin


def _begun(found: Built, writer: Writer, args: Namespace) -> bool:
    from ..azure import bicep, deployment, unchangeable
    from . import secrets

    plan = found.plan
    _must_be_ours(found, writer)
    made = bicep.compiled(found.folder, plan, dict(os.environ) | unchangeable.variables(plan, writer))
    wanted = [each for each in plan.secrets if "reference" not in made.parameters.get(each.parameter, {})]
    secrets.must_be_there(wanted)
    if not args.no_preflight and not _preflight_passed(found, writer, made, args):
        return False
    if not _agreed(found, writer, made, args):
        return False
    parameters = bicep.with_secrets(made, plan, secrets.values(wanted))
    if args.rerun_first_boot and plan.server is not None:
        parameters["bootstrapRun"] = {"value": uuid.uuid4().hex[:8]}
    deployment.begin(plan, writer, made.template, parameters, deployment.content_of(found.folder))
    return True


def _must_be_ours(found: Built, writer: Writer) -> None:
    from ..azure.requests import subscriptions

    plan = found.plan
    group = writer.find(subscriptions.GROUP(group=plan.resource_group))
    if plan.creates_resource_group and group is not None:
        owner = (group.get("tags") or {}).get(plan.cleanup.tag)
        if owner != plan.name:
            raise ProblemsFound(
                f"the resource group {plan.resource_group} is there already, and is not this deployment's",
                "choose another name, or use the group as it is, with "
                f"azure: {{resource_group: {{existing: {plan.resource_group}}}}} in the definition",
            )


def _preflight_passed(found: Built, writer: Writer, made: Compiled, args: Namespace) -> bool:
    from ..azure.check import Local
    from ..azure.preflight import preflight
    from .preflight import shown

    local = Local(found.folder, os.environ, made=made)
    report = preflight(found.plan, writer, local)
    print(shown(report, found.definition, sys.stderr, args), file=sys.stderr)
    left = replace(report, findings=tuple(each for each in report.findings if each.rule_id not in args.accept))
    if left.fails:
        ids = {each.rule_id: None for each in left.findings if each.is_known and each.level == "error"}
        print(
            f"nothing was deployed, because it would fail; {_accepting(ids)} deploys in spite of it, "
            "--no-preflight deploys all the same",
            file=sys.stderr,
        )
        return False
    if not _taken(left, args):
        return False
    return left.is_known or args.accept_unknown or _may_go_on(left, args)


def _taken(report: Report, args: Namespace) -> bool:
    """Whether someone takes what works only in part; --yes does not, because it agrees to nothing that is not shown."""
    asked = {each.rule_id: None for each in report.findings if each.asks}
    if not asked:
        return True
    flag = f"{_accepting(asked)} goes on without asking"
    if args.yes:
        print(f"nothing was deployed, because not everything would work, as shown above; {flag}", file=sys.stderr)
        return False
    return azure.confirmed("not everything would work, as shown above: deploy all the same?", flag)


def _accepting(ids: Iterable[str]) -> str:
    return " ".join(f"--accept {each}" for each in ids)


def _must_be_checks(ids: Iterable[str]) -> None:
    """Raises CannotRead for what no check of preflight is called."""
    from ..azure.checks import checks
    from ..words.suggestions import suggestion

    known = [check.id for check in checks()]
    for each in ids:
        if each not in known:
            hint = suggestion(each, known) or "preflight shows the ids of what it finds"
            raise CannotRead(f"--accept {each}: preflight has no check of this id", hint)


def _may_go_on(report: Report, args: Namespace) -> bool:
    """What is not known may be what fails half-way; --yes agrees to what is shown, and this is not."""
    unknown = counted(sum(not each.is_known for each in report.findings), "thing")
    flag = "--accept-unknown goes on without asking"
    if args.yes:
        print(f"nothing was deployed, because {unknown} could not be found out; {flag}", file=sys.stderr)
        return False
    return azure.confirmed(f"{unknown} could not be found out, as shown above: go on all the same?", flag)


def _agreed(found: Built, writer: Writer, made: Compiled, args: Namespace) -> bool:
    from ..azure import bicep, what_if_request, what_if_text

    plan = found.plan
    answer = what_if_request.asked(plan, writer, made.template, bicep.with_secrets(made, plan, bicep.stand_ins(plan)))
    common.emit(what_if_text.text(answer))
    if any(row.holds_data for row in answer.of("delete")):
        return azure.confirmed("data would be deleted: deploy all the same?", "run it on a terminal")
    if args.yes:
        return True
    where = f"{plan.resource_group} in {plan.location}, subscription {writer.subscription}"
    return azure.confirmed(f"deploy {plan.deployment_name} to {where}?", "give --yes")


# ---------------------------------------------------------------- watch


def _watched(found: Built, writer: Writer, args: Namespace) -> int:
    from ..azure import deployment
    from ..azure.boot_watch import BootWatch
    from .live import Shown

    plan = found.plan
    for part in plan.slow_resources:
        print(f"{part} takes longer than the rest", file=sys.stderr)
    boot = BootWatch(plan, writer)
    drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    try:
        with Shown(is_drawn=drawn, no_color=not common.use_color(sys.stderr, args)) as shown:
            seen, parts = deployment.watch(plan, writer, shown, boot)
    except KeyboardInterrupt:
        print(f"\nAzure goes on deploying; `cycleforge deploy {args.name}` attaches again", file=sys.stderr)
        raise
    _first_boot(boot)
    return _ended(found, seen, parts)


def _ended(found: Built, seen: Seen, parts: tuple[Part, ...]) -> int:
    from ..azure import deployment, failures

    plan = found.plan
    if seen.state == "done":
        common.emit(f"{_outputs(seen.outputs)}{plan.deployment_name} is deployed; README.md, Connect, has the way in")
        return OK
    if seen.state == "canceled":
        raise AzureRefused("the deployment was cancelled; what was made stays", "the same command goes on from there")
    why = [
        failure
        for part, cause in deployment.reasons(seen, parts)
        for failure in failures.explained([cause], part=part, name=plan.definition_name, group=plan.resource_group)
    ]
    print(failures.text(why), file=sys.stderr, end="")
    hint = "after the fix, the same command goes on from there"
    raise AzureRefused("the deployment failed; what was made stays", hint)


def _outputs(outputs: Any) -> str:
    from ..words.terminal import columns, printable

    rows = [
        (name, printable(str(value["value"])))
        for name, value in outputs.items()
        if isinstance(value, dict) and isinstance(value.get("value"), str | int)
    ]
    return columns(rows)


def _first_boot(boot: BootWatch) -> None:
    """What the server says in the end; a server that is not there or does not answer is no failure."""
    from ..azure.deployment import PAUSE_S
    from ..azure.refusals import NotAsked, Refused
    from ..words.terminal import printable

    try:
        text = boot.end(lambda: time.sleep(PAUSE_S))
    except Refused as refused:
        text = "" if refused.is_missing else f"the server cannot be asked for its first boot: {refused.code}"
    except NotAsked as reason:
        text = f"the server cannot be asked for its first boot: {reason.reason}"
    for line in (text or "").splitlines():
        print(printable(line), file=sys.stderr)
