"""Steps around the CycleCloud CLI: installed, logged in, the Azure account and its locker."""

import base64
import configparser
import io
import shutil
import zipfile
from pathlib import Path
from typing import List, Optional, Sequence

from .core import Context, StepError, shred, to_json, write_atomically
from .programs import Result, run
from .site import cycle_server, portal_url, query, quoted
from .web import Azure, portal_status

ENVIRONMENTS = {"AzureCloud": "public", "AzureUSGovernment": "usgov", "AzureChinaCloud": "china"}
"""Azure's name of a cloud → CycleCloud's."""

RETRY_LOCKER_S = 120
"""Seconds between two requests for the locker; more frequent requests prevent it from ever being created.

Source: Azure/cyclecloud-slurm-workspace bicep/install.sh
"""


def cyclecloud(
    context: Context,
    arguments: Sequence[str],
    limit: float = 120,
    folder: Optional[Path] = None,
    terminal: bool = False,
) -> Result:
    """Run the CLI with our own configuration file; the caller checks its exit status."""
    context.paths.cli_home.mkdir(parents=True, exist_ok=True, mode=0o700)
    argv = [str(context.paths.cyclecloud), *arguments, "--config={}".format(context.paths.cli_config)]
    return run(context, argv, limit, folder=folder, terminal=terminal)


def must(result: Result) -> Result:
    """The result of a successful CLI call; otherwise StepError with what it printed."""
    if result.status != 0:
        words = " ".join(result.argv[1:3])
        raise StepError("`cyclecloud {}` failed with {}: {}".format(words, result.status, result.said))
    return result


# ---------------------------------------------------------------- installed


def has_cli(context: Context) -> bool:
    """The CLI is installed and starts."""
    if not context.paths.cyclecloud.exists():
        return False
    return run(context, [str(context.paths.cyclecloud), "--version"], 120).status == 0


def install_cli(context: Context) -> None:
    """Unpack the archive that the server image provides and run its installer for all users."""
    archive = context.paths.server / "tools/cyclecloud-cli.zip"
    if not archive.exists():
        raise StepError("{} is missing".format(archive))
    target = context.paths.work / "cli-installer"
    shutil.rmtree(str(target), ignore_errors=True)
    try:
        with zipfile.ZipFile(str(archive)) as packed:
            packed.extractall(str(target))
    except (zipfile.BadZipFile, OSError) as error:
        raise StepError("{} cannot be unpacked: {}".format(archive, error)) from None
    installers = sorted(target.glob("cyclecloud-cli-installer*/install.sh"))
    if not installers:
        raise StepError("{} contains no cyclecloud-cli-installer*/install.sh".format(archive), permanent=True)
    # zipfile drops the executable bits, so bash runs the file.
    result = run(context, ["bash", str(installers[-1]), "--system"], 600, folder=installers[-1].parent)
    if result.status != 0:
        raise StepError("the CLI's installer failed with {}: {}".format(result.status, result.said))


# ---------------------------------------------------------------- logged in


def _write_config(context: Context, password: str) -> None:
    """The CLI's own file instead of `initialize --password=…`, which every user of the server could read.

    Keys: azure-docs articles/cyclecloud/python-api.md (the API reads the CLI's file: url, username, password,
    verify_certificates).
    """
    parser = configparser.RawConfigParser()
    parser["cyclecloud"] = {
        "url": portal_url(context),
        "username": context.config["admin"]["username"],
        "password": password,
        # The site's first certificate is self-signed, and this connection never leaves the host.
        "verify_certificates": "false",
    }
    text = io.StringIO()
    parser.write(text)
    write_atomically(context.paths.cli_config, text.getvalue().encode("utf-8"))


def is_logged_in(context: Context) -> bool:
    """The CLI reaches the site as the administrator."""
    if not context.paths.cli_config.exists():
        return False
    return cyclecloud(context, ["account", "list"]).status == 0


def log_in(context: Context) -> None:
    """Configure the CLI, first through its file, then through its own prompts on a terminal."""
    password = context.secret("adminPassword")
    _check_password(context, password)
    spellings: List[str] = [password]
    if "%" in password:
        # Whether the CLI's parser expands `%` is not documented; one of the two spellings is right.
        spellings.append(password.replace("%", "%%"))
    for spelling in spellings:
        # The parser would strip leading and trailing spaces; then only the prompts are left.
        if spelling == spelling.strip() and "\n" not in spelling:
            _write_config(context, spelling)
            if is_logged_in(context):
                return
    shred(context.paths.cli_config)
    argv = [
        str(context.paths.cyclecloud), "initialize", "--force", "--url=" + portal_url(context), "--verify-ssl=false",
        "--username=" + context.config["admin"]["username"], "--config={}".format(context.paths.cli_config),
    ]  # fmt: skip
    result = run(context, argv, 120, terminal=True, answers=[(r"password[^\n]*:", password)])
    if result.status != 0:
        raise StepError("the CLI cannot be configured: {}".format(result.said))


