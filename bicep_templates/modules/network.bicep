metadata description = 'New virtual network: subnets by role, each with its own network security group, and a NAT gateway for egress.'

@description('What a subnet is for; decides its firewall rules.')
type subnetRole = 'server' | 'compute' | 'endpoints' | 'bastion' | 'netapp' | 'lustre' | 'database'

@description('One subnet: role, name, CIDR, resource provider it is delegated to, whether its egress goes through the NAT gateway, whether it has the route table.')
type subnetType = {
  role: subnetRole
  name: string
  prefix: string
  delegation: string?
  usesNat: bool
  isRouted: bool?
}

@description('Azure region of all resources.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the virtual network; the names of its security groups and its NAT gateway begin with it.')
param vnetName string
@description('Address space of the virtual network (CIDR).')
param addressSpace string
@description('Subnets; roles are unique, `compute` is required.')
param subnets subnetType[]
@description('Whether to create a NAT gateway for outbound internet access of the subnets that use it.')
param natGateway bool
@description('DNS servers of all VMs (IPv4 addresses); empty for those of Azure.')
param dnsServers string[] = []
@description('Private address of a firewall that all traffic to other networks goes through; null for none.')
param nextHop string?
@description('Resource id of an existing route table; null for none, or where `nextHop` is given.')
param routeTableId string?
@description('Who may reach the server by HTTPS and SSH: CIDRs, or one service tag. If empty, only Bastion.')
param userSources string[]
@description('Who may reach nodes by SSH: CIDRs, or one service tag. If empty, only Bastion and the server.')
param nodeUserSources string[]
@description('Whether the server subnet holds a Windows VM, reached by RDP through Bastion, that opens the portal.')
param jumpbox bool

var prefixes = toObject(subnets, subnet => subnet.role, subnet => subnet.prefix)
var server = contains(prefixes, 'server') ? [prefixes.server] : []
var compute = [prefixes.compute]
var bastion = contains(prefixes, 'bastion') ? [prefixes.bastion] : []
var netapp = contains(prefixes, 'netapp') ? [prefixes.netapp] : []
var lustre = contains(prefixes, 'lustre') ? [prefixes.lustre] : []
var database = contains(prefixes, 'database') ? [prefixes.database] : []
var lustrePorts = ['988', '1019-1023']

// Inbound rules by role, in order of priority, to the subnet itself unless `to` says otherwise. A rule whose `from` is
// empty is left out: the subnet or the users that it would let in do not exist.
var inbound = {
  server: [
    // Nodes report to 9443 (webServerClusterPort); the scheduler's autoscaler may also use the portal's port.
    { name: 'AllowNodes', protocol: 'Tcp', from: compute, ports: ['443', '9443'] }
    { name: 'AllowUsers', protocol: 'Tcp', from: userSources, ports: ['22', '443'] }
    { name: 'AllowBastion', protocol: 'Tcp', from: bastion, ports: jumpbox ? ['22', '443', '3389'] : ['22', '443'] }
    { name: 'AllowJumpbox', protocol: 'Tcp', from: jumpbox ? server : [], ports: ['22', '443'] }
  ]
  compute: [
    // MPI, NCCL, Slurm and the built-in NFS server use ports that are not fixed.
    { name: 'AllowNodes', protocol: '*', from: compute, ports: ['*'] }
    { name: 'AllowServer', protocol: 'Tcp', from: server, ports: ['22'] }
    { name: 'AllowBastion', protocol: 'Tcp', from: bastion, ports: ['22'] }
    { name: 'AllowUsers', protocol: 'Tcp', from: nodeUserSources, ports: ['22'] }
    // Storage servers open connections to their clients.
    { name: 'AllowLustre', protocol: 'Tcp', from: lustre, ports: lustrePorts }
    // NFSv3 lock callbacks use ports that the client's port mapper assigns.
    { name: 'AllowNetApp', protocol: '*', from: netapp, ports: ['*'] }
  ]
  endpoints: [
    { name: 'AllowServerAndNodes', protocol: 'Tcp', from: concat(server, compute), ports: ['443'] }
  ]
  // Bastion needs these four and the four of `bastionOutbound`: https://learn.microsoft.com/azure/bastion/bastion-nsg
  bastion: [
    { name: 'AllowHttps', protocol: 'Tcp', from: ['Internet'], to: '*', ports: ['443'] }
    { name: 'AllowGatewayManager', protocol: 'Tcp', from: ['GatewayManager'], to: '*', ports: ['443'] }
    { name: 'AllowAzureLoadBalancer', protocol: 'Tcp', from: ['AzureLoadBalancer'], to: '*', ports: ['443'] }
    { name: 'AllowBastionHosts', protocol: '*', from: ['VirtualNetwork'], to: 'VirtualNetwork', ports: ['8080', '5701'] }
  ]
  netapp: [
    // NFSv3: port mapper, mount, nfs, lock manager, status monitor, quota.
    { name: 'AllowNodes', protocol: '*', from: compute, ports: ['111', '635', '2049', '4045', '4046', '4049'] }
    { name: 'AllowOwnSubnet', protocol: '*', from: netapp, ports: ['*'] }
  ]
  // https://learn.microsoft.com/azure/azure-managed-lustre/configure-network-security-group
  lustre: [
    { name: 'AllowOwnSubnet', protocol: '*', from: lustre, ports: ['*'] }
    { name: 'AllowNodes', protocol: 'Tcp', from: compute, ports: lustrePorts }
    { name: 'AllowAzureMonitor', protocol: 'Tcp', from: ['AzureMonitor'], to: 'VirtualNetwork', ports: ['*'] }
  ]
  database: [
    { name: 'AllowNodes', protocol: 'Tcp', from: compute, ports: ['3306'] }
    { name: 'AllowOwnSubnet', protocol: '*', from: database, ports: ['*'] }
  ]
}
// Ports 22 and 443 are what `az network bastion ssh` and `tunnel` reach, 3389 the jumpbox.
var bastionOutbound = [
  { name: 'AllowTargetsOutbound', protocol: '*', from: '*', to: 'VirtualNetwork', ports: ['22', '443', '3389'] }
  { name: 'AllowAzureCloudOutbound', protocol: 'Tcp', from: '*', to: 'AzureCloud', ports: ['443'] }
  { name: 'AllowBastionHostsOutbound', protocol: '*', from: 'VirtualNetwork', to: 'VirtualNetwork', ports: ['8080', '5701'] }
  { name: 'AllowSessionInformationOutbound', protocol: '*', from: '*', to: 'Internet', ports: ['80'] }
]

