metadata description = 'New virtual network: subnets by role, each with its own network security group, and a NAT gateway for egress.'

@description('What a subnet is for.')
type subnetRole = 'server' | 'compute' | 'endpoints' | 'bastion' | 'netapp' | 'lustre' | 'database'

@description('One subnet: role, what makes it differ from others of its role, name, CIDR, resource provider it is delegated to, whether its egress goes through the NAT gateway, whether it has the route table.')
type subnetType = {
  role: subnetRole
  suffix: string?
  name: string
  prefix: string
  delegation: string?
  usesNat: bool
  isRouted: bool?
}

@description('One rule. Sources and destinations: CIDRs of which none contains another, or alone one service tag or `*`; ports: of the destination, `*` alone.')
type securityRule = {
  name: string
  description: string
  priority: int
  direction: 'Inbound' | 'Outbound'
  access: 'Allow' | 'Deny'
  protocol: 'Tcp' | 'Udp' | '*'
  sources: string[]
  destinations: string[]
  ports: string[]
}

@description('Azure region of all resources.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the virtual network; the names of its security groups and its NAT gateway begin with it.')
param vnetName string
@description('Address space of the virtual network (CIDR).')
param addressSpace string
@description('Subnets; role and suffix together are unique, `compute` without one is required.')
param subnets subnetType[]
@description('Whether to create a NAT gateway for outbound internet access of the subnets that use it.')
param natGateway bool
@description('DNS servers of all VMs (IPv4 addresses); empty for those of Azure.')
param dnsServers string[] = []
@description('Private address of a firewall that all traffic to other networks goes through; null for none.')
param nextHop string?
@description('Resource id of an existing route table; null for none, or where `nextHop` is given.')
param routeTableId string?
@description('Rules of the security groups, by role and suffix of the subnet; they are printed as they are.')
param securityRules { *: securityRule[] }
@description('Resource id of the Log Analytics workspace that gets the logs; null for none.')
param workspaceId string?

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
    name: '${vnetName}-${subnet.role}${subnet.?suffix ?? ''}-nsg'
    location: location
    tags: tags
    properties: {
      securityRules: map(securityRules['${subnet.role}${subnet.?suffix ?? ''}'], rule => {
        name: rule.name
        properties: {
          description: rule.description
          priority: rule.priority
          direction: rule.direction
          access: rule.access
          protocol: rule.protocol
          // Azure accepts `*` and service tags only in the singular properties, several entries only in the plural ones.
          sourceAddressPrefix: length(rule.sources) == 1 ? rule.sources[0] : null
          sourceAddressPrefixes: length(rule.sources) == 1 ? null : rule.sources
          sourcePortRange: '*'
          destinationAddressPrefix: length(rule.destinations) == 1 ? rule.destinations[0] : null
          destinationAddressPrefixes: length(rule.destinations) == 1 ? null : rule.destinations
          destinationPortRange: length(rule.ports) == 1 ? rule.ports[0] : null
          destinationPortRanges: length(rule.ports) == 1 ? null : rule.ports
        }
      })
    }
  }
]

// They have logs and no metrics.
resource groupLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = [
  for (subnet, index) in subnets: if (workspaceId != null) {
    name: 'cycleforge'
    scope: securityGroups[index]
    properties: {
      workspaceId: workspaceId
      logs: [
        {
          categoryGroup: 'allLogs'
          enabled: true
        }
      ]
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
          // Azure ignores it where the subnet is delegated: what is in it leaves on ways of its service.
          // https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access
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
@description('Resource ids of the subnets, by role and suffix.')
output subnetIds { *: string } = toObject(subnets, subnet => '${subnet.role}${subnet.?suffix ?? ''}', subnet => '${vnet.id}/subnets/${subnet.name}')
@description('Comma-separated CIDRs of the subnets of nodes.')
output computePrefixes string = join(map(filter(subnets, subnet => subnet.role == 'compute'), subnet => subnet.prefix), ',')
