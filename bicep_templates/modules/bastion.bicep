metadata description = 'Azure Bastion with tunnels, so that `az network bastion tunnel` and `ssh` work.'

@description('Azure region.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the Bastion host.')
param name string
@description('Resource id of the subnet AzureBastionSubnet.')
param subnetId string
@description('Resource id of the Log Analytics workspace that gets the logs; null for none.')
param workspaceId string?

resource address 'Microsoft.Network/publicIPAddresses@2025-05-01' = {
  name: '${name}-ip'
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: {
    publicIPAllocationMethod: 'Static'
  }
}

// The Basic SKU does not support tunnels.
resource bastion 'Microsoft.Network/bastionHosts@2025-05-01' = {
  name: name
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: {
    enableTunneling: true
    ipConfigurations: [
      {
        name: 'default'
        properties: {
          subnet: { id: subnetId }
          publicIPAddress: { id: address.id }
        }
      }
    ]
  }
}

resource sessions 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (workspaceId != null) {
  name: 'cycleforge'
  scope: bastion
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

@description('Name of the Bastion host.')
output name string = bastion.name
