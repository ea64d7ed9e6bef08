"""What ShellCheck says of scripts that source others, at a third of its price.

Half of its time goes into following every value and every way through a script and all that it sources. So of a script
that is short beside its sources it is asked twice. Once without that, with what the script can reach of its sources:
names that nobody sets, reads or defines, arrays that are taken for texts. Once with it, and the functions of the
sources do no more than call the script's own and return, or never do. Of any other script it is asked once, with what
that can reach. Either way it may say more than of the whole; a script of which it says anything is looked at as a
whole, and only that counts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.bed.scripts.reachable import FUNCTION, bodies_of, reachable

SHELLCHECK = Path(sys.executable).parent / "shellcheck"
WITHOUT_FLOW = "--extended-analysis=false"
WITHOUT_NAMES = "--exclude=SC2034,SC2119,SC2120,SC2153,SC2154"
"""What nobody reads, sets or hands on needs no flow, and the outline of a function has none of it."""
_WITH_ALL = "--extended-analysis=true"
_ONCE = 0.45
"""Twice is cheaper where less than this part of the lines is left when the functions of the sources are outlined."""
_COMMENT = re.compile(r"^\s*#(?! shellcheck).*\n", re.MULTILINE)


class Script(NamedTuple):
    """A script and all that it may source; paths are relative to the folder from which the script finds its sources."""

    path: str
    text: str
    sources: Mapping[str, str]


def shellcheck(*scripts: Path | str, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What it says of these, with what they source followed and without our .shellcheckrc.

    It takes a source that is found from its working folder first, so it works where there is none.
    """
    command = [str(SHELLCHECK), "--norc", "--external-sources", "--format=json1", *options, *map(str, scripts)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=SHELLCHECK.parent)
    assert result.stderr == ""
    found: list[dict[str, Any]] = json.loads(result.stdout)["comments"]
    assert (result.returncode == 0) == (found == [])
    return found


def findings(scripts: Iterable[Script], folder: Path, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What it says of the scripts as they are; the folder is empty and takes what is checked."""
    once: list[tuple[Script, dict[str, str]]] = []
    parts, outlines = once.copy(), once.copy()
    for script in scripts:
        part = reachable(script.text, _by_name(script))
        outline = outlined(script.text, part)
        if _lines(script, outline) < _ONCE * _lines(script, part):
            parts.append((script, part))
            outlines.append((script, outline))
        else:
            once.append((script, part))
    suspects: list[Script] = []
    for written, option in ((once, _WITH_ALL), (parts, WITHOUT_FLOW), (outlines, WITHOUT_NAMES)):
        places = {
            str(_write(folder / option / str(place), script, sources)): script
            for place, (script, sources) in enumerate(written)
        }
        found = shellcheck(*places, options=[*options, option]) if places else []
        suspects += [places[comment["file"]] for comment in found]
    whole = {script.path: _write(folder / "whole" / script.path, script, _by_name(script)) for script in suspects}
    return shellcheck(*whole.values(), options=options) if whole else []


def _lines(script: Script, sources: Mapping[str, str]) -> int:
    return script.text.count("\n") + sum(text.count("\n") for text in sources.values())


def _by_name(script: Script) -> dict[str, str]:
    found = {Path(path).name: text for path, text in script.sources.items()}
    assert len(found) == len(script.sources), "sources are known by the names of their files"
    return found


def _write(folder: Path, script: Script, sources: Mapping[str, str]) -> Path:
    texts = {path: sources[Path(path).name] for path in script.sources if Path(path).name in sources}
    for path, text in {**texts, script.path: script.text}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder / script.path


def outlined(script: str, sources: Mapping[str, str]) -> dict[str, str]:
    """The sources with the functions that are called from outside any function, or in the script. They only call those
    of the script that theirs lead to, and end the shell if theirs do at their end."""
    bodies, own = bodies_of(sources.values()), bodies_of([script])
    words = {name: set(re.findall(r"\w+", body)) for name, body in (bodies | own).items()}
    ending = set(_ending(bodies))
    outside = [script, *(FUNCTION.sub("", text) for text in sources.values())]
    called = set(re.findall(r"\w+", "\n".join(outside)))

    def outline(function: re.Match[str]) -> str:
        if function[1] not in called:
            return ""
        calls = [f"    if read -r REPLY; then {name}; fi" for name in sorted(_led_to(function[1], words) & own.keys())]
        return "\n".join([f"{function[1]}() {{", *calls, "    exit 1" if function[1] in ending else "    true", "}\n"])

    return {name: _COMMENT.sub("", FUNCTION.sub(outline, text)) for name, text in sources.items()}


def _led_to(name: str, words: Mapping[str, set[str]]) -> set[str]:
    """The functions that one mentions, and those that they mention."""
    found, waiting = set[str](), [name]
    while waiting:
        more = (words[waiting.pop()] & words.keys()) - found - {name}
        found |= more
        waiting += more
    return found


def _ending(bodies: Mapping[str, str]) -> Iterator[str]:
    """Names of the functions without `return` whose last command is `exit`, or a function of which that is so."""
    ends = {"exit"}
    for _ in bodies:
        more = {name for name, body in bodies.items() if _last_word(body) in ends and "return" not in body} - ends
        yield from more
        if not more:
            return
        ends |= more


def _last_word(body: str) -> str:
    """The first word of a function's last command, empty if that is within another one."""
    before, _, end = body.rstrip().rpartition("}")
    if end or (not before.strip().endswith(";") and "\n" not in before):
        return ""
    last = before.rstrip("; \n").rpartition("\n")[2]
    if "\n" not in before:
        last = last.partition("{ ")[2].rpartition("; ")[2]
    return "" if last.startswith(" " * 5) else last.strip().split(" ", 1)[0]
