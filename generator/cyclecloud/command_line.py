"""The CycleCloud command line, where it is logged in: on the server. What it is asked, and what it answers.

Source: https://learn.microsoft.com/azure/cyclecloud/cli
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from .shell import Ran, Runs

READ_S = 120.0
CHANGE_S = 360.0
"""What the server is given for a command that changes something; the first boot gives it 300 s."""
_EXIT = re.compile(r"^cycleforge-exit=(\w+)\n?", re.MULTILINE)
_SHOWN = 600
_RECEIVE = """\
umask 077
find /dev/shm -maxdepth 1 -name 'cycleforge-*' -mmin +30 -exec rm -rf {} + 2>/dev/null
folder=$(mktemp -d /dev/shm/cycleforge-XXXXXXXX) || exit
trap 'rm -rf "${folder}"' EXIT
trap 'exit 129' HUP INT TERM
mkfifo "${folder}"/here || exit
$(command -v setsid) sh -c 'read -r _ <"$1"/here; rm -rf "$1"' sh "${folder}" </dev/null >/dev/null 2>&1 &
exec 3>"${folder}"/here
IFS= read -r template && IFS= read -r parameters || exit
printf %s "${template}" | base64 -d >"${folder}"/NAME.txt || exit
printf %s "${parameters}" | base64 -d >"${folder}"/NAME.json || exit
"""
"""Two lines of base64 on the standard input. `printf` and `read` are the shell's own: nothing is an argument.

The files have names, because nothing says that the program takes a descriptor. SIGKILL runs no trap, so a process of
its own session waits for the end of the pipe, which comes when neither this shell nor what it has started is left.
Where that was killed as well, the next import removes what is older than any import lasts.
"""
_PLACES = "/usr/local/bin:/usr/local/cyclecloud-cli/bin:/usr/local/cyclecloud-cli/embedded/bin:/root/bin"
"""Source: Azure/cyclecloud-marketplace-image scripts/install_cli.py"""


class NotDone(Exception):  # noqa: N818 - named by what happened
    """The server did not do it; the text says why, the hint what to do."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


class Said(Struct, frozen=True):
    status: int
    out: str


class CommandLine:
    """`cyclecloud` on a server. `user` is the administrator, whose home has the login; else it is root's."""

    def __init__(self, server: Runs, user: str, login: str) -> None:
        self._server, self._user, self._login = server, user, login

    def read(self, *commands: Sequence[str]) -> list[Said]:
        """Run commands that change nothing, in one go."""
        return self._said(commands, READ_S)

    def change(self, words: Sequence[str]) -> str:
        """Run a command once and return its output; after Unreachable it may have arrived or not."""
        (said,) = self._said([words], CHANGE_S)
        if said.status != 0:
            raise NotDone(f"`{line(words)}` failed on the server with {said.status}: {_short(said.out)}")
        return said.out

    def import_cluster(self, name: str, template: bytes, parameters: bytes) -> None:
        """Create it, or bring it up to date; running nodes stay. The files are on the server only meanwhile, in memory.

        Passwords are among the parameters, so they go through ssh's input and never through Azure's run command.
        """
        files = f'-f "${{folder}}/{name}.txt" -p "${{folder}}/{name}.json"'
        text = _script(self._user, [f"import_cluster {shlex.join([name, '-c', name])} {files} --force"])
        given = b"\n".join(base64.b64encode(each) for each in (template, parameters)) + b"\n"
        ran = self._server.run(_RECEIVE.replace("NAME", shlex.quote(name)) + text, input=given, limit_s=CHANGE_S)
        (said,) = self._checked(ran, 1)
        if said.status != 0:
            raise NotDone(f"`cyclecloud import_cluster {name}` failed with {said.status}: {_short(said.out)}")

    def _said(self, commands: Sequence[Sequence[str]], limit_s: float) -> list[Said]:
        return self._checked(self._server.run(script(self._user, commands), limit_s=limit_s), len(commands))

    def _checked(self, ran: Ran, count: int) -> list[Said]:
        found = _read(ran)
        if len(found) == 1 and found[0].status < 0:
            raise NotDone(*_absent(found[0].out, self._login))
        if len(found) != count:
            raise NotDone(f"the server's answer is not complete: {_short(ran.out + ran.err) or 'it is empty'}")
        return found


def must(host: Runs, command: str, where: str, limit_s: float = READ_S) -> str:
    """Return the output of a command; NotDone where it fails."""
    ran = host.run(command, limit_s=limit_s)
    if ran.status != 0:
        reason = " ".join((ran.err or ran.out).split())[:400]
        raise NotDone(f"`{command}` failed on {where} with {ran.status}: {reason}")
    return ran.out


def line(words: Sequence[str]) -> str:
    return shlex.join(["cyclecloud", *words])


def script(user: str, commands: Sequence[Sequence[str]]) -> str:
    """For a POSIX shell of the administrator, or of root. PYTHONPATH breaks the program.

    Sources: Azure/azurehpc scripts/cyclecli_install.sh (PYTHONPATH); the login is in `~/.cycle/config.ini`.
    """
    return _script(user, [shlex.join(words) for words in commands])


def _script(user: str, commands: Sequence[str]) -> str:
    each = "\n".join(
        f"""    printf '\\n'; ${{prefix}} "${{program}}" {words} 2>&1 </dev/null
    printf '\\ncycleforge-exit=%s\\n' "$?" """.rstrip()
        for words in commands
    )
    return f"""\
PATH="${{PATH}}:{_PLACES}"
unset PYTHONPATH
program=$(command -v cyclecloud)
if [ -z "${{program}}" ]; then printf '\\ncycleforge-exit=absent\\n'; exit 0; fi
for user in {shlex.quote(user)} root; do
  home=$(getent passwd "${{user}}" | cut -d: -f6)
  prefix="sudo -n -H -u ${{user}}"
  if [ "$(id -un)" = "${{user}}" ]; then prefix=""; fi
  if [ -n "${{home}}" ] && ${{prefix}} test -f "${{home}}/.cycle/config.ini"; then
{each}
    exit 0
  fi
done
printf '\\ncycleforge-exit=nobody\\n'
"""


def _read(ran: Ran) -> list[Said]:
    parts = _EXIT.split(ran.out)
    found = []
    for text, status in zip(parts[::2], parts[1::2], strict=False):
        known = status.isdecimal()
        found.append(Said(int(status) if known else -1, text.strip("\n") if known else status))
    return found


def _absent(word: str, login: str) -> tuple[str, str]:
    if word == "absent":
        return "the CycleCloud command line is not installed on the server", "`sudo cycleforge-bootstrap retry` there"
    return "no user is logged in to CycleCloud on the server", f"log in once: {login}"


def _short(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
