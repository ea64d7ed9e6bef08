"""`${NAME}` and `${NAME:-default}` inside a text. An empty variable counts as not set; `$$` is a literal `$`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_PATTERN = re.compile(
    r"""\$(?: (?P<literal>\$)
            | \{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>[^{}$]*))?\}
            | (?P<malformed>\{) )""",
    re.VERBOSE,
)
# Line breaks and tabs may be in a file; anything else below a space, and half a surrogate pair, may not.
_UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Use(Struct, frozen=True):
    """One variable in a text; `index` is the position of its `$`."""

    name: str
    default: str | None
    index: int


class Filled(Struct, frozen=True):
    """A text after substitution.

    `missing` and `unusable` hold the uses without a usable value, `malformed` the indexes of a `${` that is none.
    `text` is meaningful only when the three are empty.
    """

    text: str
    uses: tuple[Use, ...]
    missing: tuple[Use, ...] = ()
    unusable: tuple[Use, ...] = ()
    malformed: tuple[int, ...] = ()

    @property
    def is_missing_alone(self) -> bool:
        """True when the text is one missing variable and nothing else."""
        return bool(self.missing) and self.text == ""


def fill(text: str, env: Mapping[str, str]) -> Filled:
    uses: list[Use] = []
    missing: list[Use] = []
    unusable: list[Use] = []
    malformed: list[int] = []
    parts: list[str] = []
    end = 0
    for match in _PATTERN.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match["literal"]:
            parts.append("$")
            continue
        if match["malformed"]:
            malformed.append(match.start())
            parts.append("${")
            continue
        use = Use(match["name"], match["default"] if match["has_default"] else None, match.start())
        uses.append(use)
        value = env.get(use.name) or use.default
        if value is None:
            missing.append(use)
        elif _UNUSABLE.search(value):
            unusable.append(use)
        else:
            parts.append(value)
    parts.append(text[end:])
    filled = "".join(parts)
    if len(uses) == 1 and missing and not filled.strip():
        filled = ""  # a block text ends with a line break
    return Filled(filled, tuple(uses), tuple(missing), tuple(unusable), tuple(malformed))


def is_one_variable(text: str) -> bool:
    """Return True when the text is one variable, with or without a default, and nothing else."""
    match = _PATTERN.fullmatch(text.strip())
    return match is not None and match["name"] is not None


def one_variable(text: str) -> str | None:
    """Return how messages name the variable that the whole text is; None for any other text."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None or match["name"] is None:
        return None
    return f"the variable {match['name']}{', or its default,' if match['has_default'] else ''}"


def has_variable(text: str) -> bool:
    """Return True when substitution would change or refuse the text."""
    return "$" in text and _PATTERN.search(text) is not None
