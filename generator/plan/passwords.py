"""What every reader of a password asks of it. The texts that are printed and the check are both made from this."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence

from msgspec import Struct

_KINDS = ("lower case", "upper case", "digits", "symbols")
_OF_PORTAL = "@#$%^&*-_!+=[]{}|\\:',.?"
"""Symbols that the CycleCloud portal counts; it takes others, too.
Source: https://learn.microsoft.com/azure/cyclecloud/qs-install-marketplace"""
_ANY_SYMBOL = r"[\W_]"
"""As Azure writes it. Source: https://learn.microsoft.com/javascript/api/@azure/arm-compute/osprofile"""
_OF_KIND = ("[a-z]", "[A-Z]", "[0-9]")
_PART_OF_NAME = 3
_NAMES = {" ": "space", "#": "#", "\\": "backslash", "'\"": "quote"}


class PasswordRule(Struct, frozen=True):
    """What a password needs; `text` completes "it must have …"."""

    text: str
    pattern: str
    """Of the whole of a password that keeps to the rule; a dot is any character."""


class Reader(Struct, frozen=True, kw_only=True):
    """A program or service that a password reaches. Lengths are in characters."""

    min_length: int = 1
    max_length: int = 128
    kinds: int = 0
    """Of the four: lower case, upper case, digits, symbols."""
    symbols: str = ""
    """Those that count; empty: all of them."""
    no_part_of_name: bool = False
    forbidden: tuple[str, ...] = ()
    """Keys of `_NAMES`."""
    not_first: str = ""
    is_ascii: bool = False


SITE = Reader(min_length=8, max_length=123, kinds=4, symbols=_OF_PORTAL, no_part_of_name=True, is_ascii=True)
"""The CycleCloud portal. Its own rule is three of the four kinds; Microsoft's form for the Workspace asks for all, and
so do we, as for the name. Sources: https://learn.microsoft.com/azure/cyclecloud/qs-install-marketplace,
https://github.com/Azure/cyclecloud-slurm-workspace (uidefinitions/createUiDefinition.json)"""
WINDOWS = Reader(min_length=12, max_length=123, kinds=3, no_part_of_name=True)
"""Source: https://learn.microsoft.com/azure/virtual-machines/windows/faq"""
AZ = Reader(not_first="@")
"""`az` reads a file where an argument begins with @, as in the line that sets the jumpbox's password.
Source: https://learn.microsoft.com/cli/azure/use-azure-cli-successfully-tips"""
MYSQL = Reader(min_length=8, max_length=128, kinds=3, no_part_of_name=True, is_ascii=True)
"""Sources: https://learn.microsoft.com/azure/mysql/flexible-server/how-to-manage-server-cli, for the name the portal's
text, as in https://github.com/microsoft/azure-tools-for-java"""
SLURMDBD = Reader(forbidden=tuple(_NAMES))
"""slurmdbd.conf: `#` begins a comment, a backslash is taken away, quotes at both ends too, and a space ends the value.
Source: https://slurm.schedmd.com/slurmdbd.conf.html and src/common/parse_config.c of Slurm"""


def limits(readers: Sequence[Reader]) -> tuple[int, int]:
    """Return the least and the greatest length that all readers take."""
    return max(each.min_length for each in readers), min(each.max_length for each in readers)


def rules(readers: Sequence[Reader], name: str) -> tuple[PasswordRule, ...]:
    """Return what a password needs so that all readers take it; `name` is that of its user.

    A text completes "it must have …". A pattern matches the whole of a password that keeps to it; it is read by every
    Python from 3.6 on, because the server's first boot checks the same.
    """
    return tuple(PasswordRule(text, pattern) for text, pattern in _rules(readers, name))


def _rules(readers: Sequence[Reader], name: str) -> Iterator[tuple[str, str]]:
    least, most = limits(readers)
    yield f"{least} to {most} characters", f".{{{least},{most}}}"
    kinds = max(each.kinds for each in readers)
    if kinds:
        symbols = next((each.symbols for each in readers if each.symbols), "")
        yield _kinds_text(kinds, symbols), _kinds_pattern(kinds, symbols)
    if any(each.no_part_of_name for each in readers):
        yield "no three characters in a row that the user's name has too", _without_parts(name)
    forbidden = [key for key in _NAMES if any(key in each.forbidden for each in readers)]
    if forbidden:
        *most_names, last = (_NAMES[key] for key in forbidden)
        signs = re.escape("".join(forbidden)).replace(r"\ ", "")
        yield f"no {', '.join(most_names)} or {last}", rf"[^\s{signs}]*"
    else:
        yield "no space at its beginning or end", r"(?!\s).*(?<!\s)"
    first = "".join(each.not_first for each in readers)
    if first:
        yield f"no {first} at its beginning", f"(?![{re.escape(first)}]).*"
    if any(each.is_ascii for each in readers):
        yield "only printable ASCII characters", "[ -~]*"
    else:
        yield "no control characters", r"[^\x00-\x1f\x7f-\x9f]*"


def _kinds_text(count: int, symbols: str) -> str:
    text = f"{', '.join(_KINDS[:-1])} and {_KINDS[-1]}"
    text += f" (these count: {symbols})" if symbols else ""
    return text if count == len(_KINDS) else f"at least three of {text}"


def _kinds_pattern(count: int, symbols: str) -> str:
    """One lookahead for each kind, or for each choice of all but one."""
    wanted = [f"(?=.*{kind})" for kind in (*_OF_KIND, f"[{re.escape(symbols)}]" if symbols else _ANY_SYMBOL)]
    if count == len(wanted):
        return "".join(wanted) + ".*"
    return "(?:" + "|".join("".join(wanted[:left] + wanted[left + 1 :]) for left in range(len(wanted))) + ").*"


def _without_parts(name: str) -> str:
    """No three letters or digits in a row of the name, in whatever case."""
    words = re.findall(f"[{string.ascii_letters}{string.digits}]+", name)
    parts = sorted({
        word[at : at + _PART_OF_NAME].lower() for word in words for at in range(len(word) - _PART_OF_NAME + 1)
    })  # fmt: skip
    if not parts:
        return ".*"
    either_case = ("".join(f"[{sign}{sign.upper()}]" if sign.isalpha() else sign for sign in part) for part in parts)
    return f"(?!.*(?:{'|'.join(either_case)})).*"
