"""The argument parser. Only the verb that is called is imported; all of them for completion and documentation."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from ..errors import CannotRead, CycleForgeError, exit_codes
from ..version import __version__
from . import answer

TYPE_CHECKING = False
if TYPE_CHECKING:  # `cycleforge --help` does without the typing module
    from typing import NoReturn, Protocol

    class Verb(Protocol):
        """What the module of a verb offers."""

        DESCRIPTION: str

        def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

        def run(self, args: argparse.Namespace) -> int:
            """Run the verb; return the exit code."""


VERBS: dict[str, tuple[str, str]] = {
    "init": ("init", "write a commented definition to start from"),
    "validate": ("validate", "check definitions and report all problems"),
    "plan": ("plan", "show what a definition results in: network, partitions, mounts, projects, jobs"),
    "build": ("build", "render deployment folders from definitions"),
    "diff": ("diff", "compare a definition with what was built, and what each change costs"),
    "what-if": ("what_if", "ask Azure what deploying would create, change and delete; nothing is changed"),
    "deploy": ("deploy", "deploy what was built: check what would fail, show what changes, ask, deploy, watch"),
    "status": ("status", "show how deployments are: Azure, first boot, cluster, nodes, why nodes failed"),
    "cost": ("cost", "show what a deployment costs by the hour and month, from Azure's public price list"),
    "preflight": ("preflight", "ask Azure for everything that would make the deployment or its first job fail"),
    "start": ("start", "start a cluster: its scheduler and login nodes"),
    "stop": ("stop", "stop a cluster: show the jobs that would end, ask, delete its VMs"),
    "nodes": ("nodes", "list the nodes of a cluster: their states in CycleCloud and Slurm, and why they failed"),
    "retry": ("retry", "show why nodes failed, and let CycleCloud retry them"),
    "scale": ("scale", "start nodes of a partition, or stop idle ones"),
    "update": ("update", "bring a cluster to what was built: import it, and replace old nodes as they become idle"),
    "logs": ("logs", "show or follow the logs of the server, the scheduler or a node"),
    "support": ("support", "collect what helps to diagnose a problem in one archive, without secrets"),
    "run": ("run", "run a job on the cluster: copy it, submit its steps, follow it, fetch its results"),
    "prove": ("prove", "prove a partition with the built folder's prove.sh: show the plan, ask, follow it, report"),
    "delete": ("delete", "delete a deployment: show what goes and what stays, ask, delete, prove that nothing is left"),
    "connect": ("connect", "log in to server, scheduler or a node, or open the portal: by address, VPN or Bastion"),
    "explain": ("explain", "explain a problem: why it matters and how to fix it"),
    "schema": ("schema", "print the JSON Schema of definitions, for editors"),
    "health": ("health", "gather node health results; report nodes, failures and suspects"),
    "report": ("report", "report what the validation jobs of a cluster prove: one HTML page, text or JSON"),
    "project": ("project", "build, list and start cluster-init projects; give a changed one a new version"),
    "blobs": ("blobs", "fetch third-party files that nodes use, or show which this machine has"),
    "upload": ("upload", "upload projects to the locker of a cluster"),
    "locker": ("locker", "compare a locker with the projects here, list it, download a version, remove old ones"),
    "template": ("template", "check a CycleCloud cluster template and its parameter file"),
    "list": ("listing", "list VM sizes, releases, images, recipes or rules"),
    "completion": ("completion", "print a completion script for the shell"),
}
"""Verb → its module in this package and its summary."""
BEHIND = "behind"
"""A default that a verb sets when it takes a command after `--`, with that command's own flags."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CannotRead(message, f"see `{self.prog} --help`")


