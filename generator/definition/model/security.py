"""`security:` what hardens a deployment beyond the defaults, because it costs, needs a right or may be refused."""

from .fields import EXAMPLE_GROUPS, Section, setting


class Security(Section):
    """Hardening that is not for everyone."""

    encryption_at_host: bool = setting(
        False,
        text="The hosts of server, jumpbox and nodes encrypt temporary disks and caches, too; the subscription needs "
        "the feature Microsoft.Compute/EncryptionAtHost.",
        change="node restart",
        example=False,
    )
    disk_encryption_set_id: str | None = setting(
        None,
        text="Resource id of a disk encryption set in the same region, whose key encrypts the disks of server, jumpbox "
        "and nodes; default: keys of the platform.",
        change="recreate",
        example=f"{EXAMPLE_GROUPS}/security/providers/Microsoft.Compute/diskEncryptionSets/disks",
        active=False,
    )
    infrastructure_encryption: bool = setting(
        False,
        text="The accounts of locker and created containers encrypt twice; only a new account takes it.",
        change="recreate",
        example=False,
    )
    trusted_launch: bool = setting(
        False,
        text="Nodes have a virtual TPM (Trusted Launch); images and VM sizes must support it.",
        change="node restart",
        example=False,
    )
    secure_boot: bool = setting(
        False,
        text="With trusted_launch: nodes load only signed drivers, which those of GPUs and InfiniBand are not.",
        change="node restart",
        example=False,
    )
    diagnostics_workspace_id: str | None = setting(
        None,
        text="Resource id of the Log Analytics workspace that gets the logs of locker, created containers, network, "
        "Bastion and database; default: none.",
        example=f"{EXAMPLE_GROUPS}/security/providers/Microsoft.OperationalInsights/workspaces/logs",
        active=False,
    )
