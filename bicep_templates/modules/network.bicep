metadata description = 'New virtual network: subnets by role, each with its own network security group, and a NAT gateway for egress.'

@description('What a subnet is for; decides its firewall rules.')
type subnetRole = 'server' | 'compute' | 'endpoints' | 'bastion' | 'netapp' | 'lustre' | 'database'

@description('One subnet: role, name, CIDR, resource provider it is delegated to, and whether its egress goes through the NAT gateway.')
type subnetType = {
  role: subnetRole
  name: string
  prefix: string
  delegation: string?
  usesNat: bool
}

@description('Azure region of all resources.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the virtual network; the names of its security groups and its NAT gateway begin with it.')
param vnetName string
@description('Address space of the virtual network (CIDR).')
param addressSpace string
@description('Subnets; roles are unique, `server`, `compute` and `endpoints` are required.')
param subnets subnetType[]
@description('Whether a NAT gateway gives the subnets that use it a way to the internet.')
param natGateway bool
@description('Who may reach the server by HTTPS and SSH: CIDRs, or one service tag. Empty: nobody but Bastion.')
param userSources string[]
@description('Who may reach nodes by SSH: CIDRs, or one service tag. Empty: nobody but Bastion and the server.')
param nodeUserSources string[]
@description('Whether a Windows VM in the server subnet is reached by RDP through Bastion and opens the portal.')
param jumpbox bool

var prefixes = toObject(subnets, subnet => subnet.role, subnet => subnet.prefix)
var server = [prefixes.server]
var compute = [prefixes.compute]
var bastion = contains(prefixes, 'bastion') ? [prefixes.bastion] : []
var netapp = contains(prefixes, 'netapp') ? [prefixes.netapp] : []
var lustre = contains(prefixes, 'lustre') ? [prefixes.lustre] : []
var database = contains(prefixes, 'database') ? [prefixes.database] : []
var lustrePorts = ['988', '1019-1023']

// The default rule AllowVnetInBound would let every peer and every subnet in. It stands at 65000; this one closes it.
var denyNetwork = {
  name: 'DenyVirtualNetworkInbound'
  priority: 4000
  direction: 'Inbound'
  access: 'Deny'
  protocol: '*'
  from: ['VirtualNetwork']
  to: '*'
  ports: ['*']
}

