metadata description = 'Storage account with blob containers for data and checkpoints: no keys, no public blobs.'

@description('Azure region.')
param location string
@description('Tags of the account.')
param tags object
@description('Name of the storage account: 3 to 24 lower-case letters and digits, unique in Azure.')
@minLength(3)
@maxLength(24)
param accountName string
@description('Storage SKU, for example `Standard_LRS`.')
param redundancy string
@description('Names of the containers.')
@minLength(1)
param containerNames string[]
@description('Whether private endpoints are the only way to the account.')
param isPrivate bool
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
    isHnsEnabled: false
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
    // Policies of landing zones refuse `None`. Nothing else gets in where there is no public access.
    networkAcls: {
      defaultAction: isPrivate ? 'Deny' : 'Allow'
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
  // A container that was deleted by mistake can be brought back for a week. Blobs cannot: every checkpoint that a job
  // removes to make room would be paid for a week longer.
  properties: {
    deleteRetentionPolicy: { enabled: false }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: 7
    }
  }
}

resource containers 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = [
  for name in containerNames: {
    parent: blobService
    name: name
    properties: {
      publicAccess: 'None'
    }
  }
]

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
