metadata description = 'Lets nodes read and write one blob container.'

@description('Name of the storage account.')
param accountName string
@description('Name of the container.')
param containerName string
@description('Object id of the identity that nodes use.')
param nodePrincipalId string

@description('Built-in role "Storage Blob Data Contributor".')
var blobContributor = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: accountName
}

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-06-01' existing = {
  parent: account
  name: 'default'
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' existing = {
  parent: blobService
  name: containerName
}

// An assignment's principal cannot be changed: an identity that was re-created gets a new one.
resource nodesUse 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(container.id, nodePrincipalId, blobContributor)
  scope: container
  properties: {
    principalId: nodePrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', blobContributor)
  }
}

@description('Name of the role assignment.')
output assignment string = nodesUse.name
