"""The login of the CycleCloud CLI, for this boot only.

Two ways, never a dialogue: `initialize --batch`, which public logs show to work on CycleCloud 8, and the file that the
CLI itself reads, with the password encoded by the CLI's own code. Five failed logins, each within 60 s of the one
before, lock the only administrator (azure-docs articles/cyclecloud/how-to/user-authentication.md): so there is more
than a minute between two tries, their number is bounded, and the password is never spelt in another way.
"""

import base64
import configparser
import io
import os
from pathlib import Path

from .cli import cyclecloud, must
from .core import Context, StepError, portal_url, shred, write_atomically
from .programs import run
from .web import portal_status

PAUSE_S = 65
"""Seconds between two tries with the same password: failures further apart than 60 s are not counted together."""

TRIES = 4
"""Tries of the CLI, each way twice."""

REFUSALS = 3
"""How often the site may refuse the password: a record that was just imported may take a moment to become effective."""

CONFIG = ".cycle/config.ini"
"""The file that the CLI reads, below its HOME."""

ENCODE = """import sys
from cyclecli.util import encode
key = encode(sys.stdin.read())
print(key.decode("ascii") if isinstance(key, bytes) else key)
"""
"""Source: gingi/cyclecloud-agent-plugin tests/python/test_official_cli.py, which runs the official CLI 8.10 so."""


class Login:
    """The step: one try at a time, and a proof."""

    def __init__(self) -> None:
        self._proven = False
        self._refusals = 0
        self._tries = 0

    def is_proven(self, _: Context) -> bool:
        """In this run a command that needs the login has succeeded; the CLI is not asked again for that."""
        return self._proven

    def log_in(self, context: Context) -> None:
        """One try. Whether the password is right is asked first, without the CLI."""
        password = context.secret("adminPassword")
        _wait(context)
        context.remember("loginTriedAt", context.now())
        self._ask_site(context, password)
        way = (_initialize, _write_file)[self._tries % 2]
        self._tries += 1
        try:
            way(context, password)
            _prove(context)
        except StepError as error:
            _forget(context)
            last = error.permanent or self._tries >= TRIES
            raise StepError(error.message, error.hint, last, error.cut_short) from None
        context.remember("loginTriedAt", None)
        self._proven = True

    def _ask_site(self, context: Context, password: str) -> None:
        """Tell a wrong password from a CLI that does not work, through the documented API."""
        pair = "{}:{}".format(context.config["admin"]["username"], password).encode("utf-8")
        encoded = base64.b64encode(pair).decode("ascii")
        context.log.hide(encoded)
        url = "{}/clusters/{}/status".format(portal_url(context), (context.config["cluster"] or context.config)["name"])
        if portal_status(url, "Basic " + encoded) not in (401, 403):
            return
        self._refusals += 1
        raise StepError(
            "the site does not accept the administrator's password of this deployment",
            hint="If it was changed in the portal, run `sudo cycleforge-bootstrap retry` and enter the current one. "
            "Five failed logins in a row lock the account for five minutes.",
            permanent=self._refusals >= REFUSALS,
        )


def _wait(context: Context) -> None:
    """Keep the distance to the try before, also if that was made by a run that was killed."""
    last = context.state.get("loginTriedAt")
    if last is not None:
        # The clock restarts with the machine; a time in the future was recorded before a reboot.
        passed = max(0.0, context.now() - float(last)) if float(last) <= context.now() else 0.0
        context.sleep(PAUSE_S - passed)


def _initialize(context: Context, password: str) -> None:
    """The way of all public automation. The password is among the arguments: others can read it for these seconds."""
    arguments = [
        "initialize", "--batch", "--force", "--url=" + portal_url(context),
        "--username=" + context.config["admin"]["username"], "--password=" + password, "--verify-ssl=false",
    ]  # fmt: skip
    must(cyclecloud(context, arguments, shows_secret=True))
    config = context.paths.cli_home / CONFIG
    if config.exists():
        config.chmod(0o600)


def _write_file(context: Context, password: str) -> None:
    """The file that the CLI reads, as its own `initialize` writes it.

    Section and keys: gingi/cyclecloud-agent-plugin tests/python/test_official_cli.py, adapter.py
    """
    parser = configparser.RawConfigParser()
    parser["cycleserver"] = {
        "url": portal_url(context),
        "username": context.config["admin"]["username"],
        "key": _encoded(context, password),
        "auth_option": "username_password",
        # The site's first certificate is self-signed, and this connection never leaves the host.
        "verify_certificates": "false",
    }
    text = io.StringIO()
    parser.write(text, space_around_delimiters=False)
    write_atomically(context.paths.cli_home / CONFIG, text.getvalue().encode("utf-8"))


def _encoded(context: Context, password: str) -> str:
    """The password as the CLI stores it, by the Python that is beside the CLI; the password is never an argument."""
    python = Path(os.path.realpath(str(context.cyclecloud))).parent / "python3"
    result = run(context, [str(python), "-I", "-B", "-c", ENCODE], 60, typed=password)
    lines = result.output.splitlines()
    if result.status != 0 or not lines or not lines[0].strip():
        raise StepError("the CLI's own code did not encode the password ({}): {}".format(result.status, result.said))
    key = lines[0].strip()
    context.log.hide(key)
    return key


def _prove(context: Context) -> None:
    """`account show` needs the login, and ends with 0 whether the account exists or not: what it prints is the proof.

    Source: Azure/HPC-Accelerator scenarios/deeplearning, log of CLI 8.2.2; Azure/cyclecloud-slurm-workspace
    cyclecloud_install.py
    """
    name = context.config["account"]
    result = must(cyclecloud(context, ["account", "show", name]))
    said = result.output + result.errors
    if "Credentials: {}".format(name) not in said and "Account not found" not in said:
        raise StepError("`cyclecloud account show` does not show that the CLI is logged in: {}".format(result.said))


def _forget(context: Context) -> None:
    """Remove what a failed try left: the next one must not find it."""
    for path in sorted(context.paths.cli_home.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            shred(path)
