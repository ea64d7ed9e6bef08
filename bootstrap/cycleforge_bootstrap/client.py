"""Steps that use the CycleCloud CLI: the Azure account and its locker."""

from .cli import cyclecloud, must
from .core import Context, StepError, shred, to_json, write_atomically
from .programs import run
from .service import cycle_server
from .site import query, quoted
from .web import Azure

ENVIRONMENTS = {"AzureCloud": "public", "AzureUSGovernment": "usgov", "AzureChinaCloud": "china"}
"""Azure's name of a cloud → CycleCloud's."""

RETRY_LOCKER_S = 120
"""Seconds between two requests for the locker; more frequent requests prevent it from ever being created.

Source: Azure/cyclecloud-slurm-workspace bicep/install.sh
"""


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
        # The server's identity has no right to sign agreements for the subscription; people accept the terms.
        "AcceptMarketplaceTerms": False,
    }
    path = context.paths.runtime / "azure_account.json"
    write_atomically(path, to_json(account))
    try:
        must(cyclecloud(context, ["account", "create", "-f", str(path)], limit=300))
    finally:
        shred(path)


def locker_answers(context: Context) -> bool:
    """The locker lists its blobs to this server: its name leads to the private endpoint. The public one refuses."""
    try:
        Azure(context).blobs("projects/")
    except StepError as error:
        host = "{}.blob.{}".format(context.fact("storageAccount"), context.fact("storageSuffix"))
        words = run(context, ["getent", "ahostsv4", host], 30).output.split()
        where = "resolves to {}".format(words[0]) if words else "does not resolve"
        raise StepError("{} {} on this server, and {}".format(host, where, error.message)) from None
    return True


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
