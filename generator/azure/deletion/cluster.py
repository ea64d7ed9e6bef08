"""What is done on the CycleCloud server, and to it: a command of its CLI, and stopping its machine."""

from __future__ import annotations

import re
import shlex

from ...plan.deployment import Plan
from ..answers import below
from ..request import Call
from ..requests import deployments
from ..writer import Writer

_EXIT = re.compile(r"^cycleforge-exit=(\w+)$", re.MULTILINE)
_LIMIT_S = 30 * 60
_SHOWN = 600


class NotDone(Exception):  # noqa: N818 - named by what happened
    """The server did not do it; the text says why, the hint what to type instead."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


def command(plan: Plan, server: str, verb: str) -> Call:
    """`cyclecloud terminate_cluster` or `delete_cluster` on the server, as a user whose CLI is logged in.

    The answer names no exit status, so the script prints it.
    Source: https://learn.microsoft.com/azure/virtual-machines/linux/run-command
    """
    assert plan.slurm is not None
    body = {"commandId": "RunShellScript", "script": script(plan.admin.username, verb, plan.slurm.cluster_name)}
    return deployments.RUN_COMMAND(id=server, body=body)


def stop(server: str) -> Call:
    """Stop the server and give its machine back; nothing is said to a machine that is stopped already."""
    return deployments.STOP(id=server)


def script(user: str, verb: str, cluster: str) -> list[str]:
    """Lines for a POSIX shell, run by root. The CLI keeps its login in the home of whoever logged in."""
    return [
        'PATH="$PATH:/usr/local/bin:/usr/local/cyclecloud-cli/bin:/root/bin"',
        "program=$(command -v cyclecloud)",
        f"for user in {shlex.quote(user)} root; do",
        '  home=$(getent passwd "$user" | cut -d: -f6)',
        '  if [ -n "$program" ] && [ -n "$home" ] && [ -f "$home/.cycle/config.ini" ]; then',
        f'    sudo -H -u "$user" "$program" {verb} {shlex.quote(cluster)} 2>&1',
        '    echo "cycleforge-exit=$?"',
        "    exit 0",
        "  fi",
        "done",
        'echo "cycleforge-exit=nobody"',
    ]


def run(plan: Plan, writer: Writer, server: str, verb: str) -> None:
    """Do it; raises NotDone, Refused and NotAsked."""
    assert plan.slurm is not None
    words = f"cyclecloud {verb} {plan.slurm.cluster_name}"
    by_hand = f"ssh {plan.access.ssh} {words}"
    rows = below(writer.do(command(plan, server, verb), _LIMIT_S), "value")
    said = "\n".join(str(below(each, "message")) for each in rows) if isinstance(rows, list) else ""
    found = _EXIT.search(said)
    if found is None:
        raise NotDone("the server's answer does not say whether the command succeeded", by_hand)
    if found[1] == "nobody":
        login = "cyclecloud initialize --force --url=https://localhost"
        raise NotDone(
            "nobody is logged in to CycleCloud on the server",
            f"ssh -t {plan.access.ssh} {login} --username={plan.admin.username} --verify-ssl=false, or terminate the "
            "cluster in the portal; then type the same command again",
        )
    if found[1] != "0":
        text = " ".join(said.partition("[stdout]")[2].partition("cycleforge-exit=")[0].split())
        raise NotDone(f"`{words}` failed on the server with {found[1]}: {text[:_SHOWN]}", by_hand)
