metadata description = 'Reads what the server recorded at the end of its first boot: the fingerprints by which people recognise it.'

@description('Name of the deployment that the server has written, in this resource group.')
param recordName string

// An extension has no outputs: what it printed is in its instance view, which is documented for `$expand=instanceView`
// only. The outputs of a deployment are part of every read, and the server may write one in its own resource group.
// https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-resource#reference
// It is no module that could be deployed from here: only its outputs are read.
#disable-next-line no-deployments-resources
resource record 'Microsoft.Resources/deployments@2025-04-01' existing = {
  name: recordName
}

@description('SHA-256 of the certificate of the site; empty if the server could not read it.')
output certificateSha256 string = record.properties.outputs.certificateSha256.value
@description('Type and fingerprint of each SSH host key.')
output sshHostKeys string[] = record.properties.outputs.sshHostKeys.value
