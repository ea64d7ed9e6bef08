"""What a support archive is made of: each source by itself, so that one that is silent costs only its own part."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import to_builtins

from ..azure import az_lines, deployment
from ..azure import refusals as azure
from ..azure.requests import resource_manager
from ..cyclecloud import wire as site
from ..cyclecloud.bundle import Bundle
from ..cyclecloud.cluster import listing
from ..cyclecloud.command_line import NotDone
from ..cyclecloud.logs import HEALTH, MOST_BYTES, PATHS, Role, line, read, role_of
from ..cyclecloud.shell import Runs, Unreachable
from ..errors import CycleForgeError
from ..version import __version__
from .cluster import Place

_LINES = 2000
_NODES = 10
"""Logs of so many nodes are fetched without being asked for."""
_DEPTH = 5
_LIMIT_S = 180.0
_SERVER = "/opt/cycle_server/cycle_server"
_EVENTS = (
    "select _Timestamp,Level,Message,NodeName,InstanceId using cloud.cluster_event_log_datasource "
    'where ClusterName == "{name}" order by _Timestamp desc limit 500'
)
"""Source: gingi/cyclecloud-agent-plugin adapter.py; no documentation has it."""
_HEALTH_BYTES = 16_000_000
_HEALTH = (
    "sudo -n sh -c 'cd FOLDER && find . -type f -size -512k | sort | head -n 1000 | "
    'while IFS= read -r file; do printf "\\036%s\\n" "$file"; cat "$file"; printf "\\n"; done\' | '
    f"head -c {_HEALTH_BYTES}"
)


def bundle_of(place: Place, nodes: Sequence[str] = ()) -> Bundle:
    """Ask everybody; logs of `nodes` as well as of failed ones. What is silent is named in the bundle."""
    bundle = Bundle(f"CycleForge support archive of {place.plan.name}", place.hide())
    _here(place, bundle)
    with _part(bundle, "deployment"):
        _deployment(place, bundle)
    with _part(bundle, "server"):
        place.server.prove()
    if "server" in bundle.missing:
        for name in ("server/versions.txt", "server/logs", "cluster"):
            bundle.miss(name, "the server cannot be reached")
    else:
        _server(place, bundle)
    sick: list[str] = []
    with _part(bundle, "cluster/nodes.json"):
        sick += _cluster(place, bundle)
    with _part(bundle, "scheduler"):
        _run(place.scheduler, bundle, "slurm/version.txt", "sinfo --version")
    if "scheduler" in bundle.missing:
        for name in ("slurm", "scheduler/logs", "health"):
            bundle.miss(name, "the scheduler cannot be reached")
    else:
        _scheduler(place, bundle)
    for node in dict.fromkeys([*nodes, *sick[:_NODES]]):
        with _part(bundle, f"nodes/{node}"):
            _logs(place.node(node), bundle, f"nodes/{node}", "node")
    for node in sick[_NODES:]:
        bundle.miss(f"nodes/{node}", f"only {_NODES} failed nodes are asked; --node {node} asks it")
    return bundle


def lines(place: Place) -> list[str]:
    name = place.name
    return [
        *az_lines.watching(place.plan),
        *place.lines(["cyclecloud", "show_cluster", name], ["cyclecloud", *listing(name)],
                     ["sudo", _SERVER, "execute", "--format", "json", _EVENTS.format(name=name)]),
        *place.lines(["scontrol", "show", "node"], ["scontrol", "show", "config"], ["squeue", "--all"],
                     host="scheduler"),
        *(shlex.join(place.node(host).line(line(role_of(host), _LINES))) for host in ("server", "scheduler")),
    ]  # fmt: skip


@contextmanager
def _part(bundle: Bundle, name: str) -> Iterator[None]:
    """One source, of which a failure is noted."""
    try:
        yield
    except (NotDone, azure.Refused, site.Refused) as error:
        bundle.miss(name, str(error))
    except (Unreachable, azure.NotAsked, site.NotAsked) as error:
        bundle.miss(name, error.reason)
    except CycleForgeError as error:
        bundle.miss(name, error.message)
    except OSError as error:
        bundle.miss(name, error.strerror or "cannot be read")


# ---------------------------------------------------------------- here, and Azure


def _here(place: Place, bundle: Bundle) -> None:
    bundle.add("versions.txt", f"cycleforge {__version__}\nPython {platform.python_version()}\n{platform.platform()}\n")
    folder, name = place.found.folder, place.name
    paths = ("effective.yaml", "manifest.json", "ssh_config", f"cluster/{name}.txt", f"cluster/{name}.params.json")
    files = {f"plan/{path}": folder / path for path in paths}
    files["plan/definition.yaml"] = place.found.definition.folder / place.plan.definition
    for into, path in files.items():
        with _part(bundle, into):
            bundle.add(into, path.read_text(encoding="utf-8", errors="replace"))


def _deployment(place: Place, bundle: Bundle) -> None:
    reader = place.writer
    seen = deployment.look(place.plan, reader)
    if seen is None:
        bundle.miss("deployment", f"Azure has no deployment {place.plan.deployment_name}")
        return
    causes = [str(cause) for cause in seen.causes]
    bundle.add("deployment/record.json", _json({"state": seen.state, "began": seen.began, "content": seen.content,
                                                "causes": causes, "outputs": seen.outputs}))  # fmt: skip
    rows: list[Mapping[str, Any]] = []
    _operations(lambda of: reader.pages(resource_manager.operations(of)), seen.id, rows, _DEPTH)
    bundle.add("deployment/operations.json", _json(rows))


def _operations(
    ask: Callable[[str], Iterable[Mapping[str, Any]]], of: str, rows: list[Mapping[str, Any]], depth: int
) -> None:
    """Those of a deployment and of the deployments in it."""
    for row in ask(of):
        rows.append(row)
        target = (row.get("properties") or {}).get("targetResource") or {}
        if depth and str(target.get("resourceType", "")).casefold() == "microsoft.resources/deployments":
            _operations(ask, str(target.get("id")), rows, depth - 1)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n"


# ---------------------------------------------------------------- server and scheduler


def _run(host: Runs, bundle: Bundle, name: str, command: str) -> None:
    """What a command says; one that fails is named, with what it said all the same."""
    ran = host.run(command, limit_s=_LIMIT_S)
    if ran.out.strip() or ran.status == 0:
        bundle.add(name, ran.out)
    if ran.status != 0:
        raise NotDone(f"`{command}` ended with {ran.status}: {ran.err[-300:]}")


def _logs(host: Runs, bundle: Bundle, folder: str, role: Role, most: int = MOST_BYTES) -> None:
    found = read(host, PATHS[role], _LINES, most)
    for log in found:
        bundle.add(f"{folder}{log.path}", log.text + "\n")
    if not found:
        bundle.miss(folder, f"none of {', '.join(PATHS[role])} is there")


def _commands(host: Runs, bundle: Bundle, commands: Mapping[str, str]) -> None:
    for name, command in commands.items():
        with _part(bundle, name):
            _run(host, bundle, name, command)


def _server(place: Place, bundle: Bundle) -> None:
    commands = {
        "server/versions.txt": "cat /opt/cycle_server/system/version /etc/os-release; cyclecloud --version",
        "server/first-boot.json": "sudo -n cat /var/lib/cycleforge/status.json",
        "cluster/events.json": f"sudo -n {_SERVER} execute --format json '{_EVENTS.format(name=place.name)}'",
    }
    _commands(place.server, bundle, commands)
    with _part(bundle, "server/logs"):
        _logs(place.server, bundle, "server", "server", MOST_BYTES if place.server.is_direct else 3000)


def _cluster(place: Place, bundle: Bundle) -> list[str]:
    """States and nodes; the names of those that have failed."""
    seen = place.look()
    keys = ("name", "array", "status", "target", "message", "instance", "address")
    rows = [{key: getattr(node, key) for key in keys} for node in seen.listed]
    state = {"name": seen.name, "state": seen.state, "target": seen.target, "nodes": rows}
    bundle.add("cluster/nodes.json", _json(state))
    said = place.conditions() if seen.failed else ()
    if said:
        bundle.add("cluster/conditions.json", _json([to_builtins(each) for each in said]))
    return [node.name for node in seen.failed]


def _scheduler(place: Place, bundle: Bundle) -> None:
    commands = {
        "slurm/nodes.txt": "scontrol show node",
        "slurm/config.txt": "scontrol show config",
        "slurm/jobs.txt": "squeue --all --long",
        "slurm/reasons.txt": "sinfo --list-reasons --long",
        "slurm/diagnostics.txt": "sdiag",
    }
    _commands(place.scheduler, bundle, commands)
    with _part(bundle, "scheduler/logs"):
        _logs(place.scheduler, bundle, "scheduler", "scheduler")
    with _part(bundle, "health"):
        _health(place.scheduler, bundle, HEALTH)


def _health(host: Runs, bundle: Bundle, folder: str) -> None:
    ran = host.run(_HEALTH.replace("FOLDER", folder), limit_s=_LIMIT_S)
    if ran.status != 0 or (not ran.out and ran.err.strip()):
        raise NotDone(f"{folder} cannot be read: {ran.err[-300:]}")
    if len(ran.out.encode()) >= _HEALTH_BYTES:
        bundle.miss("health", f"only the first {_HEALTH_BYTES // 1_000_000} MB of {folder} are in it")
    for part in ran.out.split("\036")[1:]:
        name, _, text = part.partition("\n")
        bundle.add(f"health/{name.removeprefix('./')}", text)
