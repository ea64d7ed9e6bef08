"""The CycleCloud server, its administrator and the jumpbox."""

from __future__ import annotations

from msgspec import Struct

from .. import catalog
from ..definition.model.definition import Definition
from . import names
from .asked import SSH_KEY, Asked, asked_or
from .cluster import server_release


def admin_plan(definition: Definition) -> AdminPlan:
    key = None if definition.server.existing else asked_or(definition.admin.ssh_public_key, SSH_KEY)
    return AdminPlan(definition.admin.username, key)


def existing_server_plan(definition: Definition) -> ExistingServerPlan | None:
    existing = definition.server.existing
    if existing is None:
        return None
    name = existing.vm_id.rstrip("/").rsplit("/", 1)[-1]
    return ExistingServerPlan(existing.vm_id, name, existing.release, existing.principal_id)


def server_plan(definition: Definition) -> ServerPlan | None:
    server = definition.server
    if server.existing is not None:
        return None
    release = server_release(definition)
    row, server_image = catalog.release(release), catalog.server_image()
    image = None
    build = server.image_version or (row.image_version if row is not None else None)
    if server.image_id is None and build:
        image = MarketplaceImage(server_image.publisher, server_image.offer, server_image.sku, build)
    jumpbox = None
    if server.jumpbox is not None:
        jumpbox = JumpboxPlan(
            vm_name=f"{names.prefix(definition)}-jumpbox",
            computer_name=names.computer_name(names.prefix(definition)),
            vm_size=server.jumpbox.vm_size,
            image=MarketplaceImage("MicrosoftWindowsDesktop", "windows-11", server.jumpbox.sku, "latest"),
        )
    return ServerPlan(
        vm_name=f"{names.prefix(definition)}-server",
        vm_size=server.vm_size,
        release=release,
        image=image,
        image_id=server.image_id,
        os_disk_gb=server.os_disk_gb,
        data_disk_gb=server.data_disk_gb,
        java_heap_mb=server.java_heap_mb,
        jumpbox=jumpbox,
    )


class AdminPlan(Struct, frozen=True):
    """The first user: administrator of the CycleCloud site and of the server VM (SSH key only)."""

    username: str
    ssh_public_key: str | Asked | None
    """None: the deployment creates no server that would take it."""


class MarketplaceImage(Struct, frozen=True):
    """A CycleCloud server image of the marketplace; `plan` fields must be passed with the VM."""

    publisher: str
    offer: str
    sku: str
    version: str

    @property
    def urn(self) -> str:
        """`publisher:offer:sku:version`, as the Azure CLI names an image."""
        return f"{self.publisher}:{self.offer}:{self.sku}:{self.version}"


class JumpboxPlan(Struct, frozen=True):
    """A Windows VM whose browser reaches the portal; only on request."""

    vm_name: str
    computer_name: str
    vm_size: str
    image: MarketplaceImage


class ServerPlan(Struct, frozen=True):
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


class ExistingServerPlan(Struct, frozen=True):
    """A CycleCloud server that the deployment uses and leaves as it is."""

    vm_id: str
    vm_name: str
    release: str
    principal_id: str | None
    """Object id of its identity, which gets its role on the new resource group; None: someone gives it by hand."""
    https_port: int = 443
    cluster_port: int = 9443
    """Where nodes reach CycleCloud."""
