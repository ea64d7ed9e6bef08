"""Steps that make the CycleCloud site itself: started, on its ports, with administrator, key and pinned projects."""

import contextlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Dict, List, Sequence
from urllib.parse import urlsplit

from . import service
from .core import Context, StepError, portal_url, shred, to_json, write_atomically
from .service import cycle_server
from .web import Azure, portal_status

OWNER = "cycle_server"


def quoted(value: str) -> str:
    """A string of CycleCloud's query language; names have been checked before, so only quotes matter."""
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))


def query(context: Context, text: str) -> List[Dict[str, Any]]:
    """Records that a query finds."""
    output = cycle_server(context, "execute", "--format", "json", text).strip()
    try:
        records = json.loads(output) if output else []
    except ValueError:
        output = context.log.clean(output)[:200]
        raise StepError("`cycle_server execute` returned something that is not JSON: {}".format(output)) from None
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


# ---------------------------------------------------------------- started


def is_installed(context: Context) -> bool:
    """The image contains CycleCloud."""
    return os.access(str(context.paths.server / "cycle_server"), os.X_OK) and _properties(context).exists()


def wait_for_installation(context: Context) -> None:
    """Only wait: the marketplace image may still be setting up its data disk."""
    raise StepError("{} and its configuration are not there yet".format(context.paths.server / "cycle_server"))


def _wanted_settings(context: Context) -> Dict[str, str]:
    """Properties of the web server. Nodes connect to the cluster port, people to the other two.

    Source: azure-docs articles/cyclecloud/how-to/install-manual.md
    """
    server = context.config["server"]
    wanted = {
        "webServerEnableHttps": "true",
        "webServerPort": str(server["httpPort"]),
        "webServerSslPort": str(server["httpsPort"]),
        "webServerClusterPort": str(server["clusterPort"]),
    }
    if server["javaHeapMb"]:
        wanted["webServerMaxHeapSize"] = "{}M".format(server["javaHeapMb"])
    return wanted


JVM_OPTIONS = "webServerJvmOptions"
PROXY_OPTIONS = ("-Dhttp.proxyHost=", "-Dhttp.proxyPort=", "-Dhttps.proxyHost=", "-Dhttps.proxyPort=",
                 "-Dhttp.nonProxyHosts=")  # fmt: skip
"""Java's own settings; the last one is what CycleCloud's page names for storage.

Sources: https://docs.oracle.com/javase/8/docs/technotes/guides/net/proxies.html,
azure-docs articles/cyclecloud/how-to/running-behind-proxy.md
"""


def _proxy_options(context: Context) -> List[str]:
    """How Java is told the proxy; empty without one. It knows no prefixes, and `*.a` for what others write as `.a`."""
    url = urlsplit(str(context.facts.get("proxyUrl") or ""))
    if not url.hostname:
        return []
    hosts = [name for name in str(context.facts.get("noProxy") or "").split(",") if name and "/" not in name]
    direct = "|".join("*" + name if name.startswith(".") else name for name in hosts)
    host, port = url.hostname, str(url.port or 80)
    values = {"Host=": host, "Port=": port, "Hosts=": '"{}"'.format(direct)}
    return [option + next(value for end, value in values.items() if option.endswith(end)) for option in PROXY_OPTIONS]


def _with_proxy(context: Context, lines: List[str]) -> Dict[str, str]:
    """The options of the web server with the proxy's instead of any others; nothing without a proxy."""
    ours = _proxy_options(context)
    if not ours:
        return {}
    values = [line.split("=", 1)[1] for line in lines if line.split("=", 1)[0].strip() == JVM_OPTIONS and "=" in line]
    others = [word for word in (values[-1] if values else "").split() if not word.startswith(PROXY_OPTIONS)]
    return {JVM_OPTIONS: " ".join(others + ours)}


def _properties(context: Context) -> Path:
    return context.paths.server / "config/cycle_server.properties"


def has_settings(context: Context) -> bool:
    """Ports and heap are as wanted, and the server was restarted since they were written."""
    if context.state.get("restartNeeded"):
        return False
    lines = _properties(context).read_text(encoding="utf-8").splitlines()
    wanted = dict(_wanted_settings(context), **_with_proxy(context, lines))
    return all("{}={}".format(key, value) in lines for key, value in wanted.items())


def write_settings(context: Context) -> None:
    """Write the properties and restart; a kill in between is detected."""
    path = _properties(context)
    lines = path.read_text(encoding="utf-8").splitlines()
    wanted = dict(_wanted_settings(context), **_with_proxy(context, lines))
    # Everything after the first `=` belongs to the value; a key that we set is written once, at the end.
    kept = [line for line in lines if re.split(r"[=:]", line, maxsplit=1)[0].strip() not in wanted]
    text = "\n".join(kept + ["{}={}".format(key, value) for key, value in sorted(wanted.items())]) + "\n"
    context.remember("restartNeeded", True)
    mode = path.stat().st_mode & 0o777
    write_atomically(path, text.encode("utf-8"), mode)
    give_to_server(path)
    service.restart(context)
    context.remember("restartNeeded", False)


def is_answering(context: Context) -> bool:
    """The site returns a page; 401 and redirects count, 5xx does not."""
    try:
        return 0 < portal_status(portal_url(context) + "/ui/metadata") < 500
    except StepError:
        return False


