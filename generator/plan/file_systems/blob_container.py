"""A container of an existing storage account, mounted by blobfuse with the identity of the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from ... import catalog
from ...cctemplate.writing import Verbatim, Writable
from ...definition.model.storage import BlobMount
from ...records import named_record
from .. import names
from ..flow import NODES, PEERS, Flow
from .base import FileSystem, Grant, NodeSettings, Place

_KEYS = "cycleforge.blobfuse"


@named_record
class BlobContainer(FileSystem):
    """`blob`: mounted by a script of our own.

    CycleCloud 8.8 has a mount type for blobfuse2, but its keys are not documented.
    """

    kind: Literal["blob"] = "blob"
    protocol: Literal["blobfuse"] = "blobfuse"
    storage_account: str
    container: str
    endpoint: str | None = None
    """URL of the account outside the public cloud, where blobfuse does not find it by itself."""

    azure_names: ClassVar[Mapping[str, str]] = {"storage_account": "storage_account", "container": "container"}
    mounted_by: ClassVar[str] = "misc_ubuntu"

    @classmethod
    def planned(cls, place: Place, section: BlobMount) -> BlobContainer:
        """The account belongs to someone else; its address follows from its name and the cloud."""
        suffix = names.blob_suffix(place.definition.azure.cloud)
        return cls(
            name=place.name,
            path=place.path,
            storage_account=section.storage_account,
            container=section.container,
            endpoint=f"https://{section.storage_account}.{suffix}" if suffix else None,
        )

    @property
    def label(self) -> str:
        """For `cycleforge plan`."""
        return "blob by blobfuse"

    @property
    def description(self) -> str:
        """For the README."""
        return f"blob container `{self.container}` of `{self.storage_account}` by blobfuse"

    @property
    def origin(self) -> str:
        """For `cycleforge plan`."""
        return f"{self.storage_account}/{self.container}"

    @property
    def left_behind(self) -> str:
        """It belongs to someone else."""
        return f"the storage account `{self.storage_account}`"

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Over the internet, unless the account has a private endpoint that this network resolves."""
        return (Flow("nodes-containers", NODES, PEERS, "Tcp", ("443",), "nodes mount blob containers"),)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Reading and writing on the container."""
        return (
            Grant(
                what="blob containers",
                role="Storage Blob Data Contributor",
                reader_role="Storage Blob Data Reader",
                storage_account=self.storage_account,
                scope=f"blobServices/default/containers/{self.container}",
            ),
        )

    @property
    def is_health_checked(self) -> bool:
        """Never: blobfuse comes up late."""
        return False

    @property
    def data_rank(self) -> int:
        """No file system for many small files."""
        return 2

    @property
    def bandwidth_gb_per_s(self) -> float:
        """What the account takes in before it answers 503; blobfuse then waits and sends again."""
        return float(catalog.training()["storage"][self.protocol]["write_gb_per_s"])

    @classmethod
    def node_settings(cls, mounts: Sequence[BlobContainer]) -> NodeSettings:
        """`cycleforge.blobfuse.mounts` lists names, `cycleforge.blobfuse.<name>.…` describes each."""
        identity = Verbatim("$configuration_identity_client_id")
        return NodeSettings(
            f"Containers: the project {cls.mounted_by} mounts them with the identity of the nodes.",
            (
                *((f"{mount._start}.identity_client_id", identity) for mount in mounts),
                (f"{_KEYS}.mounts", " ".join(mount._key for mount in mounts)),
                *(entry for mount in mounts for entry in mount._entries()),
            ),
        )

    @property
    def _key(self) -> str:
        """The mount's name, and another one for /mounts: `cycleforge.blobfuse.mounts` is the list."""
        return "mounts-" if self.name == "mounts" else self.name

    @property
    def _start(self) -> str:
        return f"{_KEYS}.{self._key}"

    def _entries(self) -> Iterator[tuple[str, Writable]]:
        values = {
            "path": self.path,
            "storage_account": self.storage_account,
            "container": self.container,
            "options": self.mount_options,
            "endpoint": self.endpoint,
        }
        return ((f"{self._start}.{key}", value) for key, value in values.items() if value is not None)
