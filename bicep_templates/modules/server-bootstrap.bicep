metadata description = 'Runs the first-boot program on the server; if it fails, the deployment fails.'

@description('Azure region.')
param location string
@description('Tags of the extension.')
param tags object
@description('Name of the server VM.')
param vmName string
@description('What the program must know and only the deployment knows; not secret.')
param facts object
@description('Passwords, by name; they are encrypted and reach nothing except the VM.')
@secure()
param secrets object
@description('Text of the script that fetches and starts the rest (POSIX sh).')
param startScript string
@description('sha256 of what the server installs, and the number of the run; a new value runs the program again.')
param contentHash string

resource vm 'Microsoft.Compute/virtualMachines@2025-04-01' existing = {
  name: vmName
}

// base64 has no character that is special to the shell, so the values need no quotes. The extension accepts at most
// 256 KiB of script and has no setting for our data: its schema forbids unknown keys.
// https://github.com/Azure/custom-script-extension-linux (main/schema.go, main/cmds.go)
resource bootstrap 'Microsoft.Compute/virtualMachines/extensions@2025-04-01' = {
  parent: vm
  name: 'cycleforge-bootstrap'
  location: location
  tags: tags
  properties: {
    publisher: 'Microsoft.Azure.Extensions'
    type: 'CustomScript'
    typeHandlerVersion: '2.1'
    autoUpgradeMinorVersion: true
    forceUpdateTag: contentHash
    settings: { skipDos2Unix: true }
    protectedSettings: {
      script: base64('#!/bin/sh\nCYCLEFORGE_FACTS=${base64(string(facts))}\nCYCLEFORGE_SECRETS=${base64(string(secrets))}\n${startScript}')
    }
  }
}

@description('State of the last run.')
output provisioningState string = bootstrap.properties.provisioningState
