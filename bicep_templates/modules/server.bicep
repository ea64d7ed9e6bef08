metadata description = 'The CycleCloud server: VM, network interface and, if it is public, an address with its own firewall.'

@description('Marketplace image; its SKU is also the name of the plan.')
type marketplaceImage = {
  publisher: string
  offer: string
  sku: string
  version: string
}

@description('Azure region.')
param location string
@description('Tags of all resources.')
param tags object
@description('Name of the VM and its host name; at most 64 characters.')
@maxLength(64)
param name string
@description('VM size, for example `Standard_D4as_v5`.')
param vmSize string
@description('Marketplace image with its plan; null with a custom image.')
param image marketplaceImage?
@description('Version of the marketplace image that an existing VM was created from; empty for a new VM.')
param createdFromVersion string = ''
@description('Resource id of a custom image; null with a marketplace image.')
param imageId string?
@description('Size of the OS disk in GiB; null for the size of the image.')
param osDiskGb int?
@description('Size of an empty data disk in GiB for a custom image; null for none. A marketplace image includes its own.')
param dataDiskGb int?
@description('Name of the administrator.')
param adminUsername string
@description('SSH public key of the administrator; Azure refuses another one for an existing VM. Password logins are off.')
param sshPublicKey string
@description('cloud-init user data, base64.')
param customData string
@description('Resource id of the server subnet.')
param subnetId string
@description('Whether the server gets a public address.')
param publicAccess bool
@description('CIDRs that may reach the public address; none may contain another.')
param allowedSources string[]
@description('TCP ports of the server that they may reach.')
param userPorts string[]
@description('Whether the host encrypts temporary disks and caches, too.')
param encryptionAtHost bool = false
@description('Resource id of the disk encryption set for all disks; null for keys of the platform.')
param diskEncryptionSetId string?

// Keys of the platform are the default, and a disk says nothing of them.
var ownKey = diskEncryptionSetId == null ? {} : { diskEncryptionSet: { id: diskEncryptionSetId } }
// CycleCloud's datastore is on the data disk, which outlives the VM ("Detach"), while OS disk and network interface hold
// nothing that a new VM does not bring. Without a name Azure gives a re-created VM a fresh disk beside the kept one.
var imageDisks = [
  {
    lun: 0
    createOption: 'FromImage'
    caching: 'None'
    deleteOption: 'Detach'
    managedDisk: union({ storageAccountType: 'Premium_LRS' }, ownKey)
  }
]
var emptyDisks = [
  {
    lun: 0
    createOption: 'Empty'
    diskSizeGB: dataDiskGb
    caching: 'None'
    deleteOption: 'Detach'
    managedDisk: union({ storageAccountType: 'Premium_LRS' }, ownKey)
  }
]

resource address 'Microsoft.Network/publicIPAddresses@2025-05-01' = if (publicAccess) {
  name: '${name}-ip'
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: {
    publicIPAllocationMethod: 'Static'
  }
}

// In an existing network, whose subnet may have no security group, only the listed sources are allowed too.
resource securityGroup 'Microsoft.Network/networkSecurityGroups@2025-05-01' = if (publicAccess) {
  name: '${name}-nsg'
  location: location
  tags: tags
  properties: {
    securityRules: [
      {
        name: 'AllowUsers'
        properties: {
          priority: 100
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: length(allowedSources) == 1 ? allowedSources[0] : null
          sourceAddressPrefixes: length(allowedSources) == 1 ? null : allowedSources
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: length(userPorts) == 1 ? userPorts[0] : null
          destinationPortRanges: length(userPorts) == 1 ? null : userPorts
        }
      }
    ]
  }
}

resource nic 'Microsoft.Network/networkInterfaces@2025-05-01' = {
  name: '${name}-nic'
  location: location
  tags: tags
  properties: {
    networkSecurityGroup: publicAccess ? { id: securityGroup.id } : null
    ipConfigurations: [
      {
        name: 'default'
        properties: {
          subnet: { id: subnetId }
          privateIPAllocationMethod: 'Dynamic'
          publicIPAddress: publicAccess ? { id: address.id } : null
        }
      }
    ]
  }
}

// No Trusted Launch: the marketplace image does not say that it supports it, and Azure refuses a VM that asks for it
// with an image that does not. Encryption at host is left out where it is off: `false` needs the feature, too.
resource vm 'Microsoft.Compute/virtualMachines@2025-04-01' = {
  name: name
  location: location
  tags: tags
  identity: { type: 'SystemAssigned' }
  plan: image == null
    ? null
    : {
        publisher: image!.publisher
        product: image!.offer
        name: image!.sku
      }
  properties: {
    hardwareProfile: { vmSize: vmSize }
    securityProfile: encryptionAtHost ? { encryptionAtHost: true } : null
    storageProfile: {
      // An upgraded server keeps the image that it was created from: Azure refuses to change it.
      imageReference: image == null
        ? { id: imageId }
        : union(image!, empty(createdFromVersion) ? {} : { version: createdFromVersion })
      osDisk: {
        createOption: 'FromImage'
        caching: 'ReadWrite'
        diskSizeGB: osDiskGb
        deleteOption: 'Delete'
        managedDisk: union({ storageAccountType: 'StandardSSD_LRS' }, ownKey)
      }
      dataDisks: image != null ? imageDisks : (dataDiskGb == null ? [] : emptyDisks)
    }
    osProfile: {
      computerName: name
      adminUsername: adminUsername
      customData: customData
      linuxConfiguration: {
        disablePasswordAuthentication: true
        provisionVMAgent: true
        ssh: {
          publicKeys: [
            {
              path: '/home/${adminUsername}/.ssh/authorized_keys'
              keyData: sshPublicKey
            }
          ]
        }
      }
    }
    networkProfile: {
      networkInterfaces: [
        {
          id: nic.id
          properties: {
            primary: true
            deleteOption: 'Delete'
          }
        }
      ]
    }
    // Serial console and boot log on storage that Azure manages.
    diagnosticsProfile: {
      bootDiagnostics: { enabled: true }
    }
  }
}

@description('Resource id of the VM.')
output id string = vm.id
@description('Name of the VM.')
output name string = vm.name
@description('Object id of the VM\'s system-assigned identity.')
output principalId string = vm.identity.principalId
@description('Private IPv4 address of the VM.')
output privateIp string = nic.properties.ipConfigurations[0].properties.privateIPAddress
@description('Public IPv4 address of the VM; empty without one.')
output publicIp string = publicAccess ? address!.properties.ipAddress : ''
