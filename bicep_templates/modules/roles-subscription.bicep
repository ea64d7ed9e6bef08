targetScope = 'subscription'

metadata description = 'Lets the server read what exists only at subscription scope: VM sizes, zones, usage and quota, prices.'

@description('Object id of the server\'s identity.')
param serverPrincipalId string

@description('Built-in role "Reader".')
var reader = 'acdd72a7-3385-48ef-bd42-f606fba81ae7'

resource serverReads 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(subscription().id, serverPrincipalId, reader)
  properties: {
    principalId: serverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', reader)
  }
}

@description('Name of the role assignment; it remains when the resource group is deleted.')
output assignment string = serverReads.name
