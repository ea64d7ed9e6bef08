"""The CycleCloud server, its administrator, the jumpbox and the locker."""

from __future__ import annotations

from ...records import record
from .parameters import Asked


@record
class AdminPlan:
    """The first user: administrator of the CycleCloud site and of the server VM (SSH key only)."""

    username: str
    ssh_public_key: str | Asked | None
    """None: the deployment creates no server that would take it."""


@record
class MarketplaceImage:
    """A CycleCloud server image of the marketplace; `plan` fields must be passed with the VM."""

    publisher: str
    offer: str
    sku: str
    version: str

    @property
    def urn(self) -> str:
        """`publisher:offer:sku:version`, as the Azure CLI names an image."""
        return f"{self.publisher}:{self.offer}:{self.sku}:{self.version}"


@record
class ImageTerms:
    """The plan of a marketplace image whose terms must be accepted once per subscription."""

    publisher: str
    product: str
    name: str
    used_by: tuple[str, ...]
    """In words, for example `the scheduler`."""


@record
class UnknownImage:
    """An image of which it is not known whether it has terms: a name, a URN or a resource id."""

    image: str
    used_by: tuple[str, ...]

    @property
    def is_urn(self) -> bool:
        """Whether the Azure CLI can be asked for its plan."""
        return self.image.count(":") == 3


@record
class JumpboxPlan:
    """A Windows VM whose browser reaches the portal; only on request."""

    vm_name: str
    computer_name: str
    vm_size: str
    image: MarketplaceImage


@record
class ServerPlan:
    """The CycleCloud server VM."""

    vm_name: str
    vm_size: str
    release: str
    """CycleCloud release, for example `8.9.1`."""
    image: MarketplaceImage | None
    image_id: str | None
    """Own image; then no marketplace plan is passed."""
    os_disk_gb: int | None
    data_disk_gb: int | None
    """Size of the data disk for a custom image; the marketplace image brings its own disk."""
    java_heap_mb: int | None
    jumpbox: JumpboxPlan | None
    http_port: int = 80
    https_port: int = 443
    cluster_port: int = 9443
    """Where nodes reach CycleCloud."""
    boot_limit_s: int = 65 * 60
    """The first boot's own limit. The extension ends after 90 minutes, and `start.sh`, which may fetch for 15, stops
    waiting after 84."""
    upload_limit_s: int = 300
    """Of one project into the locker."""
    name_limit_s: int = 30 * 60
    """Until a policy has registered the locker's endpoint. It acts ten minutes later, unless it says otherwise.

    Source: https://learn.microsoft.com/azure/governance/policy/concepts/effect-deploy-if-not-exists
    """


@record
class ExistingServerPlan:
    """A CycleCloud server that the deployment uses and leaves as it is."""

    vm_id: str
    vm_name: str
    release: str
    principal_id: str | None
    """Object id of its identity, which gets its role on the new resource group; None: someone gives it by hand."""
    https_port: int = 443
    cluster_port: int = 9443
    """Where nodes reach CycleCloud."""


@record
class LockerPlan:
    """Storage that nodes and server share; CycleCloud calls it `<account>-storage`, here `azure-storage`."""

    account_name: str | None
    """None: the deployment derives a unique name from subscription and resource group."""
    account_id: str | None
    """Resource id of the account of an existing server's locker; None: the deployment creates the locker."""
    assigns_role: bool
    """Whether the deployment lets the nodes read the locker; False: someone does it by hand."""
    container: str
    redundancy: str | None
    """Storage SKU of a new account, for example `Standard_LRS`."""
    locker_name: str
    cyclecloud_account: str
    """Name of the account record in CycleCloud, from which the locker has its name."""
    blob_suffix: str | None
    """End of blob endpoints outside the public cloud."""

    @property
    def is_new(self) -> bool:
        """Whether the deployment creates it."""
        return self.account_id is None
