"""`landing_zone:` what the policies of the subscription demand of a deployment."""

from .fields import EXAMPLE_GROUPS, Section, setting


class LandingZone(Section):
    """Demands of the subscription; they change nothing, and whatever does not meet them is a problem at its line."""

    allowed_locations: list[str] = setting(
        list, text="Regions that resources may be in; empty: any.", example=["southcentralus"]
    )
    allowed_vm_sizes: list[str] = setting(
        list,
        text="VM sizes that are allowed; empty: any.",
        example=["Standard_D4as_v5", "Standard_D4ads_v5"],
        active=False,
    )
    allowed_storage_skus: list[str] = setting(
        list, text="SKUs of storage accounts that are allowed; empty: any.", example=["Standard_ZRS"], active=False
    )
    allowed_networks: list[str] = setting(
        list,
        text="Resource ids of the networks that VMs may be in; empty: any.",
        example=[f"{EXAMPLE_GROUPS}/network/providers/Microsoft.Network/virtualNetworks/vnet"],
        active=False,
    )
    denied_resource_types: list[str] = setting(
        list,
        text="Types of resources that nobody may create.",
        example=["Microsoft.Network/virtualNetworkGateways"],
    )
    required_tags: list[str] = setting(list, text="Tags that every resource must have.", example=["owner"])
    no_public_ip: bool = setting(
        False, text="No public address at all, also of Bastion and NAT gateway.", example=False
    )
    no_public_ip_on_vms: bool = setting(False, text="No public address on a network interface.", example=False)
    no_peering_across_subscriptions: bool = setting(
        False, text="No peering with a network of another subscription.", example=False
    )
    no_new_dns_zones: bool = setting(False, text="No new privatelink zones: they exist centrally.", example=False)
    dns_by_policy: bool = setting(
        False, text="A policy registers private endpoints in the central zones; nobody else may.", example=False
    )
    subnets_need_route_table: bool = setting(
        False, text="Every subnet but the Bastion's has a route table.", example=False
    )
    encryption_at_host: bool = setting(False, text="The hosts of all VMs encrypt.", example=False)
    customer_managed_keys: bool = setting(False, text="Disks are encrypted with keys of your own.", example=False)
    infrastructure_encryption: bool = setting(False, text="Storage accounts encrypt twice.", example=False)
    trusted_launch: bool = setting(False, text="All VMs have Trusted Launch.", example=False)
    diagnostics: bool = setting(False, text="Logs go to a workspace by the deployment itself.", example=False)
    no_marketplace_plans: bool = setting(False, text="No images with a plan of the marketplace.", example=False)
    only_own_images: bool = setting(False, text="VMs are made from images of your own galleries only.", example=False)
    existing_resource_group: bool = setting(False, text="Resource groups are made by the platform team.", example=False)
    no_role_assignments: bool = setting(False, text="Deployments are not allowed to assign roles.", example=False)
