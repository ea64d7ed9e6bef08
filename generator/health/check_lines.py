"""The checks of a result as the nodes lay them out, a line each.

The nodes of a cluster mostly say the same, so a line is understood once. What is not laid
out so is JSON like any other, and left to those who read that.
"""

from __future__ import annotations

import re
from typing import cast, get_args

from .result import LONGEST_LIST, LONGEST_TEXT, LONGEST_WORD, Check, Cure, Relation, Verdict

_BEGIN, _END = ',\n  "checks": [\n    ', "\n  ]\n}\n"
"""What results.sh of slurm_nhc writes before the first and after the last check."""
_BETWEEN = ",\n    "


def _text(longest: int, shortest: int = 0) -> str:
    # No escapes and no control characters: such a text means itself.
    return rf'([^"\\\x00-\x1f]{{{shortest},{longest}}})'


def _one_of(words: tuple[str, ...]) -> str:
    return f"({'|'.join(words)})"


_WORD = _text(LONGEST_WORD)
_LINE = re.compile(
    rf'\{{"check": "{_text(LONGEST_WORD, 1)}", "verdict": "{_one_of(get_args(Verdict))}", "value": "{_WORD}",'
    rf' "relation": "{_one_of(get_args(Relation))}", "limit": "{_WORD}", "unit": "{_WORD}",'
    rf' "detail": "{_text(LONGEST_TEXT)}"(?:, "cure": "{_one_of(get_args(Cure))}")?\}}'
)


class CheckLines:
    """The lines that were met so far; checks that say the same are one object."""

    def __init__(self) -> None:
        self._known: dict[str, Check] = {}

    def split(self, text: str) -> tuple[str, list[Check]] | None:
        """The JSON of a result without its checks, and the checks; None where it is laid out in another way."""
        head, begin, rest = text.partition(_BEGIN)
        if not begin or not rest.endswith(_END):
            return None
        lines = rest.removesuffix(_END).split(_BETWEEN)
        checks = [self._known.get(line) or self._check(line) for line in lines]
        if len(checks) > LONGEST_LIST or not all(checks):
            return None
        return head + "}", cast("list[Check]", checks)

    def _check(self, line: str) -> Check | None:
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        # By place: the fields stand in the order of the nodes.
        check = self._known[line] = Check(*match.groups(default=""))  # type: ignore[arg-type] # the pattern says which
        return check
