"""`network:` the virtual network, new or existing, and the way in."""

from typing import Literal

from .fields import EXAMPLE_GROUPS, Askable, Section, setting


class SubnetPrefixes(Section):
    """Prefixes of a new network's subnets; what is left out is planned from the address space."""

    server: str | None = setting(
        None,
        text="Subnet of the CycleCloud server and the jumpbox.",
        change="recreate",
        unit="CIDR",
        example="10.50.12.0/27",
    )
    endpoints: str | None = setting(
        None, text="Subnet of the locker's private endpoint.", change="recreate", unit="CIDR", example="10.50.12.32/28"
    )
    compute: str | None = setting(
        None,
        text="Subnet of scheduler, login and execute nodes.",
        change="recreate",
        unit="CIDR",
        example="10.50.0.0/21",
    )
    bastion: str | None = setting(
        None,
        text="AzureBastionSubnet, /26 or larger; only with access bastion.",
        change="recreate",
        unit="CIDR",
        example="10.50.12.64/26",
        active=False,
    )
    netapp: str | None = setting(
        None, text="Subnet delegated to NetApp Files.", change="recreate", unit="CIDR", example="10.50.12.128/28"
    )
    lustre: str | None = setting(
        None,
        text="Subnet of Managed Lustre; its size follows the capacity.",
        change="recreate",
        unit="CIDR",
        example="10.50.8.0/24",
    )
    database: str | None = setting(
        None,
        text="Subnet delegated to the MySQL flexible server.",
        change="recreate",
        unit="CIDR",
        example="10.50.12.144/28",
    )


class ComputeSubnet(Section):
    """A further subnet of a new network, for the nodes of the roles that name it."""

    name: str = setting(text="Its name, which the roles write in `subnet`.", change="recreate", example="gpu")
    prefix: str = setting(text="Its prefix.", change="recreate", unit="CIDR", example="10.50.9.0/24")


class ExistingSubnet(Section, short="name"):
    """A subnet of an existing network; what is said of it beside its name is compared with what it must be."""

    name: str = setting(text="Its name.", change="recreate", example="compute")
    prefix: str | None = setting(
        None, text="Its prefix, to check its size before Azure does.", unit="CIDR", example="10.20.0.0/22"
    )
    addresses_in_use: int = setting(
        0, text="Its addresses that others use; with prefix.", unit="addresses", ge=0, example=12
    )
    delegation: str | None = setting(
        None,
        text="Resource provider that it is delegated to, or none, to check it before Azure does.",
        example="none",
    )


class ExistingSubnets(Section):
    """The subnets to use in an existing network: the name of each, or a mapping with what is known of it."""

    server: ExistingSubnet | None = setting(
        None,
        text="Subnet of the CycleCloud server; required unless the server exists already.",
        change="recreate",
        example="server",
    )
    compute: ExistingSubnet = setting(
        text="Subnet of scheduler, login and execute nodes.", change="recreate", example={"name": "compute"}
    )
    endpoints: ExistingSubnet | None = setting(
        None,
        text="Subnet of the locker's private endpoint; default: the server's subnet.",
        change="recreate",
        example="endpoints",
    )
    netapp: ExistingSubnet | None = setting(
        None, text="Subnet delegated to Microsoft.Netapp/volumes.", change="recreate", example="netapp"
    )
    lustre: ExistingSubnet | None = setting(
        None, text="Subnet for Managed Lustre.", change="recreate", example="lustre"
    )
    database: ExistingSubnet | None = setting(
        None, text="Subnet delegated to Microsoft.DBforMySQL/flexibleServers.", change="recreate", example="database"
    )


class ExistingNetwork(Section):
    """A network that already exists: the deployment creates what is in its subnets, and changes nothing else of it."""

    vnet_id: str = setting(
        text="Resource id of the virtual network.",
        change="recreate",
        example=f"{EXAMPLE_GROUPS}/network/providers/Microsoft.Network/virtualNetworks/vnet",
    )
    location: str | None = setting(
        None, text="Its region, to check it before Azure does.", change="recreate", example="southcentralus"
    )
    subnets: ExistingSubnets = setting(
        text="Names of its subnets.", change="recreate", example={"server": "server", "compute": "compute"}
    )
    compute_subnets: list[ExistingSubnet] = setting(
        list,
        text="Further subnets for nodes, each with its prefix; a role names the one that its nodes are in.",
        change="recreate",
        example=[{"name": "gpu", "prefix": "10.20.8.0/22"}],
        active=False,
    )


