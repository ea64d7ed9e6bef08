"""`cycleforge deploy`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, ProblemsFound
from ..operate.decisions import Deploying, must_be_right
from ..words.counts import counted
from ..words.terminal import columns, printable
from . import azure, common

if TYPE_CHECKING:
    from ..operate.built import Built
    from ..operate.decisions import Report, Seen, WhatIf
    from ..operate.deploy import Ended
    from .live import Shown

DESCRIPTION = """\
Deploy the built folder: check what would fail (preflight), show what Azure would do (what-if), ask, deploy, and show
the progress of each part until the first boot of the server has ended, and how long a part usually takes if that is
documented. If preflight could not check everything, or only a part of the deployment would work, for example because a
quota is still pending, the command asks whether to continue. With --yes it continues only with --accept-unknown in the
first case, and with --accept and the id of the finding in the second.

Ctrl-C only stops watching: Azure continues, and the same command reattaches, also on a different machine. A second user
who deploys in the meantime is told, and watches the same deployment.

Secrets are read from the environment, or typed without echo. They are sent to Azure and stored nowhere. An environment
variable may hold the id of a secret in a Key Vault instead: /subscriptions/…/vaults/VAULT/secrets/NAME.

The exit code is 0 when the deployment succeeded, 1 when it was not started, and 4 when it failed.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--out", "--all", "--subscription", "--print")
    parser.set_defaults(json=False)
    parser.add_argument("--yes", action="store_true", help="do not ask, except before data is deleted")
    parser.add_argument("--no-preflight", action="store_true", help="do not check first what would fail")
    parser.add_argument(
        "--accept-unknown",
        action="store_true",
        help="continue without asking when preflight could not check everything",
    )
    text = "deploy despite the finding with this id of preflight; may be repeated"
    parser.add_argument("--accept", metavar="RULE", action="append", default=[], help=text)
    parser.add_argument(
        "--rerun-first-boot", action="store_true", help="let the server repeat the unfinished steps of its first boot"
    )


def run(args: Namespace) -> int:
    from ..operate import asking
    from ..operate.deploy import AGAIN, begun, must_be_checks, watch

    found = common.built(args)
    if args.print:
        common.emit("\n".join(_lines(found)))
        return OK
    must_be_checks(args.accept)
    must_be_right(found.plan.secrets)
    options = {"looks_first": not args.no_preflight, "reruns_first_boot": args.rerun_first_boot}
    with asking.writer(found.plan, asking.session_of(found.plan, args.subscription), AGAIN) as writer:
        if not begun(found, writer, _Asks(found, args), **options):
            return ProblemsFound.exit_code
        for part in found.plan.slow_resources:
            common.say(f"{part} takes longer than the rest")
        return _ended(found, watch(found, writer, _shown(args)))


def _lines(found: Built) -> list[str]:
    from ..azure import az_lines

    plan = found.plan
    return [
        *az_lines.beginning(plan), az_lines.deployment(plan, "what-if"), az_lines.deployment(plan, "create"),
        *az_lines.watching(plan),
    ]  # fmt: skip


class _Asks(Deploying):
    """Shows what there is to decide, and asks; --yes agrees to nothing that is not shown."""

    def __init__(self, found: Built, args: Namespace) -> None:
        super().__init__(args.accept)
        self._found, self._args, self.secrets = found, args, azure.Typed()

    def attaches(self, running: Seen, *, is_same: bool) -> bool:
        """Ask before watching a deployment with different content."""
        name = self._found.plan.deployment_name
        common.say(f"{name} has been deploying since {running.began}; nothing new is started")
        if is_same:
            return True
        common.say("its content differs from this folder")
        return self._args.yes or azure.confirmed("watch it?", "run the same command again when it has ended")

    def goes_on(self, report: Report) -> bool:
        """Refuse what would fail; ask about what works only in part or is unknown."""
        from .preflight import shown

        common.say(shown(report, self._found.definition, sys.stderr, self._args))
        left = self.left(report)
        if left.fails:
            ids = [each.rule_id for each in left.findings if each.is_known and each.level == "error"]
            common.say(
                f"nothing was deployed, because it would fail; {_accepting(ids)} deploys despite it, "
                "--no-preflight skips the check"
            )
            return False
        asked = [each.rule_id for each in left.findings if each.asks]
        if asked and not self._takes("not everything would work", "deploy", _accepting(asked)):
            return False
        if left.is_known or self._args.accept_unknown:
            return True
        # What is not known may be what fails half-way.
        unknown = counted(sum(not each.is_known for each in left.findings), "thing")
        return self._takes(f"{unknown} could not be checked", "continue", "--accept-unknown")

    def _takes(self, what: str, how: str, flag: str) -> bool:
        flag = f"{flag} continues without asking"
        if self._args.yes:
            shown = ", as shown above" if how == "deploy" else ""
            common.say(f"nothing was deployed, because {what}{shown}; {flag}")
            return False
        return azure.confirmed(f"{what}, as shown above: {how} anyway?", flag)

    def agrees(self, answer: WhatIf, subscription: str) -> bool:
        from ..azure import what_if_text

        common.emit(what_if_text.text(answer))
        if not super().agrees(answer, subscription):
            return azure.confirmed("data would be deleted: deploy anyway?", "run it on a terminal")
        plan = self._found.plan
        where = f"{plan.resource_group} in {plan.location}, subscription {subscription}"
        return self._args.yes or azure.confirmed(f"deploy {plan.deployment_name} to {where}?", "give --yes")


def _accepting(ids: Iterable[str]) -> str:
    return " ".join(f"--accept {each}" for each in dict.fromkeys(ids))


@contextmanager
def _shown(args: Namespace) -> Iterator[Shown]:
    from .live import Shown

    drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    try:
        with Shown(is_drawn=drawn, no_color=not common.use_color(sys.stderr, args)) as shown:
            yield shown
    except KeyboardInterrupt:
        common.say(f"\nAzure continues to deploy; `cycleforge deploy {args.name}` reattaches")
        raise


def _ended(found: Built, ended: Ended) -> int:
    from ..azure import failures

    for line in ended.first_boot.splitlines():
        common.say(printable(line))
    if ended.state == "done":
        rows = [
            (name, printable(str(value["value"])))
            for name, value in ended.outputs.items()
            if isinstance(value, dict) and isinstance(value.get("value"), str | int)
        ]
        name = found.plan.deployment_name
        common.emit(f"{columns(rows)}{name} is deployed; README.md, Connect, says how to log in")
        return OK
    if ended.state == "canceled":
        raise AzureRefused("the deployment was cancelled; what was created stays", "run the same command to continue")
    print(failures.text(ended.failures), file=sys.stderr, end="")
    hint = "fix the cause, then run the same command to continue"
    raise AzureRefused("the deployment failed; what was created stays", hint)
