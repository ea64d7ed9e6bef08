metadata description = 'Private endpoint for the blob service of a storage account, registered in a private DNS zone if one is given.'

@description('Azure region of the virtual network.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the private endpoint; its network interface gets the suffix `-nic`.')
param name string
@description('Resource id of the subnet for the endpoint.')
param subnetId string
@description('Resource id of the storage account.')
param storageAccountId string
@description('Resource id of the private DNS zone for blobs; null if the name is resolved by other means.')
param dnsZoneId string?

resource endpoint 'Microsoft.Network/privateEndpoints@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: { id: subnetId }
    customNetworkInterfaceName: '${name}-nic'
    privateLinkServiceConnections: [
      {
        name: 'blob'
        properties: {
          privateLinkServiceId: storageAccountId
          groupIds: ['blob']
        }
      }
    ]
  }
}

resource zoneGroup 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = if (dnsZoneId != null) {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: 'blob'
        properties: { privateDnsZoneId: dnsZoneId }
      }
    ]
  }
}

@description('Resource id of the private endpoint.')
output id string = endpoint.id