// Rules whose `from` is empty are left out: the subnet or the users that they would let in do not exist.
var rules = {
  server: [
    // Nodes report to 9443 (webServerClusterPort); the scheduler's autoscaler may also use the portal's port.
    { name: 'AllowNodes', priority: 100, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: compute, to: prefixes.server, ports: ['443', '9443'] }
    { name: 'AllowUsers', priority: 110, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: userSources, to: prefixes.server, ports: ['22', '443'] }
    { name: 'AllowBastion', priority: 120, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: bastion, to: prefixes.server, ports: jumpbox ? ['22', '443', '3389'] : ['22', '443'] }
    { name: 'AllowJumpbox', priority: 130, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: jumpbox ? server : [], to: prefixes.server, ports: ['22', '443'] }
    denyNetwork
  ]
  compute: [
    // MPI, NCCL, Slurm and the built-in NFS server use ports that are not fixed.
    { name: 'AllowNodes', priority: 100, direction: 'Inbound', access: 'Allow', protocol: '*', from: compute, to: prefixes.compute, ports: ['*'] }
    { name: 'AllowServer', priority: 110, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: server, to: prefixes.compute, ports: ['22'] }
    { name: 'AllowBastion', priority: 120, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: bastion, to: prefixes.compute, ports: ['22'] }
    { name: 'AllowUsers', priority: 130, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: nodeUserSources, to: prefixes.compute, ports: ['22'] }
    // Storage servers open connections back to their clients.
    { name: 'AllowLustre', priority: 140, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: lustre, to: prefixes.compute, ports: lustrePorts }
    // NFSv3 lock callbacks come back on ports that the client's port mapper hands out.
    { name: 'AllowNetApp', priority: 150, direction: 'Inbound', access: 'Allow', protocol: '*', from: netapp, to: prefixes.compute, ports: ['*'] }
    denyNetwork
  ]
  endpoints: [
    { name: 'AllowServerAndNodes', priority: 100, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: concat(server, compute), to: prefixes.endpoints, ports: ['443'] }
    denyNetwork
  ]
  // Azure refuses or breaks a Bastion without these eight. Ports 443 and 22 are what `az network bastion tunnel|ssh` reaches.
  // https://learn.microsoft.com/azure/bastion/bastion-nsg
  bastion: [
    { name: 'AllowHttpsInbound', priority: 100, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: ['Internet'], to: '*', ports: ['443'] }
    { name: 'AllowGatewayManagerInbound', priority: 110, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: ['GatewayManager'], to: '*', ports: ['443'] }
    { name: 'AllowAzureLoadBalancerInbound', priority: 120, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: ['AzureLoadBalancer'], to: '*', ports: ['443'] }
    { name: 'AllowBastionHostsInbound', priority: 130, direction: 'Inbound', access: 'Allow', protocol: '*', from: ['VirtualNetwork'], to: 'VirtualNetwork', ports: ['8080', '5701'] }
    denyNetwork
    { name: 'AllowTargetsOutbound', priority: 100, direction: 'Outbound', access: 'Allow', protocol: '*', from: ['*'], to: 'VirtualNetwork', ports: ['22', '443', '3389'] }
    { name: 'AllowAzureCloudOutbound', priority: 110, direction: 'Outbound', access: 'Allow', protocol: 'Tcp', from: ['*'], to: 'AzureCloud', ports: ['443'] }
    { name: 'AllowBastionHostsOutbound', priority: 120, direction: 'Outbound', access: 'Allow', protocol: '*', from: ['VirtualNetwork'], to: 'VirtualNetwork', ports: ['8080', '5701'] }
    { name: 'AllowSessionInformationOutbound', priority: 130, direction: 'Outbound', access: 'Allow', protocol: '*', from: ['*'], to: 'Internet', ports: ['80'] }
  ]
  netapp: [
    // NFSv3: port mapper, mount, nfs, lock manager, status monitor, quota.
    { name: 'AllowNodes', priority: 100, direction: 'Inbound', access: 'Allow', protocol: '*', from: compute, to: prefixes.?netapp, ports: ['111', '635', '2049', '4045', '4046', '4049'] }
    { name: 'AllowOwnSubnet', priority: 110, direction: 'Inbound', access: 'Allow', protocol: '*', from: netapp, to: prefixes.?netapp, ports: ['*'] }
    denyNetwork
  ]
  // https://learn.microsoft.com/azure/azure-managed-lustre/configure-network-security-group
  lustre: [
    { name: 'AllowOwnSubnet', priority: 100, direction: 'Inbound', access: 'Allow', protocol: '*', from: lustre, to: prefixes.?lustre, ports: ['*'] }
    { name: 'AllowNodes', priority: 110, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: compute, to: prefixes.?lustre, ports: lustrePorts }
    { name: 'AllowAzureMonitor', priority: 120, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: ['AzureMonitor'], to: 'VirtualNetwork', ports: ['*'] }
    denyNetwork
  ]
  database: [
    { name: 'AllowNodes', priority: 100, direction: 'Inbound', access: 'Allow', protocol: 'Tcp', from: compute, to: prefixes.?database, ports: ['3306'] }
    { name: 'AllowOwnSubnet', priority: 110, direction: 'Inbound', access: 'Allow', protocol: '*', from: database, to: prefixes.?database, ports: ['*'] }
    denyNetwork
  ]
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

resource securityGroups 'Microsoft.Network/networkSecurityGroups@2025-05-01' = [
  for subnet in subnets: {
    name: '${vnetName}-${subnet.role}-nsg'
    location: location
    tags: tags
    properties: {
      securityRules: map(filter(rules[subnet.role], rule => !empty(rule.from)), rule => {
        name: rule.name
        properties: {
          priority: rule.priority
          direction: rule.direction
          access: rule.access
          protocol: rule.protocol
          // Azure takes a service tag only in the singular property, several CIDRs only in the plural one.
          sourceAddressPrefix: length(rule.from) == 1 ? rule.from[0] : null
          sourceAddressPrefixes: length(rule.from) == 1 ? null : rule.from
          sourcePortRange: '*'
          destinationAddressPrefix: rule.to
          destinationPortRanges: rule.ports
        }
      })
    }
  }
]

resource vnet 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: vnetName
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: [addressSpace] }
    subnets: [
      for (subnet, index) in subnets: {
        name: subnet.name
        properties: {
          addressPrefix: subnet.prefix
          defaultOutboundAccess: false
          networkSecurityGroup: { id: securityGroups[index].id }
          natGateway: natGateway && subnet.usesNat ? { id: nat.id } : null
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
