metadata description = 'One direction of a peering between two virtual networks; deploy it in the resource group of the local one.'

@description('Name of the virtual network that gets the peering.')
param localVnetName string
@description('Resource id of the virtual network on the other side.')
param remoteVnetId string
@description('Name of the peering, unique in the local network; at most 80 characters.')
@maxLength(80)
param peeringName string
@description('Whether the other side may use the gateway of the local network.')
param allowGatewayTransit bool
@description('Whether the local network uses the gateway of the other side, which must allow it first.')
param useRemoteGateways bool

@description('Whether traffic is accepted that the other side forwards, for example from a firewall.')
param allowForwardedTraffic bool

resource vnet 'Microsoft.Network/virtualNetworks@2025-05-01' existing = {
  name: localVnetName
}

resource peering 'Microsoft.Network/virtualNetworks/virtualNetworkPeerings@2025-05-01' = {
  parent: vnet
  name: peeringName
  properties: {
    remoteVirtualNetwork: { id: remoteVnetId }
    allowVirtualNetworkAccess: true
    allowForwardedTraffic: allowForwardedTraffic
    allowGatewayTransit: allowGatewayTransit
    useRemoteGateways: useRemoteGateways
  }
}

@description('Resource id of the peering.')
output id string = peering.id
