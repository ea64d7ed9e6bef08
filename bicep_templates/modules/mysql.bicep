metadata description = 'MySQL flexible server with private access for Slurm accounting.'

@description('Azure region.')
param location string
@description('Tags of the server.')
param tags object
@description('Name of the server, unique in Azure: 3 to 63 lower-case letters, digits and hyphens.')
@minLength(3)
@maxLength(63)
param name string
@description('Compute size, for example `Standard_B2ms`.')
param skuName string
@description('Compute tier of that size.')
@allowed(['Burstable', 'GeneralPurpose', 'MemoryOptimized'])
param skuTier string
@description('Storage in GiB; it grows automatically when it fills up.')
param storageGib int
@description('MySQL version, for example `8.4`.')
param version string
@description('Name of the administrator; slurmdbd logs in as this user.')
param administratorLogin string
@description('Password of the administrator: 8 to 128 characters of three of the four kinds lower case, upper case, digits and symbols, without any part of the name.')
@secure()
@minLength(8)
@maxLength(128)
param administratorPassword string
@description('Name of the accounting database.')
param databaseName string
@description('Resource id of the subnet delegated to Microsoft.DBforMySQL/flexibleServers.')
param subnetId string
@description('Resource id of the private DNS zone, already linked to the network.')
param dnsZoneId string
@description('Resource id of the Log Analytics workspace that gets the logs; null for none.')
param workspaceId string?

resource server 'Microsoft.DBforMySQL/flexibleServers@2024-12-30' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: skuName
    tier: skuTier
  }
  properties: {
    administratorLogin: administratorLogin
    administratorLoginPassword: administratorPassword
    version: version
    storage: {
      storageSizeGB: storageGib
      autoGrow: 'Enabled'
    }
    backup: {
      backupRetentionDays: 7
      geoRedundantBackup: 'Disabled'
    }
    highAvailability: { mode: 'Disabled' }
    network: {
      delegatedSubnetResourceId: subnetId
      privateDnsZoneResourceId: dnsZoneId
      publicNetworkAccess: 'Disabled'
    }
  }
}

// slurmdbd requires it when it starts. Source: https://slurm.schedmd.com/accounting.html#slurm-accounting-configuration-before-build
resource lockWait 'Microsoft.DBforMySQL/flexibleServers/configurations@2024-12-30' = {
  parent: server
  name: 'innodb_lock_wait_timeout'
  properties: {
    source: 'user-override'
    value: '900'
  }
}

resource database 'Microsoft.DBforMySQL/flexibleServers/databases@2024-12-30' = {
  parent: server
  name: databaseName
  properties: {
    charset: 'utf8mb4'
    collation: 'utf8mb4_0900_ai_ci'
  }
  // The server takes one change at a time.
  dependsOn: [lockWait]
}

resource serverLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (workspaceId != null) {
  name: 'cycleforge'
  scope: server
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

@description('Host name of the server, resolved by the private DNS zone.')
output host string = server.properties.fullyQualifiedDomainName
@description('Name of the accounting database.')
output databaseName string = database.name
