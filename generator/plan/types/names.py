"""Names of the resources that the deployment creates."""

from __future__ import annotations

from ...records import record


@record
class ResourceNames:
    """Names that are nowhere else in the plan, each within Azure's limit.

    A stem is completed by the deployment: 13 characters of subscription and resource group make it unique.
    """

    bastion: str
    locker_endpoint: str
    node_identity: str
    dns_link: str
    """Link of a DNS zone of this deployment to its network."""
    shared_dns_link_stem: str
    """The same of an existing zone, beside the links of others."""
    hub_peering_stem: str
    """The hub's side of the peering, beside those of others."""
    locker_account_stem: str
    """Used where the definition names no storage account."""
    database_server_stem: str
    """Used where the definition names no database server."""
    database_zone: str
    """Private DNS zone of a new database server."""
