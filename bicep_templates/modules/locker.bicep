metadata description = 'Storage account of the CycleCloud locker and its container: no keys, no public access.'

@description('Azure region.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the storage account: 3 to 24 lower-case letters and digits, unique in Azure.')
@minLength(3)
@maxLength(24)
param accountName string
@description('Storage SKU, for example `Standard_LRS`.')
param redundancy string
@description('Name of the container that CycleCloud uses as its locker.')
param containerName string
@description('Whether the account encrypts twice; only a new account takes it.')
param infrastructureEncryption bool = false
@description('Resource id of the Log Analytics workspace that gets the logs; null for none.')
param workspaceId string?

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: accountName
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: redundancy }
  properties: {
    accessTier: 'Hot'
    // CycleCloud does not support a locker with a hierarchical namespace.
    isHnsEnabled: false
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: 'Disabled'
    // Policies of landing zones refuse `None`. Nothing else gets in: there is no public access.
    networkAcls: {
      defaultAction: 'Deny'
      bypass: 'AzureServices'
    }
    encryption: infrastructureEncryption
      ? {
          keySource: 'Microsoft.Storage'
          requireInfrastructureEncryption: true
          services: { blob: { enabled: true } }
        }
      : null
  }
}

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-06-01' = {
  parent: account
  name: 'default'
  // What was deleted or overwritten by mistake can be brought back for a week, and is paid for as long.
  properties: {
    deleteRetentionPolicy: {
      enabled: true
      days: 7
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: 7
    }
  }
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobService
  name: containerName
  properties: {
    publicAccess: 'None'
  }
}

resource blobLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (workspaceId != null) {
  name: 'cycleforge'
  scope: blobService
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

@description('Resource id of the storage account.')
output id string = account.id
@description('Name of the storage account.')
output name string = account.name
@description('Name of the locker container.')
output containerName string = container.name
