metadata description = 'Looks up an existing virtual network and its subnets; creates nothing.'

@description('Name of the virtual network.')
param vnetName string
@description('Names of the subnets, by role; `compute` is required.')
param subnetNames { compute: string, *: string }
@description('CIDRs of further subnets of nodes, each behind a comma.')
param morePrefixes string = ''

resource vnet 'Microsoft.Network/virtualNetworks@2025-05-01' existing = {
  name: vnetName

  resource compute 'subnets' existing = {
    name: subnetNames.compute
  }
}

// Reading the subnet makes a misspelt network or subnet fail here, before anything costly is created.
var own = join(vnet::compute.properties.?addressPrefixes ?? [vnet::compute.properties.addressPrefix], ',')

@description('Resource id of the virtual network.')
output vnetId string = vnet.id
@description('Resource ids of the subnets, by role.')
output subnetIds { *: string } = mapValues(subnetNames, name => '${vnet.id}/subnets/${name}')
@description('Comma-separated CIDRs of the subnets of nodes.')
output computePrefixes string = '${own}${morePrefixes}'
