"""`cycleforge explain`."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from ..errors import OK, CannotRead
from ..problems.rule import Rule
from ..words.suggestions import suggestion
from ..words.terminal import columns
from . import common

DESCRIPTION = (
    "Explain problems by their id: what is checked, why it matters, how to fix it, where to read more. Works offline."
)
_WIDTH = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="*", help="for example E0101; default: one line for each rule")
    parser.add_argument("--all", action="store_true", help="explain every rule")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..azure.checks import all_checks
    from ..rules import all_rules

    rules = {rule.id: rule for rule in (*all_rules(), *all_checks())}
    chosen = (
        list(rules.values()) if args.all or not args.ids else [_find(word, rules) for word in dict.fromkeys(args.ids)]
    )
    if args.json:
        common.emit_json([_plain(rule) for rule in chosen])
    elif args.ids or args.all:
        common.emit("\n".join(_text(rule) for rule in chosen))
    else:
        common.emit(columns([(rule.id, rule.level, rule.summary) for rule in chosen]))
    return OK


def _find(word: str, rules: dict[str, type[Rule]]) -> type[Rule]:
    found = rules.get(word.upper())
    if found is None:
        hint = suggestion(word.upper(), rules) or "`cycleforge explain` lists all ids"
        raise CannotRead(f"there is no rule '{word}'", hint)
    return found


def _plain(rule: type[Rule]) -> dict[str, str]:
    names: Iterable[str] = ("id", "level", "subject", "summary", "why", "fix", "source")
    return {name: getattr(rule, name) for name in names}


def _text(rule: type[Rule]) -> str:
    parts = [
        f"{rule.id} ({rule.level}, {rule.subject})",
        textwrap.fill(rule.summary, _WIDTH, initial_indent="  ", subsequent_indent="  "),
    ]
    for label, value in (("why", rule.why), ("fix", rule.fix), ("more", rule.source)):
        if value:
            lead = f"  {label + ':':<6}"
            fill = textwrap.TextWrapper(_WIDTH, lead, " " * len(lead), break_long_words=False, break_on_hyphens=False)
            parts.append(fill.fill(value))
    return "\n".join(parts) + "\n"