class Hub(Section):
    """Peering with the network that owns the VPN or ExpressRoute gateway."""

    vnet_id: Askable | None = setting(
        None,
        text="Resource id of the hub network; when its variable is unset, the deployment asks for it.",
        change="recreate",
        example="${HUB_VNET_ID}",
    )
    use_remote_gateway: bool = setting(
        True,
        text="Route traffic to users through the hub's VPN or ExpressRoute gateway, which must exist; false for a hub "
        "that has only a firewall.",
        example=True,
    )
    allow_forwarded_traffic: bool | None = setting(
        None,
        text="Accept traffic that a firewall of the other side forwards, in both directions of the peering; default: "
        "true with next_hop or route_table, else false.",
        example=True,
    )
    address_spaces: list[str] = setting(
        list,
        text="Prefixes of the hub and the networks behind its gateway: they must not overlap the network, and may "
        "reach the server.",
        unit="CIDR",
        example=["10.0.0.0/16"],
    )
    reachable: list[str] = setting(
        list,
        text="Prefixes of the hub, or behind it, to which nodes may open any connection: licence servers, directories, "
        "mirrors. Every other private address is shut to them, except what the definition itself names.",
        unit="CIDR",
        example=["10.0.8.0/24"],
        active=False,
    )


class Proxy(Section, short="url"):
    """A proxy for what server and nodes fetch from the internet."""

    url: str = setting(
        text="Address of the proxy, without a user: http://HOST:PORT.",
        change="node restart",
        example="http://10.0.1.5:3128",
    )
    no_proxy: list[str] = setting(
        list,
        text="Hosts and domains (.example.com) that are reached without it, beside Azure's own addresses, the locker "
        "and the new network.",
        change="node restart",
        example=[".example.com"],
    )


class Network(Section):
    """Network of the deployment."""

    address_space: str = setting(
        "10.50.0.0/20", text="Address space of the new network.", change="recreate", unit="CIDR", example="10.50.0.0/20"
    )
    access: Literal["bastion", "hub", "private", "public"] = setting(
        "bastion",
        text="How users reach the server: Azure Bastion (in an existing network its own, which must exist), a peered "
        "hub network, the private address on a VPN that leads into an existing network, or a public address for "
        "listed sources.",
        example="hub",
    )
    hub: Hub | None = setting(
        None, text="The hub network; only with access hub.", example={"vnet_id": "${HUB_VNET_ID}"}
    )
    allowed_sources: list[str] = setting(
        list,
        text="Prefixes that may reach the server's public address; only with access public.",
        unit="CIDR",
        example=["203.0.113.0/24"],
        active=False,
    )
    nat_gateway: bool = setting(
        True,
        text="Outbound access through a NAT gateway; off where another route to the internet exists, as with next_hop "
        "and route_table, which turn it off.",
        example=True,
    )
    next_hop: str | None = setting(
        None,
        text="Private address of the firewall through which all traffic to other networks leaves: the deployment "
        "creates a route table for every subnet but the Bastion's.",
        unit="IPv4 address",
        example="10.0.1.4",
        active=False,
    )
    route_table: str | None = setting(
        None,
        text="Resource id of an existing route table for every subnet but the Bastion's, in place of next_hop.",
        example=f"{EXAMPLE_GROUPS}/network/providers/Microsoft.Network/routeTables/spokes",
        active=False,
    )
    proxy: Proxy | None = setting(None, text="The proxy of server and nodes; its URL alone will do.", active=False)
    dns_servers: list[str] = setting(
        list,
        text="DNS servers of the new network, two or more; default: Azure's own. VMs read a change when they restart.",
        change="node restart",
        unit="IPv4 address",
        example=["10.0.2.4", "10.0.2.5"],
        active=False,
    )
    subnets: SubnetPrefixes = setting(SubnetPrefixes, text="Prefixes of single subnets.", change="recreate", example={})
    compute_subnets: list[ComputeSubnet] = setting(
        list,
        text="Further subnets for nodes in the new network; a role names the one that its nodes are in.",
        change="recreate",
        example=[{"name": "gpu", "prefix": "10.50.14.0/24"}],
        active=False,
    )
    existing: ExistingNetwork | None = setting(
        None, text="Use this network instead of creating one.", change="recreate", active=False
    )
    blob_dns_zone: str = setting(
        "new",
        text="Private DNS zone of the locker's endpoint: new, none (a policy or an administrator registers it), or the "
        "resource id of an existing zone.",
        example="new",
    )
    mysql_dns_zone: str = setting(
        "new",
        text="Private DNS zone of a new database server: new, or the resource id of an existing zone, whose name ends "
        "in mysql.database.azure.com.",
        change="recreate",
        example="new",
    )
    link_dns_zones: bool = setting(
        True,
        text="Link existing zones to the new network. False where its DNS servers know the locker's zone, or the owner "
        "of the zones links them; a new database server needs the link to its zone in any case.",
        example=True,
    )
