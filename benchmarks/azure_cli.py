"""Microsoft's command line for Azure, as a yardstick: the pinned release, in an environment of its own."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys

from generator.files import assets

VERSION = "2.91.0"
FOLDER = assets.folder("projects").parent / f".cache/azure-cli-{VERSION}"


class NotInstalled(RuntimeError):  # noqa: N818 - named by what happened
    """It is not there and could not be fetched."""


def az() -> list[str]:
    """How to call it; the first call on a machine installs it, about a minute. Raises NotInstalled.

    The folder appears whole or not at all. Called as a module, because the program that pip writes names the folder
    in which it was made.
    """
    FOLDER.parent.mkdir(exist_ok=True)
    with FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not FOLDER.is_dir():
            _install()
    return [str(FOLDER / "bin/python"), "-m", "azure.cli"]


def _install() -> None:
    print(f"      azure-cli {VERSION} is installed for the comparison …", flush=True)
    beside = FOLDER.with_name(f"{FOLDER.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    pip = [str(beside / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(beside)], [*pip, f"azure-cli=={VERSION}"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise NotInstalled(f"azure-cli {VERSION} could not be installed: {words[-1] if words else 'no reason'}")
    beside.rename(FOLDER)
