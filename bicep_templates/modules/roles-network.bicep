metadata description = 'Lets the server join nodes to one subnet of an existing network; deploy it in the resource group of the network.'

@description('Object id of the server\'s identity.')
param serverPrincipalId string
@description('Name of the virtual network.')
param vnetName string
@description('Name of the subnet of the nodes.')
param computeSubnetName string
@description('Whether the server reads the network, too; the other calls for the same network leave it out.')
param readsNetwork bool = true

@description('Built-in role "Reader".')
var reader = 'acdd72a7-3385-48ef-bd42-f606fba81ae7'
// On a subnet it can join network interfaces and nothing else; "Network Contributor" could also change the subnet.
// https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/compute#virtual-machine-contributor
@description('Built-in role "Virtual Machine Contributor".')
var vmContributor = '9980e02c-c2be-4d73-94e8-173b1dc7cf3c'

resource vnet 'Microsoft.Network/virtualNetworks@2025-05-01' existing = {
  name: vnetName

  resource compute 'subnets' existing = {
    name: computeSubnetName
  }
}

resource serverReads 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (readsNetwork) {
  name: guid(vnet.id, serverPrincipalId, reader)
  scope: vnet
  properties: {
    principalId: serverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', reader)
  }
}

resource serverJoins 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(vnet::compute.id, serverPrincipalId, vmContributor)
  scope: vnet::compute
  properties: {
    principalId: serverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', vmContributor)
  }
}

@description('Names of the role assignments; they remain when the deployment\'s resource group is deleted.')
output assignments string[] = readsNetwork ? [serverReads.name, serverJoins.name] : [serverJoins.name]
