"""The CycleCloud CLI on the server: found wherever it is, else installed from what the image carries."""

import os
import platform
import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath
from typing import Iterator, List, Optional, Sequence

from .core import Context, StepError
from .programs import Result, run

PLACES = (
    "usr/local/bin",
    "usr/local/cyclecloud-cli/bin",
    "usr/local/cyclecloud-cli/embedded/bin",
    "root/bin",
    "root/.cycle/cli/bin",
)
"""Folders of the CLI besides the PATH, below the root.

Source: Azure/cyclecloud-marketplace-image scripts/install_cli.py; the image's own CLI is in `embedded/bin`.
"""

PUBLIC = "usr/local/bin/cyclecloud"
"""Where every user finds a program of this server."""

INSTALLER_OPTIONS = (("--system", "-y"), ("-y",))
"""Tried in this order. Without `-y` an installer may ask; whether that of the tar.gz knows `--system` is not published.

Source: Azure/cyclecloud-marketplace-image scripts/setup_cyclecloud.sh (zip: --system, tar.gz: -y)
"""


def cyclecloud(
    context: Context,
    arguments: Sequence[str],
    limit: float = 120,
    folder: Optional[Path] = None,
    terminal: bool = False,
    shows_secret: bool = False,
) -> Result:
    """Run the CLI with the login of this boot; the caller checks its exit status."""
    program = context.cyclecloud or _find(context)
    if program is None:
        raise StepError("the CycleCloud CLI is not installed")
    argv = [str(program), *arguments]
    return run(context, argv, limit, folder=folder, terminal=terminal, shows_secret=shows_secret)


def must(result: Result) -> Result:
    """The result of a successful CLI call; otherwise StepError with what it printed."""
    if result.status != 0:
        words = " ".join(result.argv[1:3])
        raise StepError("`cyclecloud {}` failed with {}: {}".format(words, result.status, result.said))
    return result


# ---------------------------------------------------------------- found


def _candidates(context: Context) -> Iterator[Path]:
    found = shutil.which("cyclecloud", path=context.environment.get("PATH"))
    if found:
        yield Path(found)
    for place in PLACES:
        path = context.paths.root / place / "cyclecloud"
        if os.access(str(path), os.X_OK):
            yield path


def _find(context: Context) -> Optional[Path]:
    """The first CLI that starts; one that does not is no reason to give up."""
    for path in _candidates(context):
        try:
            result = run(context, [str(path), "--version"], 120)
        except StepError:
            continue
        if result.status == 0:
            context.cyclecloud = path
            version = result.output.strip().splitlines()
            context.shown["cli"] = {"program": str(path), "version": version[-1] if version else ""}
            return path
    return None


def has_cli(context: Context) -> bool:
    """The CLI is installed and starts; the administrator can use it too."""
    program = _find(context)
    if program is None:
        return False
    _open_to_all(context, program)
    context.shown["cli"]["login"] = login_command(context, program)
    return True


def _is_reachable(context: Context, path: Path) -> bool:
    """Whether every user may run this file."""
    root = context.paths.root
    steps = [path] + [parent for parent in path.parents if root in parent.parents]
    return all(step.stat().st_mode & stat.S_IXOTH for step in steps)


def _open_to_all(context: Context, program: Path) -> None:
    """Put the CLI on everybody's PATH and let everybody run its azcopy.

    On the marketplace image azcopy is executable for root only, so that `cyclecloud project upload` fails for everyone
    else. Source: gevaertw/CycleCloudDemo Doc/custom_cluster.md
    """
    real = Path(os.path.realpath(str(program)))
    if not _is_reachable(context, real):
        return
    azcopy = real.parent / "azcopy"
    if azcopy.is_file() and not azcopy.stat().st_mode & stat.S_IXOTH:
        azcopy.chmod(0o755)
    link = context.paths.root / PUBLIC
    if not os.path.lexists(str(link)):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(str(real))


def login_command(context: Context, program: Path) -> str:
    """The line with which the administrator logs his own CLI in: it asks for the password, and for nothing else."""
    public = context.paths.root / PUBLIC
    shown = public if public.exists() else program
    prefix = "" if _is_reachable(context, Path(os.path.realpath(str(shown)))) else "sudo -H "
    name = "cyclecloud" if shown == public and not prefix else str(shown)
    port = context.config["server"]["httpsPort"]
    url = "https://localhost" if port == 443 else "https://localhost:{}".format(port)
    user = context.config["admin"]["username"]
    return "{}{} initialize --force --url={} --username={} --verify-ssl=false".format(prefix, name, url, user)


# ---------------------------------------------------------------- installed


def install_cli(context: Context) -> None:
    """Install what the image carries: the archive with its own Python first, else the one that needs packages."""
    tools = context.paths.server / "tools"
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    archives = [tools / "cyclecloud-cli-linux-{}.tar.gz".format(machine), tools / "cyclecloud-cli.zip"]
    there = [archive for archive in archives if archive.exists()]
    if not there:
        raise StepError("{} are missing".format(" and ".join(str(archive) for archive in archives)))
    reasons: List[str] = []
    for archive in there:
        try:
            _install_from(context, archive)
        except StepError as error:
            reasons.append(error.message)
        else:
            return
    raise StepError("; ".join(reasons))


def _install_from(context: Context, archive: Path) -> None:
    target = context.paths.work / "cli-installer"
    shutil.rmtree(str(target), ignore_errors=True)
    target.mkdir(parents=True)
    try:
        if archive.name.endswith(".zip"):
            _unzip(archive, target)
        else:
            _untar(context, archive, target)
    except (zipfile.BadZipFile, OSError) as error:
        raise StepError("{} cannot be unpacked: {}".format(archive, error)) from None
    installers = sorted(target.glob("cyclecloud-cli-installer*/install.sh"))
    if not installers:
        raise StepError("{} contains no cyclecloud-cli-installer*/install.sh".format(archive))
    installer = installers[-1]
    said = ""
    for options in INSTALLER_OPTIONS:
        # An archive that was packed on another system has no modes.
        argv = [str(installer)] if os.access(str(installer), os.X_OK) else ["bash", str(installer)]
        # Our own HOME is gone after the boot, and what is installed there with it.
        result = run(context, [*argv, *options], 600, folder=installer.parent, home=context.paths.root_home)
        if result.status == 0 and _find(context):
            return
        said = "{} ended with {}: {}".format(" ".join(["install.sh", *options]), result.status, result.said)
    raise StepError("the CLI's installer in {} failed: {}".format(archive.name, said))


def _untar(context: Context, archive: Path, target: Path) -> None:
    """With the program `tar`, which keeps modes and links whatever the release of Python."""
    result = run(context, ["tar", "-xzf", str(archive), "--no-same-owner", "-C", str(target)], 300)
    if result.status != 0:
        raise StepError("{} cannot be unpacked: {}".format(archive, result.said))


def _unzip(archive: Path, target: Path) -> None:
    """As Info-ZIP does. `zipfile` itself drops modes and links, and then a bundled interpreter cannot be started."""
    with zipfile.ZipFile(str(archive)) as packed:
        for entry in packed.infolist():
            name = PurePosixPath(entry.filename)
            if name.is_absolute() or ".." in name.parts:
                raise StepError("{} contains the path '{}'".format(archive, entry.filename), permanent=True)
            path = target / str(name)
            mode = entry.external_attr >> 16
            if entry.filename.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISLNK(mode):
                path.symlink_to(packed.read(entry).decode("utf-8"))
                continue
            path.write_bytes(packed.read(entry))
            path.chmod(mode & 0o777 | 0o600 if mode else 0o644)
