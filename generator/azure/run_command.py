"""A command on the CycleCloud server where no network path leads to it: through Azure's run command.

Azure passes on the last 4,096 bytes of what a script prints, and no exit status. So the answer is packed, and ends with
marks: one whose beginning was cut off is told from a whole one.
Source: https://learn.microsoft.com/azure/virtual-machines/linux/run-command
"""

from __future__ import annotations

import base64
import gzip
import re
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from .refusals import NotAsked
from .requests.compute import RUN_COMMAND
from .writer import Writer

_ANSWER = re.compile(r"cycleforge-out=(\S*)\ncycleforge-err=(\S*)\ncycleforge-status=(\d+)\s*\Z")
_OUT, _ERR = "[stdout]\n", "\n[stderr]"
_ERRORS = 1000
"""Bytes of the standard error that are passed on: the reason is at its end."""
_MOST = 1 << 24
"""Bytes that an answer may unpack to."""


def run(writer: Writer, machine: str, command: str, given: bytes, limit_s: float) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of text for a shell, run by root.

    Raises Refused and NotAsked. The script stays readable on the machine, so neither may hold a secret.
    """
    body = {"commandId": "RunShellScript", "script": _script(command, given)}
    answer = writer.do(RUN_COMMAND(id=machine, body=body), limit_s)
    said = printed(answer)
    found = _ANSWER.search(said)
    if found is None:
        raise NotAsked(
            "the answer is longer than the 4,096 bytes that Azure's run command passes on, or was lost"
            if said.rstrip().rpartition("\n")[2].startswith("cycleforge-status=")
            else "Azure's run command returned only part of the answer",
            "open a network path to the server (README.md, Connect), and run the same command again",
        )
    return int(found[3]), _unpacked(found[1]), _unpacked(found[2])


def printed(answer: Mapping[str, Any]) -> str:
    """The standard output in the answer of a run command, at most its last 4,096 bytes."""
    value = answer.get("value")
    if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
        raise NotAsked("Azure's run command returned no output")
    message = str(value[0].get("message", ""))
    return message.partition(_OUT)[2].partition(_ERR)[0].strip("\n")


def _script(command: str, given: bytes) -> list[str]:
    packed, text = (base64.b64encode(each).decode("ascii") for each in (given, command.encode()))
    return [
        "umask 077",
        "folder=$(mktemp -d) || exit",
        "trap 'rm -rf \"${folder}\"' EXIT",
        f"printf %s '{text}' | base64 -d >\"${{folder}}/command\"",
        f"printf %s '{packed}' | base64 -d >\"${{folder}}/in\"",
        'sh "${folder}/command" <"${folder}/in" >"${folder}/out" 2>"${folder}/err"',
        "status=$?",
        'printf \'cycleforge-out=%s\\n\' "$(gzip -9 -n -c <"${folder}/out" | base64 -w 0)"',
        f'printf \'cycleforge-err=%s\\n\' "$(tail -c {_ERRORS} "${{folder}}/err" | gzip -9 -n -c | base64 -w 0)"',
        "printf 'cycleforge-status=%s\\n' \"${status}\"",
    ]


def _unpacked(text: str) -> str:
    try:
        with gzip.GzipFile(fileobj=BytesIO(base64.b64decode(text, validate=True))) as file:
            return file.read(_MOST).decode(errors="replace")
    except (ValueError, EOFError, OSError, zlib.error):
        raise NotAsked("the answer of Azure's run command is damaged") from None