// The default rule AllowVnetInBound (priority 65000) would allow every peer and every subnet; this rule overrides it.
var denyNetwork = {
  name: 'DenyVirtualNetworkInbound'
  properties: {
    priority: 4000
    direction: 'Inbound'
    access: 'Deny'
    protocol: '*'
    sourceAddressPrefix: 'VirtualNetwork'
    sourcePortRange: '*'
    destinationAddressPrefix: '*'
    destinationPortRange: '*'
  }
}

resource natAddress 'Microsoft.Network/publicIPAddresses@2025-05-01' = if (natGateway) {
  name: '${vnetName}-nat-ip'
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: {
    publicIPAllocationMethod: 'Static'
  }
}

resource nat 'Microsoft.Network/natGateways@2025-05-01' = if (natGateway) {
  name: '${vnetName}-nat'
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: {
    idleTimeoutInMinutes: 4
    publicIpAddresses: [{ id: natAddress.id }]
  }
}

// Routes that a gateway learns are left out: they would lead around the firewall.
resource routes 'Microsoft.Network/routeTables@2025-05-01' = if (nextHop != null) {
  name: '${vnetName}-routes'
  location: location
  tags: tags
  properties: {
    disableBgpRoutePropagation: true
    routes: [
      {
        name: 'default'
        properties: {
          addressPrefix: '0.0.0.0/0'
          nextHopType: 'VirtualAppliance'
          nextHopIpAddress: nextHop
        }
      }
    ]
  }
}

resource securityGroups 'Microsoft.Network/networkSecurityGroups@2025-05-01' = [
  for subnet in subnets: {
    name: '${vnetName}-${subnet.role}-nsg'
    location: location
    tags: tags
    properties: {
      securityRules: concat(
        map(filter(inbound[subnet.role], rule => !empty(rule.from)), (rule, index) => {
          name: rule.name
          properties: {
            priority: 100 + 10 * index
            direction: 'Inbound'
            access: 'Allow'
            protocol: rule.protocol
            // Azure accepts `*` and service tags only in the singular properties, several entries only in the plural ones.
            sourceAddressPrefix: length(rule.from) == 1 ? rule.from[0] : null
            sourceAddressPrefixes: length(rule.from) == 1 ? null : rule.from
            sourcePortRange: '*'
            destinationAddressPrefix: rule.?to ?? subnet.prefix
            destinationPortRange: length(rule.ports) == 1 ? rule.ports[0] : null
            destinationPortRanges: length(rule.ports) == 1 ? null : rule.ports
          }
        }),
        [denyNetwork],
        map(subnet.role == 'bastion' ? bastionOutbound : [], (rule, index) => {
          name: rule.name
          properties: {
            priority: 100 + 10 * index
            direction: 'Outbound'
            access: 'Allow'
            protocol: rule.protocol
            sourceAddressPrefix: rule.from
            sourcePortRange: '*'
            destinationAddressPrefix: rule.to
            destinationPortRange: length(rule.ports) == 1 ? rule.ports[0] : null
            destinationPortRanges: length(rule.ports) == 1 ? null : rule.ports
          }
        })
      )
    }
  }
]

resource vnet 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: vnetName
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: [addressSpace] }
    dhcpOptions: empty(dnsServers) ? null : { dnsServers: dnsServers }
    subnets: [
      for (subnet, index) in subnets: {
        name: subnet.name
        properties: {
          addressPrefix: subnet.prefix
          defaultOutboundAccess: false
          networkSecurityGroup: { id: securityGroups[index].id }
          natGateway: natGateway && subnet.usesNat ? { id: nat.id } : null
          routeTable: subnet.?isRouted == true ? { id: routeTableId ?? routes.id } : null
          // Without it the security group would not apply to private endpoints.
          privateEndpointNetworkPolicies: subnet.role == 'endpoints' ? 'NetworkSecurityGroupEnabled' : 'Disabled'
          delegations: subnet.?delegation == null ? [] : [
            {
              name: 'delegation'
              properties: { serviceName: subnet.?delegation }
            }
          ]
        }
      }
    ]
  }
}

@description('Resource id of the virtual network.')
output vnetId string = vnet.id
@description('Resource ids of the subnets, by role.')
output subnetIds { *: string } = toObject(subnets, subnet => subnet.role, subnet => '${vnet.id}/subnets/${subnet.name}')
@description('Comma-separated CIDRs of the compute subnet.')
output computePrefixes string = prefixes.compute
