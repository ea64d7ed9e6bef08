metadata description = 'What the server and the nodes may do in the resource group of the deployment.'

@description('Object id of the server\'s identity.')
param serverPrincipalId string
@description('Object id of the identity that nodes use.')
param nodePrincipalId string
@description('Name of the storage account that holds the locker.')
param lockerAccountName string

// An assignment's principal cannot be changed. With the object id in its name, an identity that was re-created gets a
// new assignment instead of a conflict with the old one's.

@description('Built-in role "Contributor": create and delete nodes, disks and network interfaces, and give them the node identity.')
var contributor = 'b24988ac-6180-42a0-ab88-20f7382dd24c'
@description('Built-in role "Storage Blob Data Contributor".')
var blobContributor = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
@description('Built-in role "Storage Blob Data Reader".')
var blobReader = '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1'

resource locker 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: lockerAccountName
}

resource serverManages 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, serverPrincipalId, contributor)
  properties: {
    principalId: serverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', contributor)
  }
}

resource serverWritesLocker 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(locker.id, serverPrincipalId, blobContributor)
  scope: locker
  properties: {
    principalId: serverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', blobContributor)
  }
}

resource nodesReadLocker 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(locker.id, nodePrincipalId, blobReader)
  scope: locker
  properties: {
    principalId: nodePrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', blobReader)
  }
}

@description('Names of the role assignments.')
output assignments string[] = [serverManages.name, serverWritesLocker.name, nodesReadLocker.name]
