"""What Azure answers, read without trust: null stands for an empty list, names come in any case, bodies may be odd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .refusals import NotAsked

Item = Mapping[str, Any]
_LONGEST = 300


class OddAnswer(NotAsked):
    """An answer that is not of its documented shape, so that nothing is known from it."""


def item(answer: object, what: str) -> Item:
    """An answer that must be a mapping; `what` names it in words."""
    if not isinstance(answer, Mapping):
        raise OddAnswer(f"the answer about {what} is not a mapping")
    return answer


def described(answer: Item, what: str) -> Item:
    """An answer about a resource, which has properties; one without says nothing of it."""
    if not isinstance(answer.get("properties"), Mapping):
        raise OddAnswer(f"the answer about {what} does not describe it")
    return answer


def items(answer: object, what: str) -> list[Item]:
    """The mappings of an answer that must be a list of them, bare or below `value`; null is an empty one."""
    if isinstance(answer, Mapping):
        if "value" not in answer:
            raise OddAnswer(f"the answer about {what} has no list")
        answer = answer["value"]
    if answer is None:
        return []
    if not isinstance(answer, list) or not all(isinstance(each, Mapping) for each in answer):
        raise OddAnswer(f"the answer about {what} is not a list of mappings")
    return answer


def below(answer: Item, *keys: str) -> Any:
    """What stands below some keys; None where anything on the way is missing or null."""
    found: Any = answer
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def text_below(answer: Item, *keys: str) -> str:
    """A text below some keys; raises OddAnswer where there is none."""
    found = below(answer, *keys)
    if not isinstance(found, str) or not found:
        raise OddAnswer(f"an answer of Azure has no {'.'.join(keys)}")
    return found


def listed_below(answer: Item, *keys: str) -> list[Item]:
    """The mappings of a list below some keys; null and a missing list are empty."""
    found = below(answer, *keys)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def texts_below(answer: Item, *keys: str) -> list[str]:
    """The texts of a list below some keys; null and a missing list are empty."""
    found = below(answer, *keys)
    return [str(each) for each in found if each is not None] if isinstance(found, list) else []


def number(answer: Item, *keys: str, what: str) -> int:
    """A whole number below some keys; Azure writes some as 4.0."""
    found = below(answer, *keys)
    if isinstance(found, bool) or not isinstance(found, int | float) or found != found // 1:
        raise OddAnswer(f"the answer about {what} has no whole number as {keys[-1]}")
    return int(found)


def said(text: object, missing: str = "no reason is given") -> str:
    """What Azure says, on one line, without control characters and not too long."""
    shown = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text or missing)).split())
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def folded(name: object) -> str:
    """A name for comparisons: Azure writes regions, families and ids in several ways (`East US`, `eastus`)."""
    return "".join(str(name or "").split()).casefold()


def same(one: object, other: object) -> bool:
    """Whether two names mean the same to Azure."""
    return folded(one) == folded(other)
