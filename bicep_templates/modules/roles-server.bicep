metadata description = 'Lets an existing CycleCloud server manage the resource group of a deployment.'

@description('Object id of the server\'s identity.')
param serverPrincipalId string

@description('Built-in role "Contributor": join nodes to subnets of a new network, and give them the node identity.')
var contributor = 'b24988ac-6180-42a0-ab88-20f7382dd24c'

resource serverManages 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, serverPrincipalId, contributor)
  properties: {
    principalId: serverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', contributor)
  }
}

@description('Name of the role assignment.')
output assignment string = serverManages.name
