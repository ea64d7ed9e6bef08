"""Hardening beyond the defaults, as the definition asks for it."""

from __future__ import annotations

from ...records import record


@record
class SecurityPlan:
    """What server, jumpbox, nodes and locker get on request."""

    encryption_at_host: bool
    disk_encryption_set_id: str | None
    """Set whose key encrypts all disks; None: keys of the platform."""
    infrastructure_encryption: bool
    """Of the locker's account."""
    trusted_launch: bool
    """Of the nodes. The jumpbox always has it, the server's marketplace image does not say that it supports it."""
    secure_boot: bool
    """Of the nodes; only with Trusted Launch."""
    diagnostics_workspace_id: str | None
    """Log Analytics workspace of the diagnostic settings; None: the deployment makes none."""
    diagnostics_name: str = "cycleforge"
    """Name of the diagnostic settings in the modules. Policies name theirs otherwise, and a second setting of one name
    would replace the first.

    Source: https://learn.microsoft.com/azure/azure-monitor/platform/diagnostic-settings
    """
