metadata description = 'Link from an existing private DNS zone to one virtual network; deploy it in the resource group of the zone.'

@description('Tags of the link.')
param tags object
@description('Name of the existing zone.')
param zoneName string
@description('Name of the link, unique in the zone.')
param linkName string
@description('Resource id of the virtual network that resolves the zone.')
param vnetId string
@description('Whether a name that the zone lacks is looked up on the internet: only for zones whose name begins with `privatelink`.')
param fallsBack bool

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' existing = {
  name: zoneName
}

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = {
  parent: zone
  name: linkName
  location: 'global'
  tags: tags
  properties: {
    registrationEnabled: false
    virtualNetwork: { id: vnetId }
    // Without it every endpoint of the same service that another zone or nobody registers cannot be resolved any more.
    resolutionPolicy: fallsBack ? 'NxDomainRedirect' : null
  }
}

@description('Resource id of the zone.')
output id string = zone.id
