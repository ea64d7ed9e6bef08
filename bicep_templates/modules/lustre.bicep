metadata description = 'Azure Managed Lustre file system.'

@description('Azure region.')
param location string
@description('Tags of the file system.')
param tags object
@description('Name of the file system.')
param name string
@description('SKU: `AMLFS-Durable-Premium-` and the throughput in MB/s per TiB.')
param skuName string
@description('Capacity in TiB; a multiple of the step of the SKU.')
param capacityTib int
@description('Availability zone; null in a region without zones.')
param zone string?
@description('Resource id of the subnet, which must contain nothing else.')
param subnetId string

resource fileSystem 'Microsoft.StorageCache/amlFilesystems@2026-01-01' = {
  name: name
  location: location
  tags: tags
  sku: { name: skuName }
  zones: zone == null ? null : [zone!]
  properties: {
    filesystemSubnet: subnetId
    storageCapacityTiB: capacityTib
    maintenanceWindow: {
      dayOfWeek: 'Saturday'
      timeOfDayUTC: '23:00'
    }
  }
}

@description('IPv4 address of the management server, from which nodes mount the file system.')
output address string = fileSystem.properties.clientInfo.mgsAddress
