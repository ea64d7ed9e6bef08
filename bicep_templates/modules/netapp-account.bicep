metadata description = 'NetApp Files account that holds the deployment\'s volumes.'

@description('Azure region.')
param location string
@description('Tags of the account.')
param tags object
@description('Name of the account.')
param name string

resource account 'Microsoft.NetApp/netAppAccounts@2025-12-01' = {
  name: name
  location: location
  tags: tags
}

@description('Name of the account.')
output name string = account.name
