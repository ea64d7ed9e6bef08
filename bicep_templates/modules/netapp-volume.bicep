metadata description = 'One NFSv3 volume in a capacity pool of its own size and service level.'

@description('Azure region.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the NetApp Files account.')
param accountName string
@description('Name of the pool and of its volume.')
param name string
@description('Service level of the pool.')
@allowed(['Standard', 'Premium', 'Ultra', 'Flexible'])
param serviceLevel string
@description('Size of the pool in TiB; whole TiB.')
param poolSizeTib int
@description('Size of the volume in GiB.')
param volumeSizeGib int
@description('Throughput of pool and volume in MiB/s; only for the service level Flexible, otherwise null.')
param throughputMibps int?
@description('Whether it is a large volume: 50 TiB or more.')
param largeVolume bool = false
@description('Last part of the export path, unique in the subnet: the volume is `<address>:/<exportName>`.')
param exportName string
@description('Resource id of the subnet delegated to Microsoft.Netapp/volumes.')
param subnetId string
@description('Comma-separated CIDRs of the clients that may mount the volume.')
param allowedClients string
@description('Availability zone; null lets Azure choose.')
param zone string?

resource account 'Microsoft.NetApp/netAppAccounts@2025-12-01' existing = {
  name: accountName
}

resource pool 'Microsoft.NetApp/netAppAccounts/capacityPools@2025-12-01' = {
  parent: account
  name: name
  location: location
  tags: tags
  properties: {
    serviceLevel: serviceLevel
    size: poolSizeTib * 1099511627776
    qosType: throughputMibps == null ? 'Auto' : 'Manual'
    ...(throughputMibps == null ? {} : { customThroughputMibps: throughputMibps! })
  }
}

resource volume 'Microsoft.NetApp/netAppAccounts/capacityPools/volumes@2025-12-01' = {
  parent: pool
  name: name
  location: location
  tags: tags
  zones: zone == null ? null : [zone!]
  properties: {
    creationToken: exportName
    usageThreshold: volumeSizeGib * 1073741824
    // Left out, Azure takes Premium, whatever the pool is.
    serviceLevel: serviceLevel
    ...(largeVolume ? { isLargeVolume: true } : {})
    // In a pool with automatic QoS, Azure refuses any value, null too.
    ...(throughputMibps == null ? {} : { throughputMibps: throughputMibps! })
    subnetId: subnetId
    protocolTypes: ['NFSv3']
    networkFeatures: 'Standard'
    unixPermissions: '0755'
    exportPolicy: {
      rules: [
        {
          ruleIndex: 1
          allowedClients: allowedClients
          nfsv3: true
          nfsv41: false
          cifs: false
          unixReadOnly: false
          unixReadWrite: true
          // Nodes create home directories as root.
          hasRootAccess: true
          chownMode: 'Restricted'
        }
      ]
    }
  }
}

@description('IPv4 address from which nodes mount the volume.')
output address string = volume.properties.mountTargets[0].ipAddress