def await_startup(context: Context) -> None:
    """Wait as CycleCloud does itself; if nothing was started, start it.

    On a slow server the command runs into its own limit: then it is asked again, and nothing is started twice.
    Source: Azure/cyclecloud-slurm-workspace bicep/files-to-load/cyclecloud_install.py
    """
    try:
        cycle_server(context, "await_startup", limit=300)
    except StepError as error:
        if "not running" in error.message:
            service.start(context)
        raise
    if not is_answering(context):
        raise StepError("CycleCloud reports that it is up, but {} returns no page".format(portal_url(context)))


# ---------------------------------------------------------------- records


def give_to_server(path: Path) -> None:
    """Make CycleCloud the owner of a file; if that user does not exist (tests), the file is left unchanged."""
    with contextlib.suppress(LookupError, PermissionError):
        shutil.chown(str(path), OWNER, OWNER)


def drop_records(context: Context, name: str, content: bytes) -> None:
    """Hand records to the server: written beside the folder, given to CycleCloud, then moved in as a whole.

    The server renames the file to `<name>.imported`; that copy is removed, since it may contain a password.
    """
    target = context.paths.records / name
    imported = target.with_name(name + ".imported")
    shred(imported)
    beside = context.paths.records.parent / ("." + name)
    write_atomically(beside, content, 0o600)
    give_to_server(beside)
    beside.replace(target)
    waited_until = min(context.now() + 120, context.step_deadline)
    while not imported.exists():
        if context.now() >= waited_until:
            clean_records(context)
            raise StepError("CycleCloud did not import {} within 120 s".format(target))
        context.sleep(2)
    shred(imported)


def clean_records(context: Context) -> None:
    """Remove what an interrupted run left in and beside the import folder: it may contain a password."""
    for path in [*context.paths.records.glob("cycleforge_*"), *context.paths.records.parent.glob(".*cycleforge_*")]:
        # Moved away first, so that the server never reads a file that is being overwritten.
        aside = context.paths.records.parent / ".removed_by_bootstrap"
        with contextlib.suppress(FileNotFoundError):
            path.replace(aside)
        shred(aside)


def _exists(context: Context, kind: str, name: str) -> bool:
    return bool(query(context, "SELECT Name FROM {} WHERE Name=={}".format(kind, quoted(name))))


def has_admin(context: Context) -> bool:
    """The administrator exists and the first-run wizard is off. An existing password is never changed."""
    settings = query(
        context,
        'SELECT Name, Value FROM Application.Setting WHERE Name=="cycleserver.installation.complete"',
    )
    complete = any(record.get("Value") in (True, "true") for record in settings)
    return complete and _exists(context, "AuthenticatedUser", context.config["admin"]["username"])


def create_admin(context: Context) -> None:
    """The records of the first user.

    Source: Azure/cyclecloud-slurm-workspace bicep/files-to-load/cyclecloud_install.py
    """
    user = context.config["admin"]["username"]
    records: Sequence[Dict[str, Any]] = [
        {"AdType": "Application.Setting", "Name": "cycleserver.installation.initial_user", "Value": user},
        {"AdType": "AuthenticatedUser", "Name": user, "RawPassword": context.secret("adminPassword"),
         "Superuser": True},
        {"AdType": "Application.Setting", "Name": "cycleserver.installation.complete", "Value": True},
    ]  # fmt: skip
    drop_records(context, "cycleforge_admin.json", to_json(records))


def has_key(context: Context) -> bool:
    """The administrator's public key is registered, so every node accepts that user."""
    return _exists(context, "Credential", context.config["admin"]["username"] + "/public")


def create_key(context: Context) -> None:
    """The key from the definition, else from the deployment, else from this VM's metadata."""
    key = context.config["admin"]["sshPublicKey"] or context.facts.get("sshPublicKey")
    if not key:
        keys = Azure(context).compute().get("publicKeys") or []
        key = keys[0].get("keyData", "").strip() if keys else ""
    if not key:
        raise StepError("no SSH public key: neither the deployment nor this VM has one", permanent=True)
    name = context.config["admin"]["username"] + "/public"
    record = {"AdType": "Credential", "CredentialType": "PublicKey", "Name": name, "PublicKey": str(key).strip()}
    drop_records(context, "cycleforge_key.json", to_json(record))


def has_slurm_project(context: Context) -> bool:
    """The server knows the pinned release of the scheduler project."""
    version = quoted(context.config["slurmProject"]["version"])
    return bool(query(context, 'SELECT Name FROM Cloud.Project WHERE Name=="slurm" && Version=={}'.format(version)))


def create_slurm_project(context: Context) -> None:
    """Make the server fetch the pinned release, so that `cyclecloud/slurm:*:<version>` resolves."""
    project = context.config["slurmProject"]
    fields = [
        ("AdType", quoted("Cloud.Project")),
        ("Version", quoted(project["version"])),
        ("ProjectType", quoted("scheduler")),
        ("Url", quoted(project["url"])),
        ("AutoUpgrade", "false"),
        ("Name", quoted("slurm")),
    ]
    text = "".join("{} = {}\n".format(key, value) for key, value in fields)
    drop_records(context, "cycleforge_slurm_{}.txt".format(project["version"]), text.encode("utf-8"))
