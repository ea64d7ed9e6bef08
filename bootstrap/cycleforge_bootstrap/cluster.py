"""Steps that make the cluster: template, parameters with the late values, machine types, start."""

import functools
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, List

from .cli import cyclecloud, must
from .core import Context, StepError, read_json, shred, to_json, write_atomically
from .service import cycle_server
from .site import query, quoted

FAILED_POLLS = 3
"""CycleCloud itself no longer retries a node that is `Failed` this many times in a row."""


def _template(context: Context) -> Path:
    path = context.payload / str(context.config["cluster"]["template"])
    if not path.exists():
        raise StepError("the payload has no {}".format(context.config["cluster"]["template"]), permanent=True)
    return path


def template_digest(context: Context) -> str:
    """sha256 of the cluster template."""
    return hashlib.sha256(_template(context).read_bytes()).hexdigest()


def has_template(context: Context) -> bool:
    """We have imported this template before."""
    return bool(context.state.get("template") == template_digest(context))


def import_template(context: Context) -> None:
    """Add it to the portal's catalogue, under a name that no cluster has, for more clusters of the same kind."""
    cluster = context.config["cluster"]
    path = _template(context)
    arguments = ["import_template", cluster["templateName"], "-c", cluster["name"], "-f", str(path), "--force"]
    must(cyclecloud(context, arguments, limit=300))
    context.remember("template", template_digest(context))


def parameters(context: Context) -> Dict[str, Any]:
    """The cluster's parameters with the values that only the deployment knows."""
    cluster = context.config["cluster"]
    values = read_json(context.payload / cluster["parameters"])
    for parameter, source in sorted(cluster["late"].items()):
        kind, _, name = source.partition(":")
        values[parameter] = context.secret(name) if kind == "secret" else context.fact(source)
    return values


def _cluster_digest(context: Context) -> str:
    """sha256 over template, parameters and the facts in them; secrets are left out, so nothing leaks."""
    cluster = context.config["cluster"]
    late = {
        name: context.facts.get(source) for name, source in cluster["late"].items() if not source.startswith("secret:")
    }
    fixed = (context.payload / cluster["parameters"]).read_bytes()
    parts = [template_digest(context), hashlib.sha256(fixed).hexdigest(), json.dumps(late, sort_keys=True)]
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def _exists(context: Context) -> bool:
    name = quoted(context.config["cluster"]["name"])
    return bool(query(context, "SELECT ClusterName FROM Cloud.Cluster WHERE ClusterName=={}".format(name)))


def has_cluster(context: Context) -> bool:
    """The cluster exists and was imported from exactly this template, these parameters and these passwords."""
    same = context.state.get("cluster") == _cluster_digest(context)
    return same and _same_secrets(context) and _exists(context)


def _late_secrets(context: Context) -> str:
    """The secrets among the parameters as one text; empty when they are gone from this server."""
    sources = context.config["cluster"]["late"]
    names = sorted(source.partition(":")[2] for source in sources.values() if source.startswith("secret:"))
    return json.dumps([context.secrets[name] for name in names]) if all(n in context.secrets for n in names) else ""


@functools.lru_cache(maxsize=1)
def _stretched(text: str, salt: bytes) -> str:
    """A fingerprint that changes with the password and reveals nothing about it; slow, so the last one is kept."""
    return hashlib.pbkdf2_hmac("sha256", text.encode("utf-8"), salt, 100000).hex()


def _same_secrets(context: Context) -> bool:
    text, seen = _late_secrets(context), context.state.get("clusterSecrets")
    if not text:
        return True
    return seen is not None and bool(_stretched(text, bytes.fromhex(seen["salt"])) == seen["stretched"])


def _remember_import(context: Context) -> None:
    salt = os.urandom(16)
    stretched = {"salt": salt.hex(), "stretched": _stretched(_late_secrets(context), salt)}
    context.remember("clusterSecrets", stretched)
    context.remember("cluster", _cluster_digest(context))