def _check_password(context: Context, password: str) -> None:
    """Tell a wrong password from a CLI that does not work, through the documented API."""
    pair = "{}:{}".format(context.config["admin"]["username"], password).encode("utf-8")
    encoded = base64.b64encode(pair).decode("ascii")
    context.log.hide(encoded)
    url = "{}/clusters/{}/status".format(portal_url(context), (context.config["cluster"] or context.config)["name"])
    if portal_status(url, "Basic " + encoded) == 401:
        raise StepError(
            "the site does not accept the administrator's password of this deployment",
            hint="If it was changed in the portal, run `sudo cycleforge-bootstrap retry` and enter the current one.",
            permanent=True,
        )


# ---------------------------------------------------------------- account, locker


def has_token(context: Context) -> bool:
    """The server's identity gets a token for Resource Manager."""
    Azure(context).token(context.fact("armEndpoint").rstrip("/") + "/")
    return True


def no_action(_: Context) -> None:
    """Do nothing: this goal only needs time."""


def has_account(context: Context) -> bool:
    """CycleCloud knows the subscription. `account show` prints the name even when its exit status is meaningless."""
    name = context.config["account"]
    return "Credentials: {}".format(name) in cyclecloud(context, ["account", "show", name]).output


def create_account(context: Context) -> None:
    """The Azure account whose locker is read and written by managed identities, without storage keys."""
    cloud = context.fact("cloud")
    if cloud not in ENVIRONMENTS:
        raise StepError("CycleCloud has no environment for the cloud '{}'".format(cloud), permanent=True)
    account = {
        "Name": context.config["account"],
        "Provider": "azure",
        "ProviderId": context.fact("subscriptionId"),
        "DefaultAccount": True,
        "Environment": ENVIRONMENTS[cloud],
        "Location": context.fact("location"),
        "AzureRMUseManagedIdentity": True,
        "AzureRMSubscriptionId": context.fact("subscriptionId"),
        "AzureRMTenantId": context.fact("tenantId"),
        "AzureRMApplicationId": None,
        "AzureRMApplicationSecret": None,
        "AzureResourceGroup": context.fact("resourceGroup"),
        "RMStorageAccount": context.fact("storageAccount"),
        "RMStorageContainer": context.fact("container"),
        "LockerAuthMode": "ManagedIdentity",
        "LockerIdentity": context.fact("lockerIdentityId"),
        "AcceptMarketplaceTerms": bool(context.config["server"]["acceptMarketplaceTerms"]),
    }
    path = context.paths.runtime / "azure_account.json"
    write_atomically(path, to_json(account))
    try:
        must(cyclecloud(context, ["account", "create", "-f", str(path)], limit=300))
    finally:
        shred(path)


def has_locker(context: Context) -> bool:
    """The locker is `Created`."""
    name = quoted(context.config["locker"])
    text = 'SELECT Name, State FROM Cloud.Locker WHERE State=="Created" && Name=={}'.format(name)
    return bool(query(context, text))


def retry_locker(context: Context) -> None:
    """Ask CycleCloud for the locker again, but not too often."""
    name = quoted(context.config["locker"])
    last = context.state.get("lockerAskedAt")
    # The clock restarts with the machine; a time in the future was recorded before a reboot.
    if last is None or float(last) > context.now():
        context.remember("lockerAskedAt", context.now())
    elif context.now() - float(last) >= RETRY_LOCKER_S:
        context.remember("lockerAskedAt", context.now())
        cycle_server(context, "run_action", "Retry:Cloud.Locker", "-f", "Name=={}".format(name))
    found = query(context, "SELECT Name, State, StatusMessage FROM Cloud.Locker WHERE Name=={}".format(name))
    if not found:
        raise StepError("CycleCloud has not started to create locker '{}'".format(context.config["locker"]))
    state, message = found[0].get("State"), found[0].get("StatusMessage") or ""
    raise StepError("locker '{}' is '{}' {}".format(context.config["locker"], state, message).rstrip())
