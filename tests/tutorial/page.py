"""A page whose blocks of `console` hold commands and what they print.

A line that begins with `$ ` is typed, after all lines before it, by the same user in the same folder; what follows up
to the next one is what was printed. `told` types them all again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def told(page: str, typed: Callable[[str], str]) -> str:
    def block(found: re.Match[str]) -> str:
        lines = []
        for command in re.findall(r"^\$ (.*)$", found[1], re.MULTILINE):
            printed = typed(command).rstrip("\n")
            lines += [f"$ {command}", *([printed] if printed else [])]
        return "```console\n" + "\n".join(lines) + "\n```"

    return _BLOCK.sub(block, page)
