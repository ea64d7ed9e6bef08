metadata description = 'Lets the nodes publish metrics; deploy it in the resource group of the data collection rule.'

@description('Object id of the identity that nodes use.')
param nodePrincipalId string
@description('Name of the data collection rule.')
param dataCollectionRuleName string

@description('Built-in role "Monitoring Metrics Publisher".')
var metricsPublisher = '3913510d-42f4-4e42-8a64-420c390055eb'

resource rule 'Microsoft.Insights/dataCollectionRules@2024-03-11' existing = {
  name: dataCollectionRuleName
}

resource nodesPublish 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(rule.id, nodePrincipalId, metricsPublisher)
  scope: rule
  properties: {
    principalId: nodePrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', metricsPublisher)
  }
}

@description('Name of the role assignment; it remains when the deployment\'s resource group is deleted.')
output assignment string = nodesPublish.name
