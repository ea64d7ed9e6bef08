"""`azure:`, `admin:` and `server:` where the deployment goes, who owns it, and the CycleCloud server."""

from typing import Literal

from .fields import EXAMPLE_GROUPS, Askable, Section, setting


class ExistingGroup(Section):
    """A resource group that exists and belongs to someone else."""

    existing: str = setting(
        text="Name of the group: it is used, but never created, tagged or deleted.",
        change="recreate",
        example="research-rg",
    )


_ACCEPT_TERMS = (
    "remove it, and accept the terms yourself, once per subscription: the README of the deployment has the commands "
    "under Prerequisites"
)


class Azure(Section, removed={"accept_marketplace_terms": _ACCEPT_TERMS}):
    """Subscription and resource group."""

    cloud: Literal["public", "usgov", "china"] = setting(
        "public", text="Azure cloud.", change="recreate", example="public"
    )
    subscription_id: str | None = setting(
        None,
        text="Subscription for the commands of the README; default: the current one of az.",
        change="recreate",
        example="00000000-0000-0000-0000-000000000000",
        active=False,
    )
    prefix: str | None = setting(
        None,
        text="Beginning of the names of Azure resources; default: the deployment's name.",
        change="recreate",
        example="reference",
    )
    resource_group: str | ExistingGroup | None = setting(
        None,
        text="Resource group to create; default: <prefix>-rg. Or one that exists: {existing: NAME}.",
        change="recreate",
        example="reference-rg",
    )


class Admin(Section):
    """Administrator of the CycleCloud site and of the server VM; the password is asked for at deployment."""

    username: str = setting("ccadmin", text="Name of the administrator.", change="recreate", example="ccadmin")
    ssh_public_key: Askable | None = setting(
        None,
        text="SSH public key; if it is missing or its variable is unset, the deployment asks for it.",
        change="in place",
        example="${CYCLECLOUD_SSH_PUBLIC_KEY}",
    )


class Jumpbox(Section):
    """A Windows VM whose browser reaches the portal."""

    vm_size: str = setting("Standard_D4as_v5", text="VM size.", change="in place", example="Standard_D4as_v5")
    sku: str = setting(
        "win11-25h2-pro", text="SKU of MicrosoftWindowsDesktop:windows-11.", change="recreate", example="win11-25h2-pro"
    )


class ExistingServer(Section):
    """A CycleCloud server that already runs; nothing on it changes until you import the cluster there."""

    vm_id: str = setting(
        text="Resource id of the server's VM.",
        change="recreate",
        example=f"{EXAMPLE_GROUPS}/cyclecloud-rg/providers/Microsoft.Compute/virtualMachines/cyclecloud-server",
    )
    release: str = setting(text="CycleCloud release that it runs.", example="8.9.1")
    locker_account_id: str = setting(
        text="Resource id of the storage account of its locker.",
        change="recreate",
        example=f"{EXAMPLE_GROUPS}/cyclecloud-rg/providers/Microsoft.Storage/storageAccounts/cyclecloudlocker",
    )
    locker_container: str = setting(
        "cyclecloud", text="Container of its locker.", change="recreate", example="cyclecloud"
    )
    account: str = setting(
        "azure",
        text="Name of the cloud provider account in CycleCloud; its locker is <account>-storage.",
        change="recreate",
        example="azure",
    )
    principal_id: str | None = setting(
        None,
        text="Object id of its managed identity, which then gets its role on the new resource group; default: the "
        "README has the command.",
        example="00000000-0000-0000-0000-000000000000",
    )
    assign_locker_role: bool = setting(
        True,
        text="Let the deployment allow the nodes to read the locker; false: the README has the command for its owner.",
        example=True,
    )


class Server(Section):
    """The CycleCloud server: a new VM, or one that exists."""

    existing: ExistingServer | None = setting(
        None,
        text="Use this CycleCloud server instead of creating one; then it is the only key here.",
        change="recreate",
        active=False,
    )

    vm_size: str = setting(
        "Standard_D4as_v5", text="VM size; at least 4 vCPUs and 8 GiB.", change="in place", example="Standard_D4as_v5"
    )
    release: str | None = setting(
        None,
        text="CycleCloud release that the server runs; default: that of `image_version`, else the newest one whose "
        "image build is published.",
        change="in place",
        example="8.9.1",
    )
    image_version: str | None = setting(
        None,
        text="Any published build of the marketplace image. `release` stands for the build that is known of it, the "
        "number of `image_version` names its release (8.9.120260630 is 8.9.1), and with `image_id` the image is your "
        "own and `release` says which CycleCloud it holds. Of a server that was upgraded, it is the build that the "
        "server was created from, and `release` is a newer one.",
        change="recreate",
        active=False,
        example="8.9.120260630",
    )
    image_id: str | None = setting(
        None,
        text="Resource id of your own server image instead of the marketplace image.",
        change="recreate",
        active=False,
        example=f"{EXAMPLE_GROUPS}/images/providers/Microsoft.Compute/images/cyclecloud",
    )
    os_disk_gb: int | None = setting(
        None,
        text="OS disk, not smaller than the image; default: size of the image.",
        change="recreate",
        unit="GB",
        ge=30,
        le=4095,
        example=128,
        active=False,
    )
    data_disk_gb: int | None = setting(
        None,
        text="Data disk for your own image, which must format and mount it (LUN 0).",
        change="recreate",
        unit="GB",
        ge=32,
        le=32767,
        example=128,
        active=False,
    )
    java_heap_mb: int | None = setting(
        None,
        text="Heap of the server's Java process; default: what the image sets.",
        unit="MB",
        ge=1024,
        le=131072,
        example=8192,
    )
    jumpbox: Jumpbox | None = setting(
        None,
        text="Windows VM for the browser; none by default, because a tunnel does the same.",
        change="recreate",
        example={},
    )