def import_cluster(context: Context) -> None:
    """Create the cluster, or bring an existing one up to date: the same command does both.

    A changed cluster is replaced with `--force`; running nodes stay.
    Source: azure-docs articles/cyclecloud/cli.md, Azure/cyclecloud-slurm README.md
    """
    cluster = context.config["cluster"]
    path = context.paths.runtime / (cluster["name"] + ".params.json")
    write_atomically(path, to_json(parameters(context)))
    try:
        arguments = [
            "import_cluster", cluster["name"], "-c", cluster["name"], "-f", str(_template(context)), "-p", str(path),
        ]  # fmt: skip
        if _exists(context):
            arguments.append("--force")
        must(cyclecloud(context, arguments, limit=300))
    finally:
        shred(path)
    if not _exists(context):
        raise StepError("`cyclecloud import_cluster` succeeded, but there is no cluster '{}'".format(cluster["name"]))
    _remember_import(context)


# ---------------------------------------------------------------- machine types


def _unknown_machine_types(context: Context) -> List[str]:
    """VM sizes of the cluster that CycleCloud cannot offer yet: no record in this region.

    Source of the query: Azure/cyclecloud-slurm-workspace bicep/install.sh
    """
    cluster = context.config["cluster"]
    text = (
        "SELECT Name, M.Name AS MachineType, CM.Name AS CMName FROM Cloud.Node "
        "OUTER JOIN Azure.MachineType M ON MachineType === M.Name && Region === M.Location "
        "OUTER JOIN Cloud.MachineType CM ON MachineType === CM.Name WHERE ClusterName == {}".format(
            quoted(cluster["name"])
        )
    )
    lacking = {r.get("Name") for r in query(context, text) if r.get("MachineType") is None or r.get("CMName") is None}
    # Only nodes with their own size: abstract ones never get a machine type.
    return ["{} of {}".format(size, node) for node, size in sorted(cluster["machineTypes"].items()) if node in lacking]


def knows_machine_types(context: Context) -> bool:
    """Every VM size of the cluster is known; once found, it is not queried again."""
    if context.state.get("machineTypes") == context.state.get("cluster"):
        return True
    if _unknown_machine_types(context):
        return False
    context.remember("machineTypes", context.state.get("cluster"))
    return True


def refresh_machine_types(context: Context) -> None:
    """Let CycleCloud read the region's VM sizes now instead of at its next refresh."""
    if not context.state.get("machineTypesAsked"):
        cycle_server(context, "run_action", "Run:Application.Timer", "-eq", "Name", "plugin.azure.monitor_reference")
        context.remember("machineTypesAsked", True)
    missing = _unknown_machine_types(context)
    if missing:
        raise StepError("CycleCloud does not offer {} in this region".format(", ".join(missing)))


# ---------------------------------------------------------------- start


def was_started(context: Context) -> bool:
    """We started it once. A cluster that someone has terminated since then stays terminated."""
    return bool(context.state.get("started") == context.config["cluster"]["name"])


def start_cluster(context: Context) -> None:
    """Start the scheduler and the login nodes."""
    must(cyclecloud(context, ["start_cluster", context.config["cluster"]["name"]], limit=300))
    context.remember("started", context.config["cluster"]["name"])


class SchedulerReady:
    """Wait until the scheduler has configured itself; tell a failed node from a slow one."""

    def __init__(self) -> None:
        self._failed = 0

    def is_ready(self, context: Context) -> bool:
        """`Ready`, now or in an earlier query."""
        if context.state.get("schedulerReady"):
            return True
        if self._status(context) not in ("Ready", "Started"):
            return False
        context.remember("schedulerReady", True)
        return True

    def wait(self, context: Context) -> None:
        """Report how far it is."""
        status = self._status(context)
        self._failed = self._failed + 1 if status in ("Failed", "Error") else 0
        raise StepError(
            "the scheduler is '{}'".format(status or "unknown"),
            hint="The portal shows the node's log; on the node: /opt/cycle/jetpack/logs.",
            permanent=self._failed >= FAILED_POLLS,
        )

    def _status(self, context: Context) -> str:
        name = quoted(context.config["cluster"]["name"])
        text = 'SELECT Name, State, Status FROM Cloud.Node WHERE ClusterName=={} && Name=="scheduler"'.format(name)
        node = (query(context, text) or [{}])[0]
        return str(node.get("Status") or node.get("State") or "")
