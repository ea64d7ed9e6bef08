metadata description = 'Windows VM without a public address, whose browser reaches the portal.'

@description('Marketplace image; it must be generation 2.')
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
@description('Name of the VM.')
param name string
@description('Windows computer name; at most 15 characters.')
@maxLength(15)
param computerName string
@description('VM size, for example `Standard_D2as_v5`.')
param vmSize string
@description('Image of the VM.')
param image marketplaceImage
@description('Name of the administrator.')
param adminUsername string
@description('Password of the administrator: 12 to 123 characters.')
@secure()
@minLength(12)
@maxLength(123)
param adminPassword string
@description('Resource id of the server subnet.')
param subnetId string
@description('Whether the host encrypts temporary disks and caches, too.')
param encryptionAtHost bool = false
@description('Resource id of the disk encryption set for all disks; null for keys of the platform.')
param diskEncryptionSetId string?

resource nic 'Microsoft.Network/networkInterfaces@2025-05-01' = {
  name: '${name}-nic'
  location: location
  tags: tags
  properties: {
    ipConfigurations: [
      {
        name: 'default'
        properties: {
          subnet: { id: subnetId }
          privateIPAllocationMethod: 'Dynamic'
        }
      }
    ]
  }
}

resource vm 'Microsoft.Compute/virtualMachines@2025-04-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    hardwareProfile: { vmSize: vmSize }
    // Says that its users are licensed for Windows. Without it Azure bills, and shows, a VM without a licence.
    // Source: https://learn.microsoft.com/azure/virtual-machines/windows/windows-desktop-multitenant-hosting-deployment
    licenseType: 'Windows_Client'
    // Windows 11 requires Trusted Launch. Encryption at host is left out where it is off: `false` needs the feature, too.
    securityProfile: union(
      {
        securityType: 'TrustedLaunch'
        uefiSettings: {
          secureBootEnabled: true
          vTpmEnabled: true
        }
      },
      encryptionAtHost ? { encryptionAtHost: true } : {}
    )
    storageProfile: {
      imageReference: image
      osDisk: {
        createOption: 'FromImage'
        caching: 'ReadWrite'
        deleteOption: 'Delete'
        managedDisk: union(
          { storageAccountType: 'StandardSSD_LRS' },
          diskEncryptionSetId == null ? {} : { diskEncryptionSet: { id: diskEncryptionSetId } }
        )
      }
    }
    osProfile: {
      computerName: computerName
      adminUsername: adminUsername
      adminPassword: adminPassword
      windowsConfiguration: {
        enableAutomaticUpdates: true
        provisionVMAgent: true
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
    diagnosticsProfile: {
      bootDiagnostics: { enabled: true }
    }
  }
}

@description('Resource id of the VM.')
output id string = vm.id
@description('Name of the VM.')
output name string = vm.name