def run(arguments: Sequence[str]) -> int:
    verb = next((word for word in arguments if not word.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        raise CannotRead(f"there is no command '{verb}'", _did_you_mean(verb, VERBS) or f"commands: {', '.join(VERBS)}")
    answer.now.verb = verb
    # All verbs together are shown only by what may stand before one. Making a parser for each takes a few milliseconds.
    listed = VERBS if verb is None or arguments[0] != verb else [verb]
    parser, verbs = make_parser([] if verb is None else [verb], listed)
    before, behind = list(arguments), None
    if verb is not None and "--" in before and verbs[verb].get_default(BEHIND) is not None:
        at = before.index("--")
        before, behind = before[:at], before[at + 1 :]
    args, unknown = parser.parse_known_args(before)
    if verb is not None:
        unknown = _taken(getattr(args, "action_parser", verbs[verb]), args, unknown)
    if behind is not None:
        setattr(args, BEHIND, behind)
    if unknown:
        parts = [parser, verbs[verb], getattr(args, "action_parser", parser)] if verb else [parser]
        options = [option for part in parts for option in part._option_string_actions]
        name = unknown[0].partition("=")[0]
        kind = "option" if name.startswith("-") else "argument"
        usage = f"see `cycleforge {verb} --help`" if verb else "see `cycleforge --help`"
        if verb and behind is None and verbs[verb].get_default(BEHIND) is not None and kind == "argument":
            usage = f"write a command after two dashes: cycleforge {verb} NAME HOST -- {name} ..."
        raise CannotRead(f"unknown {kind} '{name}'", _did_you_mean(name, options) or usage)
    if verb is None:
        parser.print_help(sys.stderr)
        raise CannotRead("a command is missing", "start with `cycleforge init` or `cycleforge build`")
    command: Callable[[argparse.Namespace], int] = args.run
    try:
        return command(args)
    except CycleForgeError as error:
        definition = getattr(args, "name", None)
        if error.hint and isinstance(definition, str):
            from ..words.suggestions import with_name

            error.hint = with_name(error.hint, definition)
        raise


def _taken(parser: argparse.ArgumentParser, args: argparse.Namespace, unknown: list[str]) -> list[str]:
    """Give optional arguments the words that follow an option, and return the rest.

    argparse gives such an argument its default as soon as an option follows NAME, as in `logs NAME --lines 5 HOST`
    (https://github.com/python/cpython/issues/59317, fixed in newer versions of Python).
    """
    for action in parser._get_positional_actions():
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), unknown))
        if action.nargs == "?" and words and getattr(args, action.dest) == action.default:
            setattr(args, action.dest, words[0])
            unknown = unknown[1:]
        elif action.nargs in ("*", "+") and words:
            setattr(args, action.dest, [*getattr(args, action.dest), *words])
            unknown = unknown[len(words) :]
    return unknown


def full_parser() -> argparse.ArgumentParser:
    return make_parser(VERBS, VERBS)[0]


def make_parser(wanted: Iterable[str], listed: Iterable[str]) -> tuple[_Parser, dict[str, _Parser]]:
    """Return the parser of the listed verbs, with the flags of the wanted ones only, and the parser of each verb."""
    common = _Parser(add_help=False)
    common.add_argument(
        "--no-color", action="store_true", default=argparse.SUPPRESS, help="no colors, as with NO_COLOR"
    )
    parser = _Parser(
        prog="cycleforge",
        description="From one YAML file to a complete, checked Slurm GPU cluster on Azure CycleCloud. Works offline.",
        epilog="exit codes:\n" + "\n".join(f"  {code:<4} {when}" for code, when in exit_codes()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cycleforge {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="verb")
    verbs: dict[str, _Parser] = {}
    for name in listed:
        module, summary = VERBS[name]
        verb: Verb | None = import_module(f".{module}", __package__) if name in wanted else None
        verbs[name] = subparsers.add_parser(
            name,
            help=summary,
            description=verb.DESCRIPTION if verb else summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common],
            allow_abbrev=False,
        )
        if verb:
            verb.add_arguments(verbs[name])
            verbs[name].set_defaults(run=verb.run)
    return parser, verbs


def _did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    from ..words.suggestions import suggestion

    return suggestion(word, allowed)
