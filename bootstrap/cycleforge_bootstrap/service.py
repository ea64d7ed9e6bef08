"""CycleCloud as a service of the system: started so that it outlives this program, and the proof of that.

`cycle_server start` leaves a daemon behind, and a daemon stays in the control group of whoever started it, whatever it
does to detach itself (systemd.kill(5)). So it is started by its own unit, or in a scope of its own.
"""

import stat
from pathlib import Path
from typing import Dict, List, Set
from urllib.parse import urlsplit

from .core import Context, StepError, portal_url
from .programs import run

SERVER_UNIT = "cycle_server.service"
WEB_UNIT = "cycle_server_webserver.service"
"""Both as named in azure-docs articles/cyclecloud (how-to/upgrade-and-migrate.md, release-notes/8-7-1.md). Neither is
there until `autostart.sh on` has run, and what the second one does when the first is restarted is not published."""

OUR_UNIT = "cycleforge-bootstrap.service"
LISTENS = "0A"
"""State of a listening socket in /proc/net/tcp."""


def cycle_server(context: Context, *arguments: str, **options: float) -> str:
    """Output of `/opt/cycle_server/cycle_server …`; StepError if it fails."""
    # Not our own HOME: what CycleCloud starts outlives it.
    result = run(context, [_program(context), *arguments], options.get("limit", 120), home=context.paths.root_home)
    if result.status != 0:
        raise StepError("`cycle_server {}` failed with {}: {}".format(arguments[0], result.status, result.said))
    return result.output


def portal_port(context: Context) -> int:
    """The port of that address."""
    return urlsplit(portal_url(context)).port or 443


def _program(context: Context) -> str:
    return str(context.paths.server / "cycle_server")


# ---------------------------------------------------------------- start, restart


def _systemctl(context: Context, *arguments: str) -> bool:
    return run(context, ["systemctl", *arguments], 300).status == 0


def _invocation(context: Context, unit: str) -> str:
    """Changes with every start of a unit; empty while it does not run."""
    return run(context, ["systemctl", "show", "--property=InvocationID", "--value", unit], 60).output.strip()


def start(context: Context) -> None:
    """Start CycleCloud: by its unit, else in a scope of its own, else as it is."""
    if _systemctl(context, "cat", SERVER_UNIT):
        _must_systemctl(context, "start")
        return
    scope = ["systemd-run", "--quiet", "--scope", "--collect"]
    if run(context, [*scope, "true"], 60).status != 0:
        context.log.write("systemd-run does not work here; CycleCloud is started without a scope of its own")
        scope = []
    result = run(context, [*scope, _program(context), "start"], 300, home=context.paths.root_home)
    if result.status != 0:
        raise StepError("`cycle_server start` failed with {}: {}".format(result.status, result.said))


def restart(context: Context) -> None:
    """Restart CycleCloud, so that it reads its properties again and belongs to no unit of ours."""
    if not _systemctl(context, "cat", SERVER_UNIT):
        _stop(context)
        start(context)
        return
    if not _systemctl(context, "is-active", "--quiet", SERVER_UNIT):
        # It may run all the same, started by hand.
        _stop(context)
    before = _invocation(context, WEB_UNIT)
    _must_systemctl(context, "restart")
    if before and _invocation(context, WEB_UNIT) == before:
        # The web server, which reads the properties, is a unit that the restart has not reached.
        _systemctl(context, "restart", WEB_UNIT)


def _stop(context: Context) -> None:
    try:
        cycle_server(context, "stop", limit=300)
    except StepError as error:
        # There may be nothing to stop; whether the restart worked is asked afterwards anyway.
        context.log.write(error.message)


def _must_systemctl(context: Context, verb: str) -> None:
    result = run(context, ["systemctl", verb, SERVER_UNIT], 300)
    if result.status != 0:
        raise StepError("`systemctl {} {}` failed with {}: {}".format(verb, SERVER_UNIT, result.status, result.said))


# ---------------------------------------------------------------- whose process is it


def _listening_inodes(port: int) -> Set[int]:
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        if path.exists():
            for line in path.read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(int(fields[9]))
    return found


def _listeners(port: int) -> List[int]:
    """Processes that hold the listening socket of this port."""
    wanted = _listening_inodes(port)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and wanted & _sockets(entry):
            found.append(int(entry.name))
    return sorted(found)


def _sockets(process: Path) -> Set[int]:
    """Inodes of the sockets that a process has open."""
    found = set()
    try:
        for descriptor in (process / "fd").iterdir():
            status = descriptor.stat()
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    except OSError:  # the process or the descriptor is gone, or belongs to someone else
        pass
    return found


def _groups(pid: int) -> str:
    """The control groups of a process; StepError where they cannot be read, since then nobody knows whose it is."""
    try:
        return Path("/proc/{}/cgroup".format(pid)).read_text(encoding="utf-8")
    except OSError as error:
        raise StepError(
            "the control group of process {}, which serves the site, is unknown: {}".format(pid, error)
        ) from error


def _ours(context: Context) -> Dict[int, str]:
    """Listeners on the site's port that are in the control group of our own unit; StepError if nothing listens."""
    port = portal_port(context)
    pids = _listeners(port)
    if not pids:
        raise StepError("no process listens on port {}".format(port))
    groups = {pid: _groups(pid) for pid in pids}
    return {pid: group for pid, group in groups.items() if OUR_UNIT in group}


class Independence:
    """The step: the site's web server is in no control group of ours, so it does not end with this program."""

    def __init__(self) -> None:
        self._restarted = False

    def is_reached(self, context: Context) -> bool:
        """Whoever listens on the site's port is someone else's."""
        return not _ours(context)

    def restart(self, context: Context) -> None:
        """Start the site again in the right place, once: what does not help then does not help later."""
        pids = ", ".join(str(pid) for pid in sorted(_ours(context)))
        if self._restarted:
            raise StepError(
                "the site's web server (process {}) belongs to {}".format(pids, OUR_UNIT),
                hint="Give it a scope: `sudo systemd-run --scope --collect /opt/cycle_server/cycle_server restart`.",
                permanent=True,
            )
        self._restarted = True
        restart(context)
