"""The part of the files that a script sources which it can reach.

ShellCheck reads what a script sources anew for every script, and most of its time goes there. A function that nothing
calls changes nothing that ShellCheck could say of the script, so that it need not be there. Functions are known by
their form: `name() {` at the start of a line up to `}` at the start of a line, or all of it on one line. The directives
right above one go with it, because ShellCheck refuses one that stands before nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# A here-document may have such a line, too.
_LINES = r"(?:[^\n]*(?<!<)<<'?(?P<end>\w+)'?[^\n]*\n(?:[^\n]*\n)*?(?P=end)\n|(?!\})[^\n]*\n)*"
FUNCTION = re.compile(
    r"^(?:# shellcheck [^\n]*\n)*(\w+)\(\) "
    rf"(?:\{{[^\n]*\}}|\([^\n]*\)|\{{\n{_LINES}\}}|\(\n.*?\n\))[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)
_SOURCED = re.compile(r"^\s*(?:\.|source) \S*?([\w-]+\.sh)\"?$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*#.*\n", re.MULTILINE)


def sourced(script: str, files: Mapping[str, str]) -> set[str]:
    """Names of the files that a script sources, directly or not; a name that is no key of `files` raises KeyError."""
    found: set[str] = set()
    texts = [script]
    while texts:
        names = set(_SOURCED.findall(texts.pop())) - found
        found |= names
        texts += [files[name] for name in names]
    return found


def bodies_of(texts: Iterable[str]) -> dict[str, str]:
    """The text of each function by its name; all of it where several have that name."""
    bodies: dict[str, str] = {}
    for text in texts:
        for function in FUNCTION.finditer(text):
            bodies[function[1]] = bodies.get(function[1], "") + function[0]
    return bodies


def reachable(script: str, files: Mapping[str, str]) -> dict[str, str]:
    """What a script sources, by name, without the functions whose names occur nowhere in what it can reach.

    A name counts wherever it stands, also as an argument or in a text, for the name of a function may be handed on.
    """
    libraries = {name: files[name] for name in sourced(script, files)}
    bodies = bodies_of(libraries.values())
    reached: set[str] = set()
    texts = [script, *(FUNCTION.sub("", text) for text in libraries.values())]
    while texts:
        names = (set(re.findall(r"\w+", _COMMENT.sub("", texts.pop()))) & bodies.keys()) - reached
        reached |= names
        texts += [bodies[name] for name in names]
    return {
        name: FUNCTION.sub(lambda function: function[0] if function[1] in reached else "", text)
        for name, text in libraries.items()
    }
