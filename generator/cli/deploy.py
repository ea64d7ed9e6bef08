"""`cycleforge deploy`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, ProblemsFound
from ..operate import asking
from ..operate.deploy import AGAIN, Decisions, begun, must_be_checks, watch
from ..operate.secrets import must_be_right
from ..words.counts import counted
from ..words.terminal import columns, printable
from . import azure, common
from .secrets import Typed

if TYPE_CHECKING:
    from ..operate.built import Built
    from ..operate.deploy import Ended, Report, Seen, WhatIf
    from .live import Shown

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
            print(f"{part} takes longer than the rest", file=sys.stderr)
        return _ended(found, watch(found, writer, _shown(args)))


def _lines(found: Built) -> list[str]:
    from ..azure import az_lines

    plan = found.plan
    return [
        *az_lines.beginning(plan), az_lines.deployment(plan, "what-if"), az_lines.deployment(plan, "create"),
        *az_lines.watching(plan),
    ]  # fmt: skip


class _Asks(Decisions):
    """Shows what there is to decide, and asks; --yes agrees to nothing that is not shown."""

    def __init__(self, found: Built, args: Namespace) -> None:
        super().__init__(args.accept)
        self._found, self._args, self.secrets = found, args, Typed()

    def attaches(self, running: Seen, *, is_same: bool) -> bool:
        """One of another content is not taken for this one without a word."""
        name = self._found.plan.deployment_name
        print(f"{name} is being deployed since {running.began}; nothing new is begun", file=sys.stderr)
        if is_same:
            return True
        print("what is being deployed is not what this folder holds", file=sys.stderr)
        return self._args.yes or azure.confirmed("watch it?", "run the command again when it has ended")

    def goes_on(self, report: Report) -> bool:
        """What would fail stops it; what works only in part, or is not known, is asked about."""
        from .preflight import shown

        print(shown(report, self._found.definition, sys.stderr, self._args), file=sys.stderr)
        left = self.left(report)
        if left.fails:
            ids = [each.rule_id for each in left.findings if each.is_known and each.level == "error"]
            print(
                f"nothing was deployed, because it would fail; {_accepting(ids)} deploys in spite of it, "
                "--no-preflight deploys all the same",
                file=sys.stderr,
            )
            return False
        asked = [each.rule_id for each in left.findings if each.asks]
        if asked and not self._takes("not everything would work", "deploy", _accepting(asked)):
            return False
        if left.is_known or self._args.accept_unknown:
            return True
        # What is not known may be what fails half-way.
        unknown = counted(sum(not each.is_known for each in left.findings), "thing")
        return self._takes(f"{unknown} could not be found out", "go on", "--accept-unknown")

    def _takes(self, what: str, how: str, flag: str) -> bool:
        flag = f"{flag} goes on without asking"
        if self._args.yes:
            shown = ", as shown above" if how == "deploy" else ""
            print(f"nothing was deployed, because {what}{shown}; {flag}", file=sys.stderr)
            return False
        return azure.confirmed(f"{what}, as shown above: {how} all the same?", flag)

    def agrees(self, answer: WhatIf, subscription: str) -> bool:
        """Shows it."""
        from ..azure import what_if_text

        common.emit(what_if_text.text(answer))
        if not super().agrees(answer, subscription):
            return azure.confirmed("data would be deleted: deploy all the same?", "run it on a terminal")
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
        print(f"\nAzure goes on deploying; `cycleforge deploy {args.name}` attaches again", file=sys.stderr)
        raise


def _ended(found: Built, ended: Ended) -> int:
    from ..azure import failures

    for line in ended.first_boot.splitlines():
        print(printable(line), file=sys.stderr)
    if ended.state == "done":
        rows = [
            (name, printable(str(value["value"])))
            for name, value in ended.outputs.items()
            if isinstance(value, dict) and isinstance(value.get("value"), str | int)
        ]
        name = found.plan.deployment_name
        common.emit(f"{columns(rows)}{name} is deployed; README.md, Connect, has the way in")
        return OK
    if ended.state == "canceled":
        raise AzureRefused("the deployment was cancelled; what was made stays", "the same command goes on from there")
    print(failures.text(ended.failures), file=sys.stderr, end="")
    hint = "after the fix, the same command goes on from there"
    raise AzureRefused("the deployment failed; what was made stays", hint)
