metadata description = 'User-assigned identity that nodes use to read the locker and to publish metrics.'

@description('Azure region.')
param location string
@description('Tags of the identity.')
param tags object
@description('Name of the identity.')
param name string

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

@description('Resource id of the identity.')
output id string = identity.id
@description('Client id of the identity.')
output clientId string = identity.properties.clientId
@description('Object id of the identity.')
output principalId string = identity.properties.principalId
