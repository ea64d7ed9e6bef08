metadata description = 'Lets nodes read the locker of an existing CycleCloud server; deploy it in the resource group of the locker.'

@description('Object id of the identity that nodes use.')
param nodePrincipalId string
@description('Name of the storage account that holds the locker.')
param lockerAccountName string

@description('Built-in role "Storage Blob Data Reader".')
var blobReader = '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1'

resource locker 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: lockerAccountName
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

@description('Name of the role assignment; it remains when the deployment\'s resource group is deleted.')
output assignment string = nodesReadLocker.name
