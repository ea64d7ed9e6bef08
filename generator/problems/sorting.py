"""The order in which problems are reported, without values of the environment: they may be secret."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from .problem import LEVELS, Problem, Source, locate

_SHORTEST = 4
_LONGEST = 8
"""Characters of a value by which it is recognised in a sentence: at least, and at most."""
_WORD = re.compile(r"\w+")


class Concealment:
    """Puts `${NAME}` where the sentences of a problem show what that variable holds.

    Rules quote values; where the value of the problem itself comes from the environment, parts of values go as well,
    since a hint may show it in another form. Values of less than four letters stay: they are in too many other words.
    The work for one problem depends on its own words, not on how many variables there are.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {name: value for name, value in environment.items() if len(value) >= _SHORTEST}
        words = {name: _WORD.findall(value) for name, value in values.items()}
        frequency = Counter(word for found in words.values() for word in set(found))
        self._by_word: dict[str, list[str]] = {}
        """The rarest word of each value → the variables; the empty word → those whose values have none."""
        self._order = {name: number for number, name in enumerate(values)}
        self._whole = {name: re.escape(value) for name, value in values.items()}
        for name, found in words.items():
            rarest = min(found, key=lambda word: (frequency[word], -len(word), word), default="")
            self._by_word.setdefault(rarest, []).append(name)
        self._stems = {_lower(word)[:_LONGEST] for found in words.values() for word in found if len(word) >= _SHORTEST}
        self._heads = {stem[:_SHORTEST] for stem in self._stems}

    def of(self, problem: Problem, *, is_from_environment: bool) -> Problem:
        """The problem without values of the environment in its message and hint."""
        if not self._order:
            return problem
        message, hint = self._text(problem.message), self._text(problem.hint or "")
        if is_from_environment:
            message, hint = self._without_parts(message), self._without_parts(hint)
        if (message, hint) == (problem.message, problem.hint or ""):
            return problem
        return replace(problem, message=message, hint=hint or None)

    def _text(self, text: str) -> str:
        """Replace whole values. A value can only occur where each of its words does."""
        words = {"", *_WORD.findall(text)}
        names = [name for word in words for name in self._by_word.get(word, ())]
        for name in sorted(names, key=self._order.__getitem__):
            text = re.sub(rf"(?<![\w-]){self._whole[name]}(?![\w-])", f"${{{name}}}", text)
        return text

    def _without_parts(self, text: str) -> str:
        """Replace by `…` whatever begins like a word of a value, in any case and anywhere in a word."""
        lowered = _lower(text)
        parts, at, kept = [], 0, 0
        while at < len(text):
            if (
                lowered[at : at + _SHORTEST] not in self._heads
                or text[max(at - 2, 0) : at] == "${"
                or not any(lowered[at : at + size] in self._stems for size in range(_SHORTEST, _LONGEST + 1))
            ):
                at += 1
                continue
            parts += [text[kept:at], "…"]
            match = _WORD.match(text, at)
            at = kept = match.end() if match else at + 1
        return "".join((*parts, text[kept:]))


def _lower(text: str) -> str:
    """Convert to lower case without changing the number of characters."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def sort_problems(problems: Iterable[Problem], source: Source) -> tuple[Problem, ...]:
    """Sort by position, then level, then rule id, and drop duplicates.

    Values of the environment are taken out of the sentences on the way.
    """
    concealment = Concealment(source.environment)
    shown = (concealment.of(each, is_from_environment=source.is_from_environment(each.path)) for each in problems)
    return tuple(
        sorted(
            dict.fromkeys(shown),
            key=lambda each: (locate(each, source), LEVELS.index(each.level), each.rule_id, each.message),
        )
    )
